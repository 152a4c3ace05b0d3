"""From where to where some values go, and which of them lie outside an interval: exact for every dtype."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv.casts.bits import layout
from tconv.casts.rounding import held, nearest, widened
from tconv.dtypes import DTYPES
from tconv.lost import Lost, Number

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

_FLOAT64 = DTYPES["float64"]


class Extent(NamedTuple):
    """The least and the greatest finite value, None where there is none; ``finite``: there are no others."""

    low: Number | None
    high: Number | None
    finite: bool = True

    def within(self, low: Number, high: Number) -> bool:
        """Whether all values are finite and in [low, high]."""
        if self.low is None or self.high is None:
            return self.finite
        return self.finite and low <= self.low and self.high <= high


def extent(x: Array, dtype: DType) -> Extent:
    """The extent of the flat ``x``: two reductions over its bits where all is finite. Of real dtypes only."""
    if not x.size:
        return Extent(None, None)
    if dtype.is_integer:
        return Extent(int(np.minimum.reduce(x)), int(np.maximum.reduce(x)))
    if dtype.kind == "bool":
        return Extent(int(np.minimum.reduce(x.view(np.uint8)) > 0), int(np.maximum.reduce(x.view(np.uint8)) > 0))
    form = layout(dtype)
    low, high = form.extremes(x)
    if (form.fnuz and form.has_nonfinite(x)) or max(low & (form.sign - 1), high & (form.sign - 1)) > form.top:
        found = extent(x[~form.nonfinite(x)], dtype)
        return Extent(found.low, found.high, finite=False)
    return Extent(_value(low, dtype), _value(high, dtype))


def _value(bits: int, dtype: DType) -> float:
    return float(np.array(bits, layout(dtype).unsigned).view(dtype.numpy))


def outside(x: Array, dtype: DType, stated: tuple[float, float]) -> Lost:
    """The flat ``x`` held against the range ``stated``, bounds included; infinities and NaN are outside.

    Integers are compared exactly. A bound that a float dtype does not have stands for the value nearest to it, as the
    same text would if it were one of the values. Only what proves to go too far is looked at one by one.
    """
    x, dtype = held(x, dtype)
    found = extent(x, dtype)
    lost = Lost(x.size, minimum=found.low, maximum=found.high)
    low, high = bounds(dtype, stated)
    if low <= high and found.within(low, high):
        return lost
    if dtype.is_float:
        x = widened(x, dtype)
        lost.nan, lost.infinite = int(np.count_nonzero(np.isnan(x))), int(np.count_nonzero(np.isinf(x)))
    elif dtype.kind == "bool":
        x = (x.view(np.uint8) != 0).view(np.uint8)
    inside = int(np.count_nonzero((x >= low) & (x <= high))) if low <= high else 0
    lost.overflow = x.size - inside - lost.nan - lost.infinite
    return lost


@lru_cache(maxsize=64)
def bounds(dtype: DType, stated: tuple[Number, Number]) -> tuple[Number, Number]:
    """The bounds as values of ``dtype``, which is none of 4 bits: integers for integers, so that they are compared
    exactly. The lower is the greater where the dtype has no value between them.
    """
    if not dtype.is_float:
        low, high = max(math.ceil(stated[0]), int(dtype.min)), min(math.floor(stated[1]), int(dtype.max))
        return (low, high) if low <= high else (1, 0)
    if stated[0] > dtype.max or stated[1] < dtype.min:
        return 1.0, 0.0
    return _rounded(max(stated[0], dtype.min), dtype), _rounded(min(stated[1], dtype.max), dtype)


def _rounded(bound: float, dtype: DType) -> float:
    out = np.empty(1, dtype.numpy)
    with np.errstate(all="ignore"):
        nearest(np.array([bound], np.float64), _FLOAT64, dtype, out)
    return float(widened(out, dtype)[0])
