"""What Python code gives as arguments: what is of the wrong type is told in a sentence, and goes no further."""

from __future__ import annotations

import numbers
import operator
import os
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from tconv.errors import UsageError

_SHOWN = 80  # characters of a value in a message


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


def check(said: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse values that are not of the types in ``hints``, which ``typing.get_type_hints`` gives."""
    for name, value in said.items():
        if not _fits(value, hints[name]):
            raise WrongType(f"{name} is {shown(value)}", remedy=f"it takes {_told(hints[name])}")


def _fits(value: Any, hint: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in args)
    if origin is Literal:
        return isinstance(value, str)  # which words there are is told with the nearest one, where they are looked up
    if origin is tuple:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if origin is Sequence or (isinstance(origin, type) and issubclass(Sequence, origin)):
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        return several and all(_fits(item, args[0]) for item in value)
    if hint in (int, float):
        return isinstance(value, numbers.Integral if hint is int else numbers.Real) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


_WORDS = {bool: "True or False", str: "a text", int: "a whole number", float: "a number", type(None): "None"}


def _told(hint: Any) -> str:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_told(one) for one in args))
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin is tuple:
        return "two numbers"
    if origin is os.PathLike:
        return "a path"
    if origin is not None:
        return "several"
    return _WORDS[hint]
