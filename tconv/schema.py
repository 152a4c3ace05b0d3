"""The JSON Schema of pipeline files, for editors: derived by msgspec from the steps and the options that there are,
those of plugins among them.

Imported only by who asks for it, since it imports every step.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from collections.abc import Sequence
from dataclasses import MISSING
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tconv import registry
from tconv.dtypes import ALIASES, DTYPES
from tconv.recipes import File
from tconv.settings import INPUT, OUTPUT, model

DTYPE_NAMES = [*DTYPES, *ALIASES]
_PREFIXED = r"^(torch|numpy|np|tf|jnp|ml_dtypes)\.|[A-Z]"  # other ways to write the same names
_VARIABLE = r"\$\{"  # what has a variable in it may be anything
_EVERY_STEP = registry.every_step()[0]
_CHAIN = rf"{_VARIABLE}|^\s*({'|'.join(_EVERY_STEP)})\s*($|[(|])"  # of a chain, the first step


def schema() -> str:
    """The schema as text, in JSON Schema's draft of 2020-12."""
    found = msgspec.json.schema(Pipeline)
    found["$defs"]["Entry"]["dependentRequired"] = {
        "match": ["steps"],
        "steps": ["match"],
    }  # msgspec has no word for it
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A pipeline of tconv"}
    return json.dumps(head | found, indent=2, ensure_ascii=False) + "\n"


def _union(*kinds: Any) -> Any:
    return Union[tuple(kinds)]  # noqa: UP007  # made at run time


def _kinds(hint: Any) -> list[Any]:
    """The alternatives of a type; a tuple is a list in YAML."""
    found = typing.get_args(hint) if typing.get_origin(hint) in (Union, UnionType) else (hint,)
    return [GenericAlias(list, typing.get_args(kind)[:1]) if _is_tuple(kind) else kind for kind in found]


def _is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple


def _words(words: Sequence[str], *patterns: str) -> Any:
    """Text that is one of ``words``, fits a pattern, or has a variable in it."""
    others = [{"pattern": pattern} for pattern in (*patterns, _VARIABLE)]
    return Annotated[str, Meta(extra_json_schema={"anyOf": [{"enum": list(words)}, *others]})]


def _as_typed(hint: Any, text: Any = str) -> Any:
    """A type as YAML may have it: a variable may stand for anything. ``text`` is what it takes where it takes text."""
    if typing.get_origin(hint) is Literal:
        return _words(typing.get_args(hint))
    kinds = _kinds(hint)
    if list[str] in kinds:
        kinds = [str, *kinds]  # one of several
    others = [kind for kind in kinds if kind is not str]
    return _union(*others, text if str in kinds else Annotated[str, Meta(pattern=_VARIABLE)])


def _text(step: Any, name: str) -> Any:
    """The text that a parameter of a step takes."""
    known = step.choices.get(name, [])
    if name == "dtype" and not known:
        return _words(DTYPE_NAMES, _PREFIXED)
    if known and name not in step.open_choices:
        return _words(known)
    return Annotated[str, Meta(examples=list(known))] if known else str


def _parameters(step: Any) -> list[tuple[Any, ...]]:
    """Name, type and, if there is one, default of each parameter, as msgspec takes them."""
    hints = typing.get_type_hints(step)
    return [
        (f.name, _as_typed(hints[f.name], _text(step, f.name)), *([] if f.default is MISSING else [f.default]))
        for f in dataclasses.fields(step)
    ]


def _entry(step: Any) -> Any:
    """What follows a step's name: its first parameter, several by position or by name, or nothing if it needs none."""
    parameters = _parameters(step)
    by_name = msgspec.defstruct(step.name.capitalize(), parameters, forbid_unknown_fields=True)
    kinds = _kinds(parameters[0][1]) if parameters else []
    first = [kind for kind in kinds if kind is not NoneType and typing.get_origin(kind) is not list]
    nothing = [NoneType] if all(len(parameter) == 3 for parameter in parameters) else []
    purpose = (sys.modules[step.__module__].__doc__ or "").split("\n")[0].partition(": ")[2].replace("``", "")
    described = Meta(description=f"{purpose[:1].upper()}{purpose[1:]} For example {step.usage}")
    return Annotated[_union(*first, list[Any], by_name, *nothing, UnsetType), described]


_TEXT: Any = Annotated[str, Meta(pattern=_CHAIN)]
_GLOB: Any = Annotated[str, Meta(min_length=1)]
_GLOBS: Any = Annotated[GenericAlias(list, (_GLOB,)), Meta(min_length=1)]
_STEPS: Any = Annotated[
    _union(_TEXT, GenericAlias(list, (_union(_TEXT, ForwardRef("Entry")),))),
    Meta(description="A chain as text, resize(224) | scale, or a list of steps."),
]
_RULE = "Globs on names: the steps are for the tensors that match, and the first such entry in a row counts."

Entry = msgspec.defstruct(
    "Entry",
    [
        *((name, _entry(step), UNSET) for name, (step, _) in _EVERY_STEP.items() if name != "match"),
        ("match", Annotated[_union(_GLOB, _GLOBS, UnsetType), Meta(description=_RULE)], UNSET),
        ("steps", _union(_STEPS, UnsetType), UNSET),
    ],
    forbid_unknown_fields=True,
    module=__name__,
)
Input, Output = model("Input", INPUT, _as_typed), model("Output", OUTPUT, _as_typed)
Pipeline = msgspec.defstruct(
    "Pipeline",
    [("steps", _STEPS), ("input", _union(Input, UnsetType), UNSET), ("output", _union(Output, UnsetType), UNSET)],
    bases=(File,),
    forbid_unknown_fields=True,
    kw_only=True,
    module=__name__,
)
