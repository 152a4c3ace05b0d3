"""Quantization as an operation on one tensor, and its inverse: as data, for fusing, cutting and printing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tconv.dtypes import DTYPES, DType
from tconv.ops import Op

if TYPE_CHECKING:
    from typing_extensions import Self

    from tconv.ops import Array
    from tconv.quant.grid import Grid
    from tconv.tensor import Spec


@dataclass(frozen=True, eq=False)
class Numbers:
    """float32 ``scale`` and ``zero`` point, one for each channel or one for all; flat. ``zero`` is None if it is 0."""

    scale: Array
    zero: Array | None = None

    def __eq__(self, other: object) -> bool:
        """By value, so that the same is done to what has equal numbers."""
        return isinstance(other, Numbers) and (
            self is other or (_same(self.scale, other.scale) and _same(self.zero, other.zero))
        )

    def __hash__(self) -> int:
        return hash((self.scale.size, self.scale[:4].tobytes()))


def _same(x: Array | None, y: Array | None) -> bool:
    return x is y or (x is not None and y is not None and x.dtype == y.dtype and np.array_equal(x, y))


UNDECIDED = Numbers(np.ones(1, np.float32))  # stands where values have not been looked at


@dataclass(frozen=True, kw_only=True)
class Linear(Op):
    """What the two directions share: numbers that differ along ``axis``, or for every ``group`` elements in a row."""

    grid: Grid
    numbers: Numbers
    axis: int | None = None
    group: int | None = None
    step: str = ""

    def below(self) -> Self | None:
        if self.group is not None or self.axis == 0:
            return None
        return self if self.axis is None else replace(self, axis=self.axis - 1)


@dataclass(frozen=True, kw_only=True)
class Quantize(Linear):
    """Values onto the grid."""

    def spec(self, spec: Spec) -> Spec:
        attrs = {**spec.attrs, "quantized": self.grid.name}
        return replace(spec, dtype=self.grid.dtype, range=None, attrs=attrs)


@dataclass(frozen=True, kw_only=True)
class Dequantize(Linear):
    """What lies on the grid as values of ``dtype``, a float; ``on_overflow`` as of a cast."""

    dtype: DType = DTYPES["float32"]
    on_overflow: str = "error"

    def spec(self, spec: Spec) -> Spec:
        attrs = {key: value for key, value in spec.attrs.items() if key != "quantized"}
        return replace(spec, dtype=self.dtype, range=None, attrs=attrs)
