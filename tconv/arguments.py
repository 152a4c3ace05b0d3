"""What Python code gives as arguments: what is of the wrong type is told in a sentence, and goes no further."""

from __future__ import annotations

import math
import numbers
import operator
import os
import typing
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal

from tconv import values
from tconv.errors import UsageError
from tconv.suggest import did_you_mean, listed

_SHOWN = 80  # characters of a value in a message
_UNFIT: Any = object()


class WrongType(UsageError, TypeError):  # noqa: N818  # a usage error that is a TypeError too, as Python's own are
    """An argument is of a type that means nothing there."""


def shown(value: Any) -> str:
    """A value as messages show it."""
    try:
        text = repr(value)
    except Exception:  # of whatever class it is
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"


def words(src: Any) -> tuple[str, ...]:
    """The texts of a path, or of several. Raises ``UsageError`` for what names no file."""
    if isinstance(src, str | os.PathLike):
        return (_word(src),)
    if isinstance(src, bytes | bytearray | Mapping) or hasattr(src, "dtype") or not isinstance(src, Iterable):
        raise _no_path(src)
    found = tuple(_word(word) for word in src)
    if not found:
        raise UsageError("there is no input")
    return found


def path(value: Any, name: str) -> str:
    """The text of one path; ``name`` is what the argument is called."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise WrongType(f"{name} is {shown(value)}", remedy="give a path as text or a pathlib.Path")
    if not text:
        raise UsageError(f"{name} is an empty text", remedy="give a path; '.' is the current folder")
    return text


def _word(word: Any) -> str:
    if not isinstance(word, str | os.PathLike):
        raise _no_path(word)
    return path(word, "an input")


def _no_path(value: Any) -> WrongType:
    remedy = "give a path as text or a pathlib.Path, or several of them"
    if isinstance(value, bytes | bytearray):
        remedy = "decode it: os.fsdecode"
    elif hasattr(value, "dtype") or isinstance(value, Mapping):
        remedy = "tconv.Pipeline(steps)(x) takes what is in memory"
    return WrongType(f"{shown(value)} names no file", remedy=remedy)


def position(n: Any) -> int:
    """A number that says which one."""
    try:
        return operator.index(n)
    except TypeError:
        raise WrongType(f"{shown(n)} is no number of a sample", remedy="give a whole number, or a slice") from None


def options(given: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None, which says nothing, each of the type it has in ``types``.

    Lists of texts become tuples, and one text a tuple of it. Raises ``UsageError``.
    """
    return {name: _option(name, value, types[name]) for name, value in given.items() if value is not None}


def _option(name: str, value: Any, hint: Any) -> Any:
    union = typing.get_origin(hint) in (typing.Union, UnionType)
    kinds = [kind for kind in (typing.get_args(hint) if union else (hint,)) if kind is not NoneType]
    if tuple[float, float] in kinds:
        return interval(value, name)
    several = Sequence[str] in kinds
    for kind in kinds:
        fitted = _fitted(value, kind)
        if fitted is not _UNFIT:
            return (fitted,) if several and isinstance(fitted, str) else fitted
    known = [word for kind in kinds if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
    wrong = UsageError if isinstance(value, str) and known else WrongType
    raise wrong(
        f"{name} takes {listed(map(_described, kinds))}, not {shown(value)}", remedy=did_you_mean(str(value), known)
    )


def _fitted(value: Any, kind: Any) -> Any:
    """``value`` as that kind has it, or ``_UNFIT``."""
    if kind is int:
        return _fitted_count(value)
    if kind is float:
        return value if isinstance(value, numbers.Real) and not isinstance(value, bool) else _UNFIT
    if kind == Sequence[str]:
        found = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else (None,)
        return found if all(isinstance(item, str) for item in found) else _UNFIT
    if typing.get_origin(kind) is Literal:
        return value if isinstance(value, str) and value in typing.get_args(kind) else _UNFIT
    return value if isinstance(value, typing.get_origin(kind) or kind) else _UNFIT


def _fitted_count(value: Any) -> Any:
    """A whole number from 1 on, of any kind that counts as one."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return _UNFIT
    return number if number >= 1 else _UNFIT


def _described(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return listed(typing.get_args(kind))
    plain = {bool: "True or False", int: "a whole number from 1 on", float: "a number", str: "a text"}
    return plain.get(kind, "a path" if typing.get_origin(kind) is os.PathLike else "several texts")


def count(value: Any, what: str) -> int:
    """How many there are in something that holds 1 at least; ``what``: ``a batch has 1 tensor or more``."""
    number = _fitted_count(value)
    if number is _UNFIT:
        raise UsageError(f"{what}, not {shown(value)}")
    return int(number)


def interval(given: Any, name: str = "range") -> tuple[float, float]:
    """(low, high), both finite, low less than high."""
    try:
        low, high = given
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return low, high
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"{name} is {shown(given)}", remedy="give (low, high), both finite, low less than high")


def axes(given: Any, name: str) -> str:
    """Letters, each once, in capitals."""
    if not isinstance(given, str):
        raise UsageError(f"{name} is {shown(given)}", remedy='for example "HWC", "CHW" or "NHWC"')
    return values.axes(given, name)
