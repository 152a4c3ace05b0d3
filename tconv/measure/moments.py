"""Counts, extremes and sum of values: what adds up over the pieces of a tensor in whatever order they come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tconv.casts.bits import layout

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array


@dataclass
class Moments:
    """``lowest``, ``highest`` and ``total`` are of the finite values. All are exact, but that ``total`` adds up sums of
    32-bit and 64-bit floats that were made in float64.
    """

    finite: int = 0
    nan: int = 0
    inf: int = 0
    zeros: int = 0
    lowest: Number | None = None
    highest: Number | None = None
    total: Fraction = Fraction(0)

    def merge(self, other: Moments) -> None:
        self.finite += other.finite
        self.nan += other.nan
        self.inf += other.inf
        self.zeros += other.zeros
        self.total += other.total
        for value in (other.lowest, other.highest):
            if value is not None:
                self._saw(value)

    def update(self, x: Array, dtype: DType) -> Array:
        """Add the values of ``x``, flat and of a real dtype of 32 or 64 bits. Returns the finite ones."""
        if x.size and dtype.is_float and layout(dtype).has_nonfinite(x):
            finite = np.isfinite(x)
            nan = int(np.count_nonzero(np.isnan(x)))
            self.nan += nan
            self.inf += x.size - nan - int(np.count_nonzero(finite))
            x = x[finite]
        if x.size:
            self.finite += x.size
            self.zeros += _zeros(x, dtype)
            self._saw(x.min().item())
            self._saw(x.max().item())
            self.total += _sum_of_floats(x) if dtype.is_float else _sum_of_integers(x)
        return x

    def _saw(self, value: Number) -> None:
        self.lowest = value if self.lowest is None else min(self.lowest, value)
        self.highest = value if self.highest is None else max(self.highest, value)


def moments(values: Array, counts: Array) -> Moments:
    """Those of ``values`` of 16 bits at most (float64, int64), each of which is there ``counts`` times."""
    infinite, finite = np.isinf(values), np.isfinite(values)
    made = Moments(
        finite=int(counts[finite].sum()),
        nan=int(counts[np.isnan(values)].sum()),
        inf=int(counts[infinite].sum()),
        zeros=int(counts[values == 0].sum()),
        total=_weighted_sum(values[finite], counts[finite]),
    )
    if made.finite:
        made.lowest, made.highest = values[finite].min().item(), values[finite].max().item()
    return made


def _weighted_sum(values: Array, counts: Array) -> Fraction:
    """Exact: the mantissas, as integers of 16 bits, are added up by their exponent."""
    if not values.size:
        return Fraction(0)
    mantissas, exponents = np.frexp(values)
    least = int(exponents.min())
    sums = np.zeros(int(exponents.max()) - least + 1, np.int64)
    np.add.at(sums, exponents - least, (mantissas * 2.0**16).astype(np.int64) * counts)
    return sum((int(s) * Fraction(2) ** (least + n - 16) for n, s in enumerate(sums) if s), Fraction(0))


def _zeros(x: Array, dtype: DType) -> int:
    if not dtype.is_float:
        return x.size - int(np.count_nonzero(x))
    bits = layout(dtype)
    return x.size - bits.nonzeros(x) if bits.has_zero(x) else 0


def _sum_of_integers(x: Array) -> Fraction:
    """Exact, of up to 2**31 values: the sum of the upper halves and that of the lower ones fit into 64 bits."""
    wide = x.astype(np.int64 if x.dtype.kind == "i" else np.uint64, copy=False)
    half = wide.dtype.type(32)
    upper = int(np.add.reduce(wide >> half))
    lower = int(np.add.reduce(wide & wide.dtype.type(0xFFFFFFFF)))
    return Fraction((upper << 32) + lower)


def _sum_of_floats(x: Array) -> Fraction:
    """In float64, by pairs; where that overflows, of the values made smaller by a power of two."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(np.add.reduce(x, dtype=np.float64))
    if math.isfinite(total):
        return Fraction(total)
    return Fraction(float(np.add.reduce(np.ldexp(x, -64)))) * 2**64
