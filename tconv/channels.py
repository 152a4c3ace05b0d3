"""Flat pieces of an array whose channels have numbers of their own: cut so that these numbers broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.ops import Array, Pick


class Window(NamedTuple):
    """Where a flat piece is from: an array of ``shape``, with numbers that differ along ``axis``; of its channels
    those from the first to before the last of ``channels``, or whole groups of all of them (None).
    """

    shape: tuple[int, ...]
    axis: int | None
    channels: tuple[int, int] | None = None

    def spread(self, x: Array) -> tuple[Array, Pick]:
        """The piece in the shape in which numbers for each channel broadcast, and how they do."""
        if self.axis is None:
            return x, lambda values: float(values[0])
        if self.channels is None:
            inner = prod(self.shape[self.axis + 1 :])
            return x.reshape(-1, self.shape[self.axis], inner), lambda values: np.asarray(values)[:, None]
        first, end = self.channels
        if end - first == 1:
            return x, lambda values: float(values[first if len(values) > 1 else 0])
        return x.reshape(end - first, -1), lambda values: _column(values, first, end)


def _column(values: Sequence[float], first: int, end: int) -> Array:
    column: Array = np.asarray(values if len(values) == 1 else values[first:end])[:, None]
    return column


def cuts(
    lo: int, hi: int, shape: tuple[int, ...], axis: int | None, limit: int
) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
    """Cut [lo, hi) of a C-order array into pieces of at most ``limit`` elements, each of part of a channel of ``axis``,
    of some whole channels one after the other (which ones is given), or of whole groups of all channels (None).
    """
    if axis is None:
        for start in range(lo, hi, limit):
            yield start, min(hi, start + limit), None
        return
    inner, channels = prod(shape[axis + 1 :]), shape[axis]
    group = inner * channels
    while lo < hi:
        first, into = lo // inner % channels, lo % inner
        if group <= limit and lo % group == 0 and hi - lo >= group:
            end, told = lo + min(limit // group, (hi - lo) // group) * group, None
        elif into == 0 and (count := min(limit // inner, (hi - lo) // inner, channels - first)) > 1:
            end, told = lo + count * inner, (first, first + count)
        else:
            end, told = min(hi, lo - into + inner, lo + limit), (first, first + 1)
        yield lo, end, told
        lo = end
