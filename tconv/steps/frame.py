"""What pad and letterbox share: a picture in a larger frame, and the value that the rest of the frame has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.ops import Whole

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Spec


@dataclass(frozen=True, kw_only=True)
class Frame(Whole):
    """A frame of ``height`` × ``width`` with the picture at ``top`` and ``left`` and ``fill`` around it; the height is
    ``axis``, the width the next one, what is before them is a batch.
    """

    height: int
    width: int
    top: int
    left: int
    fill: float
    axis: int

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, shape=self._shape(spec.shape))

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[: self.axis], self.height, self.width, *shape[self.axis + 2 :])

    def below(self) -> Frame | None:
        return replace(self, axis=self.axis - 1) if self.axis else None

    def apply(self, x: Array) -> Array:
        out = np.full(self._shape(x.shape), self.fill, x.dtype)
        height, width = x.shape[self.axis : self.axis + 2]
        rows, columns = slice(self.top, self.top + height), slice(self.left, self.left + width)
        where = (*(slice(None) for _ in range(self.axis)), rows, columns)
        out[where] = x
        return out


def checked_fill(fill: float, spec: Spec) -> float:
    """``fill`` as the tensor can hold it; ``TconvError`` for a value beyond its dtype or the range of its values."""
    dtype = spec.dtype
    whole = dtype.is_integer or dtype.kind == "bool"
    if not dtype.min <= fill <= dtype.max or (whole and fill != int(fill)):
        raise TconvError(f"there is no fill={fill:g} in {dtype}", remedy=f"it has {dtype.min:g} to {dtype.max:g}")
    if spec.range is not None and not spec.range[0] <= fill <= spec.range[1]:
        low, high = spec.range
        raise TconvError(
            f"fill={fill:g} is outside of [{low:g}, {high:g}], where its values lie",
            remedy="the fill is a value as they are at this place of the chain",
        )
    return int(fill) if whole else fill
