"""How much a quantized distribution tells of the values', for many ranges at once: Kullback-Leibler divergence.

The distribution is counted in bins of equal width. For each range two are compared: what is left of it when all beyond
the range is moved to its ends (p), and the same with the counts of each quantized level spread evenly over those of its
bins in which there is something (q). S. Migacz, "8-bit Inference with TensorRT", 2017.

The bins of all ranges lie behind each other in flat arrays, so that one call of NumPy does for all of them what a loop
would do for each; sums are in the order in which ``numpy.sum`` adds up each of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.grid import Grid
    from tconv.quant.observe import Distribution

RESOLUTION = 2048  # bins
LEAST = 1e-10  # what counts for nothing


def divergences(found: Distribution, how: Grid, low: Array, high: Array) -> Array:
    """KL(p || q) for each of the ranges from ``low`` to ``high``, the first of which is the widest; infinite where
    nothing is in a range.
    """
    edge = max(abs(float(low[0])), abs(float(high[0]))) or 1.0
    numbers = np.clip((found.values / edge + 1) / 2 * RESOLUTION, 0, RESOLUTION - 1).astype(np.int64)
    counts = np.bincount(numbers, weights=found.counts, minlength=RESOLUTION)
    middles = ((np.arange(RESOLUTION) + 0.5) / RESOLUTION * 2 - 1) * edge
    first, end = np.searchsorted(middles, low, "left"), np.searchsorted(middles, high, "right")
    losses = np.full(len(low), np.inf)
    before = np.append(0, np.cumsum(counts))  # of each bin
    some = np.flatnonzero(before[end] > before[first])
    if some.size:
        bins = _bins(first[some].tobytes(), end[some].tobytes())
        spread = _spread(counts, middles, bins, how, low[some], high[some])
        losses[some] = _divergence(_clipped(counts, before, bins), spread, bins)
    return losses


class _Bins(NamedTuple):
    """The bins of several ranges behind each other, with one more before each of them, in which there is nothing.

    ``number``: which bin; ``starts``, ``stops``: where the bins of each range begin and end; ``size``: of all.
    """

    number: Array
    starts: Array
    stops: Array
    size: int

    def share(self, places: Array) -> tuple[Array, Array]:
        """Of ascending places the range that each is in, and where those of each range begin."""
        begins = np.searchsorted(places, self.starts)
        return np.repeat(np.arange(len(begins)), np.diff(begins, append=len(places))), begins

    def holding(self, numbers: Array) -> tuple[Array, Array, Array, Array]:
        """Of the bins of these ascending numbers, for each range those that it has: their numbers and their places, the
        range that each is in, and where those of each range begin.
        """
        first = self.number[self.starts]
        low, high = np.searchsorted(numbers, first), np.searchsorted(numbers, self.number[self.stops - 1], "right")
        ends = np.cumsum(high - low)
        begins = ends - (high - low)
        which = np.repeat(np.arange(len(first)), high - low)
        found = numbers[np.arange(ends[-1]) + (low - begins)[which]]
        return found, found + (self.starts - first)[which], which, begins


@lru_cache(2)  # they are the same for most channels of a tensor
def _bins(first: bytes, end: bytes) -> _Bins:
    begin, stop = np.frombuffer(first, np.int64), np.frombuffer(end, np.int64)
    lengths = stop - begin + 1
    stops = np.cumsum(lengths)
    starts = stops - lengths
    number = np.arange(stops[-1]) - np.repeat(starts - begin + 1, lengths)
    number[starts] = RESOLUTION  # the one in which there is nothing
    return _Bins(number, starts + 1, stops, int(stops[-1]))


def _clipped(counts: Array, before: Array, bins: _Bins) -> Array:
    """p, times all there is: what lies beyond a range is at its ends."""
    kept = np.append(counts, 0)[bins.number]
    kept[bins.starts] += before[bins.number[bins.starts]]
    kept[bins.stops - 1] += before[-1] - before[bins.number[bins.stops - 1] + 1]
    return kept


def _spread(counts: Array, middles: Array, bins: _Bins, how: Grid, low: Array, high: Array) -> Array:
    """q, times what there is in the range: the counts of each level, evenly over its bins that hold something."""
    number, there, which, begins = bins.holding(np.flatnonzero(counts))
    scale, zero = how.parameters(low, high)
    zeros = None if zero is None else zero.astype(np.float32)[which]
    q = np.empty(there.size, how.dtype.numpy)
    how.quantize(middles.astype(np.float32)[number], scale[which], zeros, q)
    values = how.dequantize(q, scale[which], zeros)
    new = np.append(True, values[1:] != values[:-1])  # they ascend within each range
    new[begins] = True
    level = np.cumsum(new) - 1
    mass, width = np.bincount(level, weights=counts[number]), np.bincount(level)
    spread = np.zeros(bins.size)
    spread[there] = (mass / width)[level]
    return spread


def _divergence(p: Array, q: Array, bins: _Bins) -> Array:
    """KL of each range, of counts; what q lacks counts as a little."""
    there = np.flatnonzero(p != 0)  # which is faster of truths than of numbers
    which, begins = bins.share(there)
    p_sum, q_sum = (np.add.reduceat(x, bins.starts - 1) for x in (p, q))
    ours, theirs = p[there] / p_sum[which], q[there] / q_sum[which]
    terms = ours * np.log(ours / np.maximum(theirs, LEAST))
    padded = np.insert(terms, begins, 0)
    found: Array = np.add.reduceat(padded, begins + np.arange(len(begins)))
    return found
