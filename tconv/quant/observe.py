"""What the values of a tensor are like, by channel: extremes in one pass, a distribution in a second one.

Pieces come in any order from any thread; the outcome is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv.casts.rounding import held, widened
from tconv.channels import Window, cuts

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Spec

PIECE = 1 << 17  # elements looked at in one go
BINS = 2048  # of a distribution by channel
FINE = 1 << 14  # of one of all values
FEW = 1 << 18  # so many values are kept as they are


class Channels(NamedTuple):
    """How the elements of an array of ``shape`` share numbers: all do, or those of a channel of ``axis``."""

    shape: tuple[int, ...]
    axis: int | None

    @property
    def number(self) -> int:
        return 1 if self.axis is None else self.shape[self.axis]


def channels(spec: Spec, axis: int | None, group: int | None) -> Channels:
    """Those of a tensor with numbers along ``axis`` or, with ``group``, for so many elements in a row."""
    if group is not None:
        return Channels((prod(spec.shape) // group, group), 0)
    return Channels(spec.shape, axis)


def blocks(lo: int, x: Array, how: Channels) -> Iterator[tuple[slice, Array]]:
    """The flat piece ``x``, which begins at element ``lo``, as rows, each of a channel; which ones the slice says."""
    for a, b, told in cuts(lo, lo + x.size, how.shape, how.axis, PIECE):
        part = x[a - lo : b - lo]
        if how.axis is None:
            yield slice(0, 1), part.reshape(1, -1)
        elif told is None:
            spread, _ = Window(how.shape, how.axis).spread(part)
            yield slice(0, how.number), spread.transpose(1, 0, 2).reshape(how.number, -1)
        else:
            yield slice(*told), part.reshape(told[1] - told[0], -1)


class Extremes:
    """The least and the greatest value of each channel, as float64; infinities and NaN are counted and left out."""

    def __init__(self, dtype: DType, how: Channels) -> None:
        self._dtype, self._how = dtype, how
        self._lock = threading.Lock()
        self.low, self.high = np.full(how.number, np.inf), np.full(how.number, -np.inf)
        self.nan = self.inf = 0

    def update(self, lo: int, x: Array) -> None:
        """Add the flat values from element ``lo`` on."""
        plain, dtype = held(x, self._dtype)
        wide = widened(plain, dtype) if dtype.is_float else plain
        for which, rows in blocks(lo, wide, self._how):
            low, high = rows.min(axis=1), rows.max(axis=1)
            nan = inf = 0
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                nan, inf = int(np.count_nonzero(np.isnan(rows))), int(np.count_nonzero(np.isinf(rows)))
                finite = np.isfinite(rows)
                low, high = np.where(finite, rows, np.inf).min(axis=1), np.where(finite, rows, -np.inf).max(axis=1)
            with self._lock:
                self.nan, self.inf = self.nan + nan, self.inf + inf
                np.minimum(self.low[which], low, out=self.low[which])
                np.maximum(self.high[which], high, out=self.high[which])

    def bounds(self) -> tuple[Array, Array]:
        """Least and greatest; 0 for a channel without values."""
        empty = self.low > self.high
        return np.where(empty, 0, self.low), np.where(empty, 0, self.high)


@dataclass(frozen=True)
class Distribution:
    """Values of one channel in ascending order (float64), and how many there are of each."""

    values: Array
    counts: Array


class Histograms:
    """How the values of each channel are distributed between the bounds of that channel: as they are if they are
    ``FEW`` (``size`` tells), else in bins of equal width, of which the middle stands for all in it.
    """

    def __init__(self, channels: int, low: Array, high: Array, size: int) -> None:
        self._low, self._high = low, high
        self._lock = threading.Lock()
        self._few: list[tuple[slice, Array]] | None = [] if size <= FEW else None
        self._bins = FINE if channels == 1 else BINS
        self._counts = None if self._few is not None else np.zeros((channels, self._bins), np.int64)

    def update(self, lo: int, x: Array, dtype: DType, how: Channels) -> None:
        """Add the flat, finite values from element ``lo`` on of a tensor of ``dtype``."""
        plain, dtype = held(x, dtype)
        wide = widened(plain, dtype) if dtype.is_float else plain
        for which, rows in blocks(lo, wide, how):
            if self._few is not None:
                with self._lock:
                    self._few.append((which, rows.astype(np.float64)))
                continue
            numbers = self._numbers(which, rows)
            count = which.stop - which.start
            flat = numbers + np.arange(count)[:, None] * self._bins
            found = np.bincount(flat.reshape(-1), minlength=count * self._bins).reshape(count, self._bins)
            with self._lock:
                assert self._counts is not None
                self._counts[which] += found

    def _numbers(self, which: slice, rows: Array) -> Array:
        low, high = self._low[which, None], self._high[which, None]
        width = np.where(high > low, high - low, 1)
        share = (rows.astype(np.float64) - low) / width * self._bins
        numbers: Array = np.clip(share, 0, self._bins - 1).astype(np.int64)
        return numbers

    def of(self, channel: int) -> Distribution:
        """What there is in one channel."""
        if self._few is not None:
            parts = [rows[channel - which.start] for which, rows in self._few if which.start <= channel < which.stop]
            return Distribution(*np.unique(np.concatenate(parts or [np.empty(0)]), return_counts=True))
        assert self._counts is not None
        there = np.flatnonzero(self._counts[channel])
        low, high = self._low[channel], self._high[channel]
        middles = low + (there + 0.5) / self._bins * (high - low)
        return Distribution(middles, self._counts[channel, there])
