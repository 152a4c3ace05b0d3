"""Bins for the values of a dtype, made of their bits: one pass over any number of values gives their quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array

KEPT = 7  # bits of the mantissa that the bins of 32-bit and 64-bit dtypes tell apart, as bfloat16 does
# How far a value is from the middle of its bin at most, as a part of it: 0.4 %. The bins of what is smaller than any
# normal number are as wide as those next to it, and 0 stands for the first: within 0.8 % of the smallest normal number.
RESOLUTION = 2.0 ** -(KEPT + 1)


@dataclass(frozen=True)
class Bins:
    """How the values of ``dtype`` fall into bins, numbered by their upper bits.

    ``values`` (float64) has what each bin stands for. Up to 16 bits that is the one value in it, and ``exact``. Beyond
    it is the middle of the bin, cut to a whole number for integers; zero and what is next to it is 0.
    """

    dtype: DType
    values: Array
    exact: bool

    def count(self, x: Array) -> Array:
        """How many of the values of ``x``, which is flat, are in each bin. Inexact bins are for finite values."""
        if self.exact:
            bits = x.view(f"u{self.dtype.itemsize}")
        elif self.dtype.name == "float64":
            bits = (x.view(np.uint64) >> np.uint64(52 - KEPT)).view(np.int64)
        else:
            single = x if self.dtype.is_float else x.astype(np.float32)
            bits = single.view(np.uint32) >> np.uint32(23 - KEPT)
        counts: Array = np.bincount(bits, minlength=self.values.size)
        return counts


@cache
def bins(dtype: DType) -> Bins:
    """The bins of a real dtype."""
    if dtype.itemsize <= 2:
        patterns = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
        with np.errstate(invalid="ignore"):  # signalling NaNs are among them
            return Bins(dtype, patterns.view(dtype.numpy).astype(np.float64), exact=True)
    as_double = dtype.name == "float64"
    shift, carrier = (52 - KEPT, "u8") if as_double else (23 - KEPT, "u4")
    numbers = np.arange(1 << (64 - shift if as_double else 32 - shift), dtype=carrier)
    middles = (numbers << numbers.dtype.type(shift)) | numbers.dtype.type(1 << (shift - 1))
    with np.errstate(invalid="ignore"):
        values = middles.view(carrier.replace("u", "f")).astype(np.float64)
    values[[0, numbers.size // 2]] = 0
    return Bins(dtype, values if dtype.is_float else np.trunc(values), exact=False)


def quantile(values: Array, counts: Array, at: Fraction) -> Number:
    """The quantile ``at`` (0 to 1) of the ascending ``values``, each of which is there ``counts`` times.

    Between two neighbours it is interpolated linearly, as NumPy and torch do; the arithmetic is exact, rounded once.
    """
    ends = np.cumsum(counts)
    rank = at * (int(ends[-1]) - 1)
    below = math.floor(rank)
    low, high = (values[np.searchsorted(ends, k, side="right")].item() for k in (below, math.ceil(rank)))
    if low == high:
        return low  # type: ignore[no-any-return]  # an element of an array of numbers
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * (rank - below))


def spread(values: Array, counts: Array, low: Number, high: Number, number: int) -> Sequence[int]:
    """How many of the ascending ``values``, each of which is there ``counts`` times, lie in each of ``number`` equal
    parts of [low, high], the last of which includes its end. The bounds of the parts are exact.
    """
    if low == high:
        return [int(counts.sum()), *[0] * (number - 1)]
    start, width = Fraction(low), (Fraction(high) - Fraction(low)) / number
    cuts = [0, *(_below(values, start + n * width) for n in range(1, number)), values.size]
    ends = [0, *np.cumsum(counts).tolist()]
    return [ends[b] - ends[a] for a, b in pairwise(cuts)]


def _below(values: Array, edge: Fraction) -> int:
    """How many of the ascending ``values`` are less than ``edge``."""
    if values.dtype.kind != "f":
        return int(np.searchsorted(values, values.dtype.type(math.ceil(edge))))
    near = float(edge)  # no other float64 lies between the two
    return int(np.searchsorted(values.astype(np.float64), near, side="right" if near < edge else "left"))
