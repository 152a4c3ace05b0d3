"""What Python code gives, checked when it is called: an option of another type is refused in plain words."""

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

_UNFIT: Any = object()


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
    raise UsageError(
        f"{name} takes {listed(map(_described, kinds))}, not {value!r}", remedy=did_you_mean(str(value), known)
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
        raise UsageError(f"{what}, not {value!r}")
    return int(number)


def interval(given: Any, name: str = "range") -> tuple[float, float]:
    """(low, high), both finite, low less than high."""
    try:
        low, high = given
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return low, high
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(f"{name} is {given!r}", remedy="give (low, high), both finite, low less than high")


def axes(given: Any, name: str) -> str:
    """Letters, each once, in capitals."""
    if not isinstance(given, str):
        raise UsageError(f"{name} is {given!r}", remedy='for example "HWC", "CHW" or "NHWC"')
    return values.axes(given, name)


def target(given: Any) -> str | None:
    """The output as a text, None for where it goes by itself."""
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        raise UsageError(f"the output is {given!r}", remedy="give a text or a path: 'x.npy', 'folder/'")
    if not os.fspath(given):
        raise UsageError("the output is an empty text", remedy="None writes beside the input, '.' into this folder")
    return os.fspath(given)
