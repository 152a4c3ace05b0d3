"""NumPy arrays, and what becomes one: numbers, nested lists, whatever NumPy takes for an array."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.arrays.library import library, library_of
from tconv.dtypes import DTYPES, from_numpy
from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

_SINGLE = {"float64": "float32", "complex128": "complex64"}  # what frameworks make of Python's numbers


def dtype_of(x: Any) -> DType:
    if isinstance(x, np.ma.MaskedArray):
        raise TconvError("a masked array: what is masked has no value", remedy="say which: x.filled(0), for example")
    found = from_numpy(x.dtype)
    if found is None:
        raise TconvError(f"an array of dtype {x.dtype} is no tensor", remedy="tconv converts numbers and bools")
    return found


def device_of(x: Any) -> str:
    return "cpu"


def on_cpu(x: Any) -> bool:
    return True


def is_contiguous(x: Any) -> bool:
    return bool(x.flags.c_contiguous and x.dtype.isnative)


def contiguous(x: Any) -> Any:
    return np.asarray(x, order="C")


def requires_grad(x: Any) -> bool:
    return False


def to_numpy(x: Any) -> Array:
    """An array in native byte order; ``x`` itself if it is one."""
    if not isinstance(x, np.ndarray):
        return from_python(x)
    dtype_of(x)
    values = np.asarray(x) if isinstance(x, np.matrix) else x  # which has two axes, whatever is done to it
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def make(values: Array, device: str | None, copy: bool | None) -> Any:
    _on_cpu_only(device)
    return values.copy() if copy else values


def exported(x: Any) -> Any:
    return x


def adopt(x: Any, copy: bool | None) -> Any | None:
    return None  # memory on the CPU is what ``to_numpy`` shows, and NumPy knows no other


def move(x: Any, device: str) -> Any:
    _on_cpu_only(device)
    return x


def widen(x: Any, dtype: DType) -> Any:
    return x.astype(dtype.numpy)


def clip(x: Any, low: float, high: float) -> Any:
    return x.clip(low, high)


def _on_cpu_only(device: str | None) -> None:
    if device is not None and device.lower() not in ("cpu", "cpu:0"):
        raise TconvError(
            f"NumPy's arrays are on the CPU, and cannot go to {device}", remedy="to_torch(x, device=…) can"
        )


def from_python(x: Any) -> Array:
    """Numbers, nested lists of numbers or of arrays of one shape, and objects that NumPy takes for arrays.

    Integers become int64 (uint64 where they need it), floats float64; NumPy's scalars keep their dtype.
    """
    leaf = _first(x)
    if isinstance(leaf, str | os.PathLike):
        raise TconvError("text is no tensor", remedy="tconv.open(path) reads files")
    if isinstance(leaf, bytes):
        raise TconvError("bytes are no tensor", remedy="np.frombuffer(x, dtype) says of which numbers")
    if leaf is not x and library_of(leaf) != "numpy":
        return _stacked([_values(v) for v in x])
    made = _made(x)
    if type(leaf) in (int, bool) and made.dtype in (object, np.float64):
        made = _of_large_numbers(x, made)
    if made.dtype == object and not isinstance(leaf, np.ndarray):
        wrong = next((v for v in _leaves(x) if not isinstance(v, int | float | complex | np.generic)), leaf)
        raise TconvError(f"{type(wrong).__name__} is no number", remedy="tensors are made of numbers and bools")
    dtype_of(made)
    return to_numpy(made)


def _made(x: Any) -> Array:
    """What NumPy makes of it."""
    try:
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.asarray(np.from_dlpack(x))
        return np.asarray(x)
    except Exception as problem:  # it may be code of any object
        if isinstance(problem, ValueError) and isinstance(x, list | tuple):
            raise TconvError(f"no array, as its rows are of unequal shapes ({problem})") from None
        raise TconvError(f"NumPy makes no array of this {type(x).__name__}: {problem}") from problem


def _stacked(rows: list[Array]) -> Array:
    try:
        return np.stack(rows)
    except ValueError as problem:
        raise TconvError(f"no array, as its rows are of unequal shapes ({problem})") from None


def _of_large_numbers(x: Any, made: Array) -> Array:
    """Python's numbers, of which NumPy makes objects, or floats though all are whole, where int64 is too small."""
    numbers = [*_leaves(x)]
    if any(type(v) not in (int, bool) for v in numbers):
        mixed = made.dtype == object and all(type(v) in (int, bool, float) for v in numbers)
        return np.asarray(x, np.float64) if mixed and max(map(abs, numbers)) < 1e308 else made
    low, high = min(numbers), max(numbers)
    if low >= 0 and high < 2**64:
        return np.asarray(x, np.uint64)
    span = f"integers from {low} to {high}" if low < high else f"the integer {low}"
    raise TconvError(f"no dtype holds {span}")


def as_frameworks_do(x: Any) -> Array:
    """The same, but Python's floats as float32 and its complex numbers as complex64, as PyTorch and TensorFlow make of
    them. Raises ``TconvError`` for those that are too large; that they are rounded is what is expected.
    """
    made = from_python(x)
    leaf, stored = _first(x), dtype_of(made)
    single = DTYPES[_SINGLE.get(stored.name, stored.name)]
    if single == stored or type(leaf) not in (int, float, complex, bool, list, tuple):
        return made
    with np.errstate(over="ignore"):
        narrow = made.astype(single.numpy)
    if np.isfinite(made).all() and not np.isfinite(narrow).all():
        raise TconvError(f"a number too large for {single}", remedy=f"say dtype={stored.name!r}")
    return narrow


def _first(x: Any) -> Any:
    """The first leaf of nested lists; ``x`` if it is none."""
    while isinstance(x, list | tuple) and x:
        x = x[0]
    return x


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for value in x:
            yield from _leaves(value)
    else:
        yield x


def _values(x: Any) -> Array:
    return library(library_of(x)).to_numpy(x)
