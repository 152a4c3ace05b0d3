"""gamma: values in [0, 1] to the power of 1/g, which makes linear light what screens show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tconv.errors import TconvError, UsageError
from tconv.ops import Elementwise
from tconv.step import Step
from tconv.steps.touch import on_touched

if TYPE_CHECKING:
    from tconv.ops import Array, Pick
    from tconv.tensor import Spec, Stream, Tensor


@dataclass(frozen=True)
class Gamma(Step):
    """x to the power of 1/``g``; the range of the values must be known to lie in [0, 1], so that scale comes first."""

    name: ClassVar[str] = "gamma"
    usage: ClassVar[str] = "gamma(2.2)"
    rounds: ClassVar[bool] = True

    g: float

    def __post_init__(self) -> None:
        if not 0 < self.g < float("inf"):
            raise UsageError(f"g is {self.g}; it must be above 0", step="gamma")

    def apply(self, stream: Stream) -> Stream:
        return on_touched(stream, self, self._gamma)

    def _gamma(self, tensor: Tensor) -> Tensor:
        known = tensor.spec.range
        if known is None or known[0] < 0 or known[1] > 1 or not tensor.spec.dtype.is_float:
            raise TconvError("gamma is for floats in [0, 1]", remedy="scale first, or say --range 0,1")
        return tensor.then(Power(dtype=tensor.spec.dtype, exponent=1 / self.g, step=str(self)))

    def __str__(self) -> str:
        return f"gamma({self.g:g})"


@dataclass(frozen=True, kw_only=True)
class Power(Elementwise):
    """x ** exponent; fused with what stands beside it, and a table for 8-bit pictures, without further ado."""

    exponent: float

    def spec(self, spec: Spec) -> Spec:
        low, high = spec.range or (0.0, 1.0)
        return replace(spec, range=(low**self.exponent, high**self.exponent))

    def compute(self, x: Array, pick: Pick) -> Array:
        x **= self.exponent
        return x
