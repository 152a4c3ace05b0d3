"""The links of a fused run: arithmetic in float64 with one rounding, or a look at the values where they stand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tconv import casts
from tconv.account import CastKey, RangeKey
from tconv.casts.extent import outside
from tconv.dtypes import DTYPES, DType
from tconv.ops import Elementwise

if TYPE_CHECKING:
    from tconv.lost import Lost
    from tconv.ops import Array, Pick

FLOAT64 = DTYPES["float64"]
FULL = FLOAT64.max


class Window(NamedTuple):
    """Where a flat piece is from: an array of ``shape``, with numbers that differ along ``axis``, and of those the one
    ``channel``, or whole groups of all channels (None).
    """

    shape: tuple[int, ...]
    axis: int | None
    channel: int | None = None

    def spread(self, x: Array) -> tuple[Array, Pick]:
        """The piece in the shape in which numbers for each channel broadcast, and how they do."""
        if self.axis is None:
            return x, lambda values: float(values[0])
        channel = self.channel
        if channel is not None:
            return x, lambda values: float(values[channel if len(values) > 1 else 0])
        inner = prod(self.shape[self.axis + 1 :])
        return x.reshape(-1, self.shape[self.axis], inner), lambda values: np.asarray(values, np.float64)[:, None]


@dataclass(frozen=True)
class Rounding:
    """Arithmetic in float64, then one rounding to ``dtype``."""

    arithmetic: tuple[Elementwise, ...]
    dtype: DType
    on_overflow: str
    step: str

    def enter(self, x: Array, src: DType, window: Window) -> tuple[Array, DType]:
        """The flat values that are to be rounded, and their dtype. None is infinite that was not so before: what is too
        large even for float64 is the largest float64 there is, ``FULL``.
        """
        if not self.arithmetic:
            return x, src
        values, pick = window.spread(x.astype(np.float64))
        with np.errstate(all="ignore"):
            for op in self.arithmetic:
                values = op.compute(values, pick)
            values = values.reshape(-1)
            if not math.isfinite(np.add.reduce(values)):
                _limit(values, x.astype(np.float64))
        return values, FLOAT64

    def leave(self, x: Array, src: DType, out: Array | None = None, *, detail: bool = False) -> tuple[Array, Lost]:
        """The values rounded, into ``out`` if it is given, and the account of it."""
        made, lost = casts.cast(x, self.dtype, out, src=src, on_overflow=self.on_overflow, detail=detail)
        if self.arithmetic and self.dtype == FLOAT64:
            _count_full(made, lost)
        return made, lost

    def key(self, src: DType) -> CastKey:
        return CastKey(self.step, src, self.dtype, self.on_overflow)


def _limit(values: Array, before: Array) -> None:
    """Put ``FULL`` for those infinities that were none before."""
    fresh = np.isinf(values) & np.isfinite(before)
    values[fresh] = np.copysign(FULL, values[fresh])


def _count_full(x: Array, lost: Lost) -> None:
    """Count what no float64 is large enough for: no cast does, as none is made."""
    full = x[np.abs(x) == FULL]
    if full.size:
        lost.overflow += full.size
        lost.saw(full.min().item(), full.max().item())


@dataclass(frozen=True)
class Check:
    """A comparison with the range in which the values, of ``dtype``, were stated to lie; they stay as they are.

    ``slack``: how far outside is no matter; ``step``: which step stated it, if it was not the user.
    """

    range: tuple[float, float]
    dtype: DType
    slack: float = 0.0
    step: str = ""

    def enter(self, x: Array, src: DType, window: Window) -> tuple[Array, DType]:
        return x, src

    def leave(self, x: Array, src: DType, out: Array | None = None, *, detail: bool = False) -> tuple[Array, Lost]:
        low, high = self.range
        return x, outside(x, src, (low - self.slack, high + self.slack))

    def key(self, src: DType) -> RangeKey:
        return RangeKey(src, self.range, self.step)


Segment: TypeAlias = "Rounding | Check"


def cuts(
    lo: int, hi: int, shape: tuple[int, ...], axis: int | None, limit: int
) -> Iterator[tuple[int, int, int | None]]:
    """Cut [lo, hi) of a C-order array into pieces of at most ``limit`` elements, each within one channel of ``axis``
    (its number is given) or made of whole groups of all channels (None).
    """
    inner = 1 if axis is None else prod(shape[axis + 1 :])
    channels = 1 if axis is None else shape[axis]
    group = inner * channels
    while lo < hi:
        if axis is None:
            end, channel = min(hi, lo + limit), None
        elif group <= limit and lo % group == 0 and hi - lo >= group:
            end, channel = lo + min(limit // group, (hi - lo) // group) * group, None
        else:
            end, channel = min(hi, (lo // inner + 1) * inner, lo + limit), lo // inner % channels
        yield lo, end, channel
        lo = end
