"""What the values of a tensor are like: extremes, mean, quantiles and counts, in one pass over pieces of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tconv.dtypes import DTYPES
from tconv.measure.histogram import bins, quantile, spread
from tconv.measure.moments import Moments, moments

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array

FEW = 1 << 16  # so many values are kept as they are, and their quantiles are exact
QUANTILES = (Fraction(1, 100), Fraction(1, 2), Fraction(99, 100))
PARTS = 16  # of the spread


@dataclass(frozen=True)
class Summary:
    """What is told of the values. All but the counts is of the finite ones, and None where there are none.

    ``quantiles`` are those of ``QUANTILES``, ``spread`` the numbers of values in ``PARTS`` equal parts of [min, max];
    ``exact`` tells whether these two are exact, or took each value for the middle of its bin.
    """

    count: int
    nan: int
    inf: int
    zeros: int
    exact: bool
    min: Number | None = None
    max: Number | None = None
    mean: float | None = None
    quantiles: tuple[Number, ...] | None = None
    spread: Sequence[int] | None = None


def _magnitudes(x: Array) -> Array:
    """|x| of complex values as float64: NaN where a part is, else infinite where one is, as ``check --finite`` has it.
    What is finite and too large for float64 is the largest number there is.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found: Array = np.abs(x.astype(np.complex128))
    if not np.isfinite(found).all():
        found[np.isnan(x)] = np.nan
        found[np.isinf(found) & np.isfinite(x)] = DTYPES["float64"].max
    return found


class Measure:
    """Measures values of ``dtype``; complex ones by their magnitude, in float64.

    Extremes and counts are exact, and so is the mean of integers and of floats of 16 bits or less; that of wider ones
    comes from sums in float64. Quantiles are exact up to 16 bits and up to ``FEW`` finite values, beyond that within
    ``histogram.RESOLUTION`` of the value, or twice that of the smallest normal number. The order in which pieces are
    merged makes no difference.
    """

    def __init__(self, dtype: DType) -> None:
        self.count = 0
        self._by_magnitude = dtype.kind == "complex"
        self._dtype = DTYPES["float64"] if self._by_magnitude else dtype
        self._bins = bins(self._dtype)
        self._moments = Moments()  # of inexact bins; exact ones have all there is to know
        self._few: list[Array] = []  # the finite values, as long as they are few
        self._counts: Array | None = None  # by bin, from then on

    def update(self, x: Array) -> None:
        """Add the values of ``x``, which is flat, native and of the dtype."""
        self.count += x.size
        if self._by_magnitude:
            x = _magnitudes(x)
        if not self._bins.exact:
            x = self._moments.update(x, self._dtype)
        self._sort(x)

    def merge(self, other: Measure) -> None:
        """Add what ``other`` has seen of the same tensor."""
        self.count += other.count
        self._moments.merge(other._moments)
        for part in other._few:
            self._sort(part)
        if other._counts is not None:
            self._pour(other._counts.copy())

    def _sort(self, x: Array) -> None:
        """Keep the values, or sort them into the bins."""
        if self._counts is None and not self._bins.exact and self._moments.finite <= FEW:
            self._few.append(x.copy())
        else:
            self._pour(self._bins.count(x))

    def _pour(self, counts: Array) -> None:
        for part in (counts, *map(self._bins.count, self._few)):
            self._counts = part if self._counts is None else np.add(self._counts, part, out=self._counts)
        self._few = []

    def summary(self) -> Summary:
        """What the values are like that were seen so far."""
        values, counts = self._distribution()
        total = moments(values, counts) if self._bins.exact else self._moments
        exact = self._bins.exact or self._counts is None
        numbers = (self.count, total.nan, total.inf, total.zeros, exact)
        if total.lowest is None or total.highest is None:
            return Summary(*numbers)
        finite = np.isfinite(values)
        values, counts = values[finite], counts[finite]
        if not exact:
            values = np.clip(values, float(total.lowest), float(total.highest))
        return Summary(
            *numbers,
            min=total.lowest,
            max=total.highest,
            mean=float(total.total / total.finite),
            quantiles=tuple(quantile(values, counts, at) for at in QUANTILES),
            spread=spread(values, counts, total.lowest, total.highest, PARTS),
        )

    def _distribution(self) -> tuple[Array, Array]:
        """The values in ascending order, and how many there are of each."""
        if self._counts is None:
            kept = np.concatenate([np.empty(0, self._bins.dtype.numpy), *self._few])
            return np.unique(kept, return_counts=True)
        present = np.flatnonzero(self._counts)
        values = self._bins.values[present]
        if self._bins.exact and not self._dtype.is_float:
            values = values.astype(np.int64)
        order = np.argsort(values, kind="stable")
        return values[order], self._counts[present][order]
