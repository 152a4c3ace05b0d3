"""What a pipeline file says beside its steps: options of its inputs and outputs, named as on the command line."""

from __future__ import annotations

import typing
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import fields, replace
from types import NoneType
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tconv import registry, values
from tconv.errors import UsageError
from tconv.parameters import WrongParameter
from tconv.pipeline import Sugar
from tconv.request import Request
from tconv.writer import ReadOptions, WriteOptions

# An option is one line: the field of Request or of a part of it whose name it has (with - for _) gives its type.
INPUT = {
    "channels": "Channels of images; rgb by default.",
    "alpha": "Blend images over white (the default) or black, or drop their opacity.",
    "palette": "The colours of palette images (the default), or their indices.",
    "frames": "Of animations and multi-page files the first (the default), or all.",
    "exif": "Whether images are turned upright; true by default.",
    "max-pixels": "Refuse images that are larger.",
    "fast": "Whether a resize gets large JPEGs at a fraction of their size; false by default, which is exact.",
    "gpu-jpeg": "Whether the CUDA device of the steps decodes JPEGs; false by default, which is exact.",
    "range": "The interval in which the values lie: [0, 255], or 0,255.",
    "layout": "Axes of input arrays: HWC, NCHW …",
    "only": "Globs: the tensors whose name matches.",
    "skip": "Globs: not the tensors whose name matches.",
    "select": "What lies under this key of a checkpoint.",
    "all": "All of a checkpoint, its optimizer state too.",
    "strip-prefix": "Cut these off the front of names.",
    "fields": "A glob for the integer fields of .npz and the like that arithmetic may change too ('': none).",
    "on-bad": "Broken inputs: stop (the default), or leave them out.",
}
OUTPUT = {
    "format": "npy, npz, safetensors or pt, where the name of the output does not say it.",
    "stack": "Equal shapes become one array with axis N.",
    "batch-size": "So many pictures a file.",
    "drop-last": "No smaller last batch.",
    "split": "One file a tensor.",
    "tie": "Tied weights once in .safetensors, with all their names.",
    "shard-size": "Weights in shards of at most that, 5GB say, with their index.",
    "quality": "Of JPEG, 1 to 100.",
    "verify": "Read again what was written, and compare.",
}

_FIELDS = {"layout": "input_layout"}  # where an option is called otherwise than its field
_TYPES: dict[str, Any] = {  # where a file may say it otherwise than the field has it
    "max_pixels": Annotated[int, Meta(ge=1)],
    "batch_size": Annotated[int, Meta(ge=1)],
    "quality": Annotated[int, Meta(ge=1, le=100)],
    "range": str | Annotated[list[int | float], Meta(min_length=2, max_length=2)],
    "shard_size": str | Annotated[int, Meta(ge=1)],
}
_MEANT: dict[str, Callable[[Any], Any]] = {
    "range": lambda said: values.interval(said if isinstance(said, str) else ",".join(map(repr, said)), "range"),
    "input_layout": lambda said: values.axes(said, "layout"),
    "format": lambda said: said if registry.by_name(said) else "",  # which refuses what it does not know
    "shard_size": lambda said: values.size(str(said), "shard-size", "5GB"),
}


def model(name: str, options: Mapping[str, str], as_typed: Callable[[Any], Any] = lambda kind: kind) -> Any:
    """The options as a type that msgspec checks files against, and describes in JSON Schema; ``as_typed`` makes of the
    type of each what may stand in the file before variables have their values.
    """
    members = [
        (key.replace("-", "_"), Annotated[as_typed(_type(key)) | UnsetType, Meta(description=text)], UNSET)
        for key, text in options.items()
    ]
    return msgspec.defstruct(name, members, rename="kebab", forbid_unknown_fields=True, kw_only=True)


def settings(*said: Any) -> dict[str, Any]:
    """What instances of such types say, by field and as it is meant there. Raises ``WrongParameter``, which names the
    option.
    """
    found: dict[str, Any] = {}
    for part in said:
        for key in part.__struct_fields__:
            value = getattr(part, key)
            if value is not UNSET:
                field = _field(key)
                try:
                    value = _MEANT.get(field, _plain)(value)
                except UsageError as problem:
                    raise WrongParameter(key.replace("_", "-"), problem.reason, remedy=problem.remedy) from None
                found[field] = (value,) if field in _SEVERAL and isinstance(value, str) else value
    return found


def applied(request: Request, found: Mapping[str, Any], given: Container[str]) -> Request:
    """``request`` with what a file says; a field that was ``given`` otherwise stays as it is."""
    for field, value in found.items():
        if field not in given:
            request = _with(request, field, value)
    return request


def said(request: Request, options: Iterable[str]) -> dict[str, Any]:
    """What a file would have to say for ``request``: all that is not the default. The inverse of ``applied``."""
    usual = Request(())
    found = {}
    for key in options:
        value = _get(request, _field(key))
        if value != _get(usual, _field(key)):
            found[key] = list(value) if isinstance(value, tuple) else value
    return found


def _hints() -> dict[str, Any]:
    return {name: hint for cls in (*_PARTS.values(), Request) for name, hint in typing.get_type_hints(cls).items()}


_PARTS: dict[str, Any] = {"sugar": Sugar, "read": ReadOptions, "write": WriteOptions}  # of a request
_HINTS = _hints()
_SEVERAL = {name for name, hint in _HINTS.items() if hint == tuple[str, ...]}
_OWNERS = {f.name: owner for owner, cls in _PARTS.items() for f in fields(cls)}
_OWNERS |= {f.name: "" for f in fields(Request)}


def _field(key: str) -> str:
    return _FIELDS.get(key, key.replace("-", "_"))


def _type(key: str) -> Any:
    """What a file may say for an option: what its field takes, without None, and one glob for a list of them."""
    field = _field(key)
    if field in _TYPES:
        return _TYPES[field]
    if field in _SEVERAL:
        return str | list[str]
    hint = _HINTS[field]
    kinds = [kind for kind in typing.get_args(hint) if kind is not NoneType]
    return hint if NoneType not in typing.get_args(hint) else typing.Union[tuple(kinds)]  # noqa: UP007  # made at run time


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _get(request: Request, field: str) -> Any:
    owner = _OWNERS[field]
    return getattr(getattr(request, owner) if owner else request, field)


def _with(request: Request, field: str, value: Any) -> Request:
    owner = _OWNERS[field]
    if not owner:
        return replace(request, **{field: value})
    return replace(request, **{owner: replace(getattr(request, owner), **{field: value})})
