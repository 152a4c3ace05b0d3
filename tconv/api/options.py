"""The options of the command line as keyword arguments: their names and types, and what is made of them."""

from __future__ import annotations

import dataclasses
import math
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from tconv.api.pipelines import settings_of, steps_of
from tconv.errors import UsageError
from tconv.pipeline import Sugar
from tconv.request import Request
from tconv.settings import applied
from tconv.suggest import did_you_mean, listed
from tconv.tensor import ReadOptions, WriteOptions

if TYPE_CHECKING:
    from tconv.api.pipelines import Steps


# A file, a folder, a glob, or several of them.
Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class ReadingOptions(TypedDict, total=False):
    """How files are read and which of their tensors are taken: keyword arguments of ``open``, ``convert`` and ``plan``.

    They do what the options of these names do on the command line, whose ``--help`` says more.
    """

    channels: Literal["rgb", "bgr", "gray", "rgba", "keep"]
    """Of images; ``keep`` gives the file's own. By default ``"rgb"``."""
    alpha: Literal["white", "black", "drop"]
    """What an image's alpha is blended over, or that it is dropped; for rgb, bgr and gray. By default ``"white"``."""
    palette: Literal["rgb", "index"]
    """The colours of an image with a palette, or its indices. By default ``"rgb"``."""
    frames: Literal["first", "all"]
    """Of an image with several; all give an axis N. By default ``"first"``."""
    exif: bool
    """Whether images are turned upright. By default True."""
    max_pixels: int | None
    """The largest image that is decoded; None for Pillow's limit."""
    fast: bool
    """JPEGs that a resize makes smaller may be decoded at a fraction of their size."""
    range: tuple[float, float] | None
    """In which the values lie, where the files do not say: (0, 1), (0, 255)."""
    input_layout: str | None
    """The axes of arrays: ``"HWC"``, ``"NCHW"``."""
    only: str | Sequence[str]
    """Globs: tensors whose name matches one."""
    skip: str | Sequence[str]
    """Globs: not those."""
    select: str | None
    """The keys of a part of a checkpoint, joined by dots: ``"model"``."""
    all: bool
    """All of a checkpoint is converted, the state of its optimizer too."""
    fields: str | None
    """A glob for the integer fields of data that arithmetic may change; ``""`` for none of them."""
    strip_prefix: str | Sequence[str]
    """What names lose at their beginning: ``"module."``."""
    workers: int | None
    """Threads; None for one a core."""
    max_memory: int
    """Bytes for the values under way. By default 1 GiB."""


class Options(ReadingOptions, total=False):
    """How files are written, besides: keyword arguments of ``convert`` and ``plan``."""

    format: str | None
    """Of what goes into a folder: ``"npy"``, ``"safetensors"`` …"""
    stack: bool
    """All tensors become one, along a new axis N in front."""
    split: bool
    """A file for each tensor, into a folder."""
    batch_size: int | None
    """Stacked images to a file, by names that sort."""
    drop_last: bool
    """No smaller last batch."""
    labels: str | os.PathLike[str]
    """A CSV or JSONL file of labels; ``"folders"`` or ``"none"``. By default class folders speak for themselves."""
    quality: int | None
    """Of JPEG and WebP, 1 to 100."""
    tie: bool
    """Tied weights go once into .safetensors, with all their names."""
    shard_size: int | None
    """Bytes: weights go into a folder of shards of that size."""
    on_overflow: Literal["error", "saturate", "inf", "keep"] | None
    """What becomes of values that do not fit; None refuses them."""
    keep: str | Sequence[str]
    """Globs (``GLOB`` or ``GLOB=DTYPE``): tensors that are not cast, or to another dtype."""
    policy: Literal["amp"] | None
    """``"amp"``: normalization layers are float32."""
    max_error: float | None
    """The largest relative error of a value for which a tensor is still cast."""
    min_sqnr: float | None
    """The least signal-to-noise ratio in dB for which a tensor is quantized."""
    device: str | None
    """Where the steps are done as far as they can: ``"cuda"``, ``"cuda:1"``, ``"mps"``, ``"cpu"``, ``"auto"``."""
    device_batch: int | None
    """Tensors that go there at once, at most; None for 64."""
    save_device: bool
    """In ``.pt`` they are tensors of that device, not of the CPU."""
    gpu_jpeg: bool
    """That device, a CUDA one, decodes JPEGs, by torchvision; pixels differ a little from the exact ones."""
    report: str | os.PathLike[str] | None
    """A JSON file that tells what was lost."""
    verify: bool
    """What was written is read again and compared."""
    on_bad: Literal["error", "skip"]
    """Whether files that cannot be read are refused, or left out. By default ``"error"``."""
    force: bool
    """What exists is replaced."""
    resume: bool
    """Go on with the shards of an interrupted run."""


