"""The links of a fused run: arithmetic in float64 with one rounding, or a look at the values where they stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tconv import casts
from tconv.account import CastKey, RangeKey
from tconv.casts.extent import outside
from tconv.dtypes import DTYPES, DType
from tconv.lost import Lost
from tconv.ops import Elementwise

if TYPE_CHECKING:
    from tconv.channels import Window
    from tconv.ops import Array

FLOAT64 = DTYPES["float64"]


class Values(NamedTuple):
    """Flat values of ``dtype`` that a link is to work on. ``beyond``: where arithmetic on finite values left the range
    of float64, so that they are infinite; None if it did so nowhere.
    """

    x: Array
    dtype: DType
    beyond: Array | None = None

    def alone(self, n: int) -> Values:
        """The one at ``n`` by itself."""
        beyond = self.beyond is not None and self.beyond[n]
        return Values(self.x[n : n + 1], self.dtype, np.ones(1, bool) if beyond else None)


@dataclass(frozen=True)
class Rounding:
    """Arithmetic in float64, then one rounding to ``dtype``. ``nth``: how many equal ones came before it."""

    arithmetic: tuple[Elementwise, ...]
    dtype: DType
    on_overflow: str
    step: str
    nth: int = 0

    def enter(self, x: Array, src: DType, window: Window) -> Values:
        """The values that are to be rounded."""
        return computed(self.arithmetic, x, src, window)

    def leave(
        self, values: Values, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        """The values rounded, into ``out`` if it is given, and the account of it."""
        if values.beyond is not None:
            return self._beyond(values.x, values.beyond, out, detail)
        return casts.cast(values.x, self.dtype, out, src=values.dtype, on_overflow=self.on_overflow, detail=detail)

    def _beyond(self, x: Array, beyond: Array, out: Array | None, detail: bool) -> tuple[Array, Lost]:
        """The same where some are beyond float64: that they overflow every dtype, float64 too, no cast can know. They
        are counted here, and no number is told of them.
        """
        made = np.empty(x.size, self.dtype.numpy) if out is None else out
        rest, lost = casts.cast(x[~beyond], self.dtype, src=FLOAT64, on_overflow=self.on_overflow, detail=detail)
        made[~beyond] = rest
        ends = x[beyond] if self.on_overflow == "inf" else np.copysign(FLOAT64.max, x[beyond])
        made[beyond], _ = casts.cast(ends, self.dtype, src=FLOAT64, on_overflow="saturate")
        lost.count += ends.size
        if self.dtype.kind != "bool":  # which asks whether a value is 0, and these are not
            lost.overflow += ends.size
            lost.saw(x[beyond].min().item(), x[beyond].max().item())
        return made, lost

    def key(self, src: DType) -> CastKey:
        return CastKey(self.step, src, self.dtype, self.on_overflow, self.nth)

    def numbered(self, nth: int) -> Rounding:
        """The same, of which ``nth`` came before."""
        return replace(self, nth=nth)


def computed(arithmetic: Sequence[Elementwise], x: Array, src: DType, window: Window) -> Values:
    """The flat ``x``, of dtype ``src``, after some arithmetic in float64."""
    if not arithmetic:
        return Values(x, src)
    with np.errstate(all="ignore"):  # a signalling NaN is as good as any other
        values, pick = window.spread(x.astype(np.float64))
        for op in arithmetic:
            values = op.compute(values, pick)
        values = values.reshape(-1)
        if math.isfinite(np.add.reduce(values)):
            return Values(values, FLOAT64)
        beyond = np.isinf(values) & np.isfinite(x.astype(np.float64))
    return Values(values, FLOAT64, beyond if beyond.any() else None)


@dataclass(frozen=True)
class Check:
    """A comparison with the range in which the values, of ``dtype``, were stated to lie; they stay as they are.

    ``slack``: how far outside is no matter; ``step``: which step stated it, if it was not the user; ``by_file``: and
    has it from the file.
    """

    range: tuple[float, float]
    dtype: DType
    slack: float = 0.0
    step: str = ""
    by_file: bool = False

    def enter(self, x: Array, src: DType, window: Window) -> Values:
        return Values(x, src)

    def leave(
        self, values: Values, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        low, high = self.range
        return values.x, outside(values.x, values.dtype, (low - self.slack, high + self.slack))

    def key(self, src: DType) -> RangeKey:
        return RangeKey(src, self.range, self.step, self.by_file)

    def numbered(self, nth: int) -> Check:
        """The same: one statement is as good as another."""
        return self


class Segment(Protocol):
    """One link: what goes in is made ready by ``enter``, and leaves as values of ``dtype`` with an account."""

    @property
    def dtype(self) -> DType: ...
    def enter(self, x: Array, src: DType, window: Window) -> Values: ...
    def leave(
        self, values: Values, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]: ...
    def key(self, src: DType) -> CastKey | RangeKey: ...
    def numbered(self, nth: int) -> Segment: ...
