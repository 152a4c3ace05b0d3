"""The links of a fused run that go onto a grid of quantized numbers and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tconv import casts
from tconv.account import CastKey
from tconv.casts.extent import extent
from tconv.casts.fidelity import add_errors
from tconv.dtypes import DTYPES, DType
from tconv.fuse.segments import Values
from tconv.lost import Detail, Lost
from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.channels import Window
    from tconv.ops import Array, Pick
    from tconv.quant.op import Dequantize, Numbers, Quantize

FLOAT32, FLOAT64 = DTYPES["float32"], DTYPES["float64"]


@dataclass(frozen=True)
class Quantizing:
    """One rounding to float32, then onto the grid; what lies beyond it becomes its end."""

    op: Quantize
    nth: int = 0

    @property
    def dtype(self) -> DType:
        return self.op.grid.dtype

    def enter(self, x: Array, src: DType, window: Window) -> Values:
        return Values(x, src)

    def leave(
        self, values: Values, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        """The numbers on the grid, into ``out`` if it is given. The account has the errors, if ``detail`` is asked for,
        and counts nothing: that values are rounded is what was asked for.
        """
        x, src, _ = values
        if src != FLOAT32:
            x, _ = casts.cast(x, FLOAT32, src=src, on_overflow="saturate")
        made = np.empty(x.size, self.dtype.numpy) if out is None else out
        spread, pick = window.spread(x)
        scale, zero = _spread(self.op.numbers, pick)
        work = buffer("grid", FLOAT32.numpy, x.size).reshape(spread.shape)
        self.op.grid.quantize(spread, scale, zero, made.reshape(spread.shape), work)
        lost = Lost(x.size, detail=Detail() if detail else None)
        if lost.detail is not None and x.size:
            found = extent(x, FLOAT32)
            if found.low is not None and found.high is not None:
                lost.spans(found.low, found.high)
            back = self.op.grid.dequantize(made.reshape(spread.shape), scale, zero)
            add_errors(lost.detail, x, (spread - back).reshape(-1))
        return made, lost

    def key(self, src: DType) -> CastKey:
        return CastKey(self.op.step, src, self.dtype, "saturate", self.nth)

    def numbered(self, nth: int) -> Quantizing:
        """The same, of which ``nth`` came before."""
        return replace(self, nth=nth)


@dataclass(frozen=True)
class Dequantizing:
    """(q - zero point) * scale, exact but for one rounding to the op's dtype."""

    op: Dequantize
    nth: int = 0

    @property
    def dtype(self) -> DType:
        return self.op.dtype

    def enter(self, x: Array, src: DType, window: Window) -> Values:
        """What lies on the grid: as float32 where that is the answer, else exact, to be rounded once and judged."""
        spread, pick = window.spread(x)
        scale, zero = _spread(self.op.numbers, pick)
        exact = self.dtype != FLOAT32 or float(np.max(scale, initial=0)) * self.op.grid.reach > FLOAT32.max
        made = self.op.grid.dequantize(spread, scale, zero, exact=exact)
        return Values(made.reshape(-1), FLOAT64 if exact else FLOAT32)

    def leave(
        self, values: Values, window: Window, out: Array | None = None, *, detail: bool = False
    ) -> tuple[Array, Lost]:
        return casts.cast(values.x, self.dtype, out, src=values.dtype, on_overflow=self.op.on_overflow, detail=detail)

    def key(self, src: DType) -> CastKey:
        return CastKey(self.op.step, src, self.dtype, self.op.on_overflow, self.nth)

    def numbered(self, nth: int) -> Dequantizing:
        """The same, of which ``nth`` came before."""
        return replace(self, nth=nth)


def _spread(numbers: Numbers, pick: Pick) -> tuple[Array | float, Array | float | None]:
    scale = pick(numbers.scale)  # type: ignore[arg-type]  # an array is as good a sequence of numbers
    zero = None if numbers.zero is None else pick(numbers.zero)  # type: ignore[arg-type]  # as above
    return scale, zero
