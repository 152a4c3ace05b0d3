"""The NumPy arrays, scalars and dtypes in a checkpoint, from their pickles and by tconv's own hand."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tconv.formats.torch.objects import Foreign, Maker, damaged

_DTYPE = re.compile(r"[<>=|]?[biufcSU][1-9]\d{0,8}")
_REMEDY = "save it as numbers or text"


class Dtype:
    """A numpy.dtype under construction: its pickle sets the byte order afterwards. ``dtype`` is None for one that
    tconv does not read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = np.dtype(name) if _DTYPE.fullmatch(name) else None

    def build(self, state: Any) -> None:
        """``state``: version, byte order, and what only structured and date dtypes have."""
        if type(state) is not tuple or len(state) < 3 or state[1] not in ("<", ">", "|", "="):
            raise damaged("a NumPy dtype in it is broken")
        if self.dtype is None or any(part is not None for part in state[2:5]):
            self.dtype = None
        else:
            self.dtype = self.dtype.newbyteorder(state[1])

    @property
    def known(self) -> np.dtype[Any] | Foreign:
        return Foreign(f"a NumPy dtype {self.name[:20]!r}", _REMEDY) if self.dtype is None else self.dtype


class Array:
    """A numpy.ndarray under construction: its pickle brings the values afterwards."""

    def __init__(self, array: np.ndarray[Any, Any] | Foreign | None = None) -> None:
        self._array = array

    @property
    def array(self) -> np.ndarray[Any, Any] | Foreign:
        if self._array is None:
            raise damaged("a NumPy array in it has no values")
        return self._array

    def build(self, state: Any) -> None:
        """``state``: version, shape, dtype, whether in Fortran order, bytes."""
        if type(state) is not tuple or len(state) != 5:
            raise damaged("a NumPy array in it is broken")
        _, shape, dtype, fortran, data = state
        self._array = _array(shape, dtype, fortran is True, data)


def dtype(name: object, align: object = False, copy: object = True) -> Dtype:
    """``name`` is a kind and a size, such as "f4"."""
    if not isinstance(name, str):
        raise damaged("a NumPy dtype in it has no name")
    return Dtype(name)


def reconstruct(kind: object, shape: object, code: object) -> Array:
    """An array to be built; of subclasses (matrix, masked arrays) the name has been refused."""
    if not isinstance(kind, Maker) or kind.path != "numpy.ndarray":
        raise damaged("a NumPy array in it is of no class")
    return Array()


def scalar(kind: object, data: object) -> Any:
    """One number (or text) of that dtype."""
    made = _array((), kind, False, data)
    return made if isinstance(made, Foreign) else made[()]


def from_buffer(data: object, kind: object, shape: object, order: object) -> Array:
    """An array as protocol 5 writes it."""
    if order not in ("C", "F"):
        raise damaged("a NumPy array in it has no known order")
    return Array(_array(shape, kind, order == "F", data))


def _array(shape: object, kind: object, fortran: bool, data: object) -> np.ndarray[Any, np.dtype[Any]] | Foreign:
    if not isinstance(kind, Dtype):
        raise damaged("a NumPy array in it is broken")
    if kind.dtype is None:
        return Foreign(f"a NumPy array of dtype {kind.name[:20]!r}", _REMEDY)
    if isinstance(data, str):  # Python 2 did not tell bytes from text
        data = data.encode("utf-8")
    sizes = (shape,) if isinstance(shape, int) else shape
    if not isinstance(data, bytes | bytearray) or not isinstance(sizes, tuple):
        raise damaged("a NumPy array in it is broken")
    if not all(type(n) is int and n >= 0 for n in sizes) or len(sizes) > 32:
        raise damaged("a NumPy array in it has an impossible shape")
    if math.prod(sizes) * kind.dtype.itemsize != len(data):
        raise damaged("a NumPy array in it has more or fewer bytes than its shape asks for")
    array: np.ndarray[Any, np.dtype[Any]] = np.ndarray(sizes, kind.dtype, data, order="F" if fortran else "C")
    return array