_SEVERAL = ("only", "skip", "keep", "strip_prefix")  # that may be given as one text
_AS_STEPS = {  # what the command line has as an option
    "resize": "resize(224x224) | scale",
    "pad": "pad",
    "normalize": "scale",
    "stats": "scale | normalize(imagenet)",
    "denormalize": "denormalize(imagenet)",
    "layout": "permute(CHW)",
    "quantize": "quantize(int8)",
    "to": "cast(float16)",
    "half": "cast(float16)",
    "bf16": "cast(bfloat16)",
}
_COUNTS = ("workers", "max_memory", "shard_size", "max_pixels", "batch_size", "device_batch", "quality")


def request(src: Source, dst: str | os.PathLike[str] | None, steps: Steps, options: Mapping[str, Any]) -> Request:
    """All that was asked, checked as far as no file is needed for it. Raises ``UsageError``."""
    said = dict(options)
    _refuse_unknown(said, typing.get_type_hints(Options))
    reading = {f.name: said.pop(f.name) for f in dataclasses.fields(ReadOptions) if f.name in said}
    writing = {f.name: said.pop(f.name) for f in dataclasses.fields(WriteOptions) if f.name in said}
    _refuse_other_words(reading, ReadOptions)
    _refuse_other_words(said, Request)
    for name in _COUNTS:
        value = {**said, **reading, **writing}.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise UsageError(f"{name} takes a whole number from 1 on, not {value!r}")
    for name in _SEVERAL:
        if name in said:
            said[name] = (said[name],) if isinstance(said[name], str) else tuple(said[name])
    if said.get("range") is not None:
        said["range"] = _interval(said["range"])
    if said.get("input_layout") is not None:
        said["input_layout"] = said["input_layout"].upper()
    if said.get("report") is not None:
        said["report"] = Path(said["report"])
    if said.get("labels", "auto") not in ("auto", "folders", "none"):
        said["labels"] = Path(said["labels"])
    asked = Request(
        inputs=_words(src),
        output=None if dst is None else os.fspath(dst),
        steps=steps_of(steps),
        sugar=Sugar(stack=said.pop("stack", False)),
        read=ReadOptions(**reading),
        own_channels=not {"channels", "alpha"} & options.keys(),
        write=WriteOptions(**writing),
        **said,
    )
    settings = settings_of(steps)
    if {"channels", "alpha"} & settings.keys():
        asked = dataclasses.replace(asked, own_channels=False)
    return applied(asked, settings, options.keys())


def _words(src: Source) -> tuple[str, ...]:
    words = [src] if isinstance(src, str | os.PathLike) else list(src)
    if not words:
        raise UsageError("there is no input")
    return tuple(os.fspath(word) for word in words)


def refuse_other_than_reading(options: Mapping[str, Any]) -> None:
    """Refuse what says how to write."""
    _refuse_unknown(options, typing.get_type_hints(ReadingOptions))


def _refuse_unknown(said: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in said:
        if name in _AS_STEPS:
            raise UsageError(f"{name!r} is no option but a step", remedy=f"for example steps={_AS_STEPS[name]!r}")
        if name not in known:
            raise UsageError(
                f"there is no option {name!r}", remedy=did_you_mean(name, known, f"there are {', '.join(known)}")
            )


def _refuse_other_words(said: Mapping[str, Any], cls: type) -> None:
    """Refuse words that an option does not take, where its type lists them."""
    hints = typing.get_type_hints(cls)
    for name, value in said.items():
        if typing.get_origin(hints.get(name)) is Literal and value not in typing.get_args(hints[name]):
            words = typing.get_args(hints[name])
            raise UsageError(f"{name} takes {listed(words)}, not {value!r}", remedy=did_you_mean(str(value), words))


def _interval(given: Any) -> tuple[float, float]:
    try:
        low, high = given
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return low, high
    except (TypeError, ValueError):
        pass
    raise UsageError(f"range is {given!r}", remedy="give (low, high), both finite, low less than high")
