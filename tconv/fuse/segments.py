"""The links of a fused run: arithmetic in float64 with one rounding, or a look at the values where they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tconv import casts
from tconv.account import CastKey, RangeKey
from tconv.casts.extent import outside
from tconv.dtypes import DTYPES, DType
from tconv.ops import Elementwise

if TYPE_CHECKING:
    from tconv.channels import Window
    from tconv.lost import Lost
    from tconv.ops import Array

FLOAT64 = DTYPES["float64"]
FULL = FLOAT64.max


@dataclass(frozen=True)
class Rounding:
    """Arithmetic in float64, then one rounding to ``dtype``. ``nth``: how many equal ones came before it."""

    arithmetic: tuple[Elementwise, ...]
    dtype: DType
    on_overflow: str
    step: str
    nth: int = 0

    def enter(self, x: Array, src: DType, window: Window) -> tuple[Array, DType]:
        """The flat values that are to be rounded, and their dtype."""
        return computed(self.arithmetic, x, src, window)

    def leave(
        self, x: Array, src: DType, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        """The values rounded, into ``out`` if it is given, and the account of it."""
        made, lost = casts.cast(x, self.dtype, out, src=src, on_overflow=self.on_overflow, detail=detail)
        if self.arithmetic and self.dtype == FLOAT64:
            _count_full(made, lost)
        return made, lost

    def key(self, src: DType) -> CastKey:
        return CastKey(self.step, src, self.dtype, self.on_overflow, self.nth)

    def numbered(self, nth: int) -> Rounding:
        """The same, of which ``nth`` came before."""
        return replace(self, nth=nth)


def computed(arithmetic: Sequence[Elementwise], x: Array, src: DType, window: Window) -> tuple[Array, DType]:
    """The flat ``x`` after some arithmetic in float64, and its dtype. None is infinite that was not so before: what is
    too large even for float64 is the largest float64 there is, ``FULL``.
    """
    if not arithmetic:
        return x, src
    values, pick = window.spread(x.astype(np.float64))
    with np.errstate(all="ignore"):
        for op in arithmetic:
            values = op.compute(values, pick)
        values = values.reshape(-1)
        if not math.isfinite(np.add.reduce(values)):
            _limit(values, x.astype(np.float64))
    return values, FLOAT64


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

    def leave(
        self, x: Array, src: DType, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        low, high = self.range
        return x, outside(x, src, (low - self.slack, high + self.slack))

    def key(self, src: DType) -> RangeKey:
        return RangeKey(src, self.range, self.step)

    def numbered(self, nth: int) -> Check:
        """The same: one statement is as good as another."""
        return self


class Segment(Protocol):
    """One link: what goes in is made ready by ``enter``, and leaves as values of ``dtype`` with an account."""

    @property
    def dtype(self) -> DType: ...
    def enter(self, x: Array, src: DType, window: Window) -> tuple[Array, DType]: ...
    def leave(
        self, x: Array, src: DType, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]: ...
    def key(self, src: DType) -> CastKey | RangeKey: ...
    def numbered(self, nth: int) -> Segment: ...
