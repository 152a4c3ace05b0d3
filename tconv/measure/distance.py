"""How far apart two arrays are, value by value, exactly 0 where they are equal: for any two dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tconv.casts.bits import layout
from tconv.casts.rounding import split
from tconv.measure.elements import plain

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array


def apart(a: Array, b: Array, of: tuple[DType, DType]) -> Array:
    """|a - b| of flat arrays of the two dtypes: uint64 and exact for integers of like sign, else float64, rounded once.

    Equal infinities, and two NaNs, are 0 apart; a NaN and a number are NaN apart. Complex numbers are as far apart as
    the magnitude of their difference says.
    """
    if any(dtype.kind == "complex" for dtype in of):
        (real, imaginary), (other_real, other_imaginary) = map(_parts, (a, b), of)
        parts = _apart(real, other_real), _apart(imaginary, other_imaginary)
        with np.errstate(over="ignore"):
            found: Array = np.hypot(*parts)
        found[np.isnan(parts[0]) | np.isnan(parts[1])] = np.nan  # which hypot is not beside an infinity
        return found
    return _apart(plain(a, of[0]), plain(b, of[1]))


def magnitudes(x: Array, dtype: DType) -> Array:
    """|x| as float64, rounded once."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = x.astype(np.complex128) if dtype.kind == "complex" else plain(x, dtype).astype(np.float64)
        found: Array = np.abs(wide)
    return found


def ulps(a: Array, b: Array, dtype: DType) -> int:
    """The most steps from one number of the float ``dtype`` to the next that lie between two values; 0 and -0 are one.

    Pairs with a NaN do not count.
    """
    numbers = ~(np.isnan(a) | np.isnan(b))
    if not numbers.any():
        return 0
    return int(_between(_steps(a[numbers], dtype), _steps(b[numbers], dtype)).max())


def _steps(x: Array, dtype: DType) -> Array:
    """How many steps each number is away from 0, with its sign."""
    bits = layout(dtype)
    signed = x.view(bits.signed).astype(np.int64)
    steps: Array = np.where(signed < 0, -(signed & (bits.sign - 1)), signed)
    return steps


def _parts(x: Array, dtype: DType) -> tuple[Array, Array]:
    if dtype.kind == "complex":
        return x.real, x.imag
    return plain(x, dtype), np.zeros(x.size)


def _apart(x: Array, y: Array) -> Array:
    wide = [v.dtype.kind in "iu" and v.dtype.itemsize == 8 for v in (x, y)]
    if any(wide):
        kind = np.promote_types(x.dtype, y.dtype)
        if kind.kind in "iu":
            return _between(x.astype(kind, copy=False), y.astype(kind, copy=False))
        return _difference(*_halves(x), *_halves(y))
    return _difference(_double(x), 0, _double(y), 0)


def _double(x: Array) -> Array:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return x.astype(np.float64, copy=False)


def _between(x: Array, y: Array) -> Array:
    """|x - y| of 64-bit integers: the difference of the larger and the smaller one, which fits without a sign."""
    found: Array = np.maximum(x, y).view(np.uint64) - np.minimum(x, y).view(np.uint64)
    return found


def _halves(x: Array) -> tuple[Array, Array | int]:
    """Two float64 whose exact sum is x."""
    return split(x) if x.dtype.kind in "iu" else (_double(x), 0)


def _difference(x: Array, x_low: Array | int, y: Array, y_low: Array | int) -> Array:
    """|(x + x_low) - (y + y_low)|. Where that is nearly 0, x and y are within a factor of two: their difference is
    exact (Sterbenz), and so the result is 0 for equals only.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        found: Array = np.abs((x - y) + (x_low - y_low))
    odd = ~np.isfinite(found)
    if odd.any():
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        found[odd & same] = 0
    return found
