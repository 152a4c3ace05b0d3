"""clamp: values below or above two bounds become the bound; NaN stays NaN."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, ClassVar

from tconv.errors import TconvError, UsageError
from tconv.ops import Elementwise
from tconv.step import Step
from tconv.steps.alike import once_a_kind
from tconv.steps.touch import on_touched

if TYPE_CHECKING:
    from tconv.ops import Array, Pick
    from tconv.tensor import Spec, Stream, Tensor

_EXACT = 2.0**53  # up to here every integer is a float64


@dataclass(frozen=True)
class Clamp(Step):
    """Into [``lo``, ``hi``]; the dtype stays. Integer tensors need bounds that are integers."""

    name: ClassVar[str] = "clamp"
    usage: ClassVar[str] = "clamp(0, 1)"

    lo: float
    hi: float

    def __post_init__(self) -> None:
        if not (isfinite(self.lo) and isfinite(self.hi) and self.lo <= self.hi):
            raise UsageError(
                f"the bounds {self.lo:g} and {self.hi:g} are not two numbers, the lower first", step="clamp"
            )

    def apply(self, stream: Stream) -> Stream:
        return on_touched(stream, self, once_a_kind(self._clamp))

    def _clamp(self, tensor: Tensor) -> Tensor:
        dtype = tensor.spec.dtype
        if dtype.kind in ("complex", "bool"):
            raise TconvError(f"{dtype} values have no order in which to clamp", remedy="choose tensors with --only")
        if dtype.is_integer:
            for bound in (self.lo, self.hi):
                if not float(bound).is_integer() or abs(bound) > _EXACT:
                    raise TconvError(f"{number(bound)} is no bound for {dtype}", remedy="cast to a float dtype first")
        return tensor.then(Between(dtype=dtype, lo=self.lo, hi=self.hi, step=str(self)))

    def __str__(self) -> str:
        return f"clamp({number(self.lo)}, {number(self.hi)})"


@dataclass(frozen=True, kw_only=True)
class Between(Elementwise):
    """min(max(x, lo), hi)."""

    portable: ClassVar[bool] = True

    lo: float
    hi: float

    def spec(self, spec: Spec) -> Spec:
        low, high = spec.range or (self.lo, self.hi)
        return replace(spec, range=(min(max(low, self.lo), self.hi), min(max(high, self.lo), self.hi)))

    def compute(self, x: Array, pick: Pick) -> Array:
        return x.clip(self.lo, self.hi)


def number(value: float) -> str:
    """The shortest text of a number, as it is written in a chain."""
    return repr(float(value)).removesuffix(".0")
