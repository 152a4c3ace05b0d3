"""How the bits of the float dtypes are laid out, and what can be told of values by looking at their bits only.

All of them order their magnitudes as unsigned integers do, with the sign in the highest bit. The infinities and NaNs
are the largest magnitudes; the fnuz types have one NaN instead, at the place of -0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array


@dataclass(frozen=True)
class Layout:
    """``sign``: the highest bit. ``top`` and ``normal``: the bits of the largest finite and of the smallest normal
    value. ``fnuz``: no -0, it is the NaN. Of a 4-bit type, whose sign is not the highest bit in memory, it can count
    non-zero and subnormal values only.
    """

    unsigned: np.dtype[Any]
    signed: np.dtype[Any]
    sign: int
    top: int
    normal: int
    fnuz: bool

    def has_nonfinite(self, a: Array) -> bool:
        """Whether there is an infinity or NaN in ``a`` (not empty). Two reductions, no temporary arrays."""
        if self.fnuz:
            return bool(np.minimum.reduce(a.view(self.signed)) == -self.sign)
        positive = np.maximum.reduce(a.view(self.signed)) > self.top
        return bool(positive or np.maximum.reduce(a.view(self.unsigned)) > self.top + self.sign)

    def has_zero(self, a: Array) -> bool:
        """Whether there is a 0 or -0 in ``a`` (not empty). Two reductions, no temporary arrays."""
        if np.minimum.reduce(a.view(self.unsigned)) == 0:
            return True
        return not self.fnuz and bool(np.minimum.reduce(a.view(self.signed)) == -self.sign)

    def extremes(self, a: Array) -> tuple[int, int]:
        """The bits of the least and of the greatest of ``a`` (not empty), where all are finite.

        Two reductions are enough unless all values are of one sign, no temporary arrays.
        """
        low, high = int(np.maximum.reduce(a.view(self.unsigned))), int(np.maximum.reduce(a.view(self.signed)))
        if low < self.sign:  # none is negative
            low = int(np.minimum.reduce(a.view(self.unsigned)))
        if high < 0:  # all are, and the greatest has the least magnitude
            high = int(np.minimum.reduce(a.view(self.signed))) + 2 * self.sign
        return low, high

    def nonfinite(self, a: Array) -> Array:
        """Where ``a`` is infinite or NaN."""
        bits = a.view(self.unsigned)
        found: Array = bits == self.sign if self.fnuz else (bits & self._number(self.sign - 1)) > self.top
        return found

    def nonzeros(self, a: Array) -> int:
        """How many values of ``a`` are neither 0 nor -0; a NaN is one."""
        bits = a.view(self.unsigned)
        return int(np.count_nonzero(bits if self.fnuz else bits & self._number(self.sign - 1)))

    def subnormals(self, a: Array) -> int:
        """How many values of ``a`` are neither 0 nor -0, and smaller than any normal number."""
        magnitude = buffer("magnitude", self.unsigned, a.size)
        np.bitwise_and(a.view(self.unsigned), self._number(self.sign - 1), out=magnitude)
        magnitude -= self._number(1)  # a zero becomes the largest number there is
        small = np.less(magnitude, self._number(self.normal - 1), out=buffer("truth", np.dtype(bool), a.size))
        return int(np.count_nonzero(small))

    def clamp(self, a: Array, where: Array, negative: Array) -> None:
        """Set ``a`` to the largest finite value, or to the lowest where ``negative``."""
        bits = a.view(self.unsigned)
        bits[where & negative] = self._number(self.top + self.sign)
        bits[where & ~negative] = self._number(self.top)

    def _number(self, value: int) -> Any:
        return self.unsigned.type(value)


@cache
def layout(dtype: DType) -> Layout:
    """The layout of a float dtype."""
    unsigned, signed = np.dtype(f"u{dtype.itemsize}"), np.dtype(f"i{dtype.itemsize}")
    top = int(np.array(dtype.max).astype(dtype.numpy).view(unsigned))
    return Layout(
        unsigned, signed, 1 << (dtype.bits - 1), top, 1 << (dtype.digits - 1), fnuz=dtype.name.endswith("fnuz")
    )
