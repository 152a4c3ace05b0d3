"""Single elements of tensors: as numbers that NumPy calculates with, as text, by their index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tconv.casts.rounding import widened
from tconv.lost import part

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array


def plain(x: Array, dtype: DType) -> Array:
    """The same values as NumPy calculates with them: float32 for all narrower floats, bytes for bool."""
    if dtype.kind == "bool":
        return x.view(np.uint8)
    if dtype.bits < 8:
        return x.astype(np.float32 if dtype.is_float else np.int8)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return widened(x, dtype) if dtype.is_float else x


def index(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index along each axis of the element that is number ``flat`` in C order."""
    found = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        found.append(at)
    return tuple(reversed(found))


def told(value: Number, dtype: DType) -> str:
    """The shortest text that tells a value from its neighbours in its dtype (of a part, for complex)."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    real = part(dtype) if dtype.kind == "complex" else dtype
    return str(real.numpy.type(value)).removesuffix(".0")
