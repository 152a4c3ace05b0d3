"""Values as they are written in a chain become the parameters of a step, or a refusal in plain words."""

from __future__ import annotations

import dataclasses
import reprlib
import typing
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any

from tconv.errors import UsageError
from tconv.suggest import did_you_mean, listed

_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


class WrongParameter(UsageError):  # noqa: N818  # a refusal, called by what is wrong
    """What is wrong is just the one ``parameter``."""

    def __init__(self, parameter: str, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason, remedy=remedy)
        self.parameter = parameter


def bind(cls: Any, args: Sequence[Any], kwargs: Mapping[Any, Any]) -> dict[str, Any]:
    """The parameters of the dataclass ``cls`` by name, each of the type that its field has.

    Positional values get the names of the fields in their order. Raises ``UsageError`` naming the parameter and what
    it takes.
    """
    names = [f.name for f in dataclasses.fields(cls)]
    if len(args) > len(names):
        raise UsageError(f"it takes {_count(len(names))} at most ({', '.join(names)}), not {len(args)}")
    check_names(cls, kwargs)
    values = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in values:
            raise WrongParameter(name, f"the parameter {name!r} is given twice")
        values[name] = value
    lacking = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING and f.name not in values]
    if lacking:
        raise UsageError(f"it needs {' and '.join(lacking)}")
    hints = typing.get_type_hints(cls)
    return {name: _typed(name, value, hints[name]) for name, value in values.items()}


def check_names(cls: Any, kwargs: Mapping[Any, Any]) -> None:
    """Refuse what is no parameter of the dataclass ``cls``."""
    names = [f.name for f in dataclasses.fields(cls)]
    for name in kwargs:
        if name not in names:
            hint = did_you_mean(str(name), names, f"it has {' and '.join(names)}")
            raise WrongParameter(name, f"there is no parameter {name!r}", remedy=hint)


def _count(number: int) -> str:
    return "1 value" if number == 1 else f"{number} values"


def _typed(name: str, value: Any, hint: Any) -> Any:
    if type(value) in _alternatives(hint):
        return value
    if isinstance(value, str) and tuple[str, ...] in _alternatives(hint):
        return (value,)  # one of several
    import msgspec  # here, since most parameters are plain words, for which importing it costs more than it does

    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, OverflowError):
        raise WrongParameter(name, f"{name} takes {_described(hint)}, not {shown(value)}") from None


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else (hint,)


def _described(hint: Any) -> str:
    """``int | str`` in plain words: a whole number or a word."""
    words: list[str] = []
    for kind in _alternatives(hint):
        if typing.get_origin(kind) is tuple:
            one = _WORDS[typing.get_args(kind)[0]]
            words += [one] * (kind == tuple[str, ...]) + [f"{one.removeprefix('a ')}s in brackets"]
        elif kind is not NoneType:
            words.append(_WORDS[kind])
    return listed(words)


_BRIEF = reprlib.Repr()  # a YAML file can hold more than fits on a line, or into memory once it is text
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 60
_BRIEF.maxlevel = 2


def shown(value: Any) -> str:
    """A value as people write it, cut short."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return _BRIEF.repr(value)
