"""How near results are to what they were made of: the part of the account that is only computed when asked for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tconv import opencv
from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.lost import Detail
    from tconv.ops import Array

SMALL = 1 << 14  # elements; for fewer importing OpenCV costs more than it saves
LITTLE = 1e-280  # a sum of squares that is not larger may lack some that are too small for float64


def add_errors(detail: Detail, source: Array, error: Array) -> None:
    """Add the ``error`` of each value of ``source``: flat floats, not empty, the errors exact. They are
    overwritten. An infinite or NaN error says that there is none to speak of: the value is none itself, or overflowed.
    """
    worst = _greatest(error)
    if not math.isfinite(worst):
        kept = np.isfinite(error)
        source, error = source[kept], error[kept]
        worst = _greatest(error)
    detail.signal += squares(source)
    if worst:
        changed = np.not_equal(error, 0, out=buffer("truth", np.dtype(bool), error.size))
        detail.inexact += int(np.count_nonzero(changed))
        detail.noise += squares(error)
        detail.max_abs_error = max(detail.max_abs_error, worst)
        with np.errstate(invalid="ignore"):
            share = np.divide(error, source, out=error)  # NaN where both are 0
        detail.max_rel_error = max(detail.max_rel_error, float(np.fmax.reduce(share)), -float(np.fmin.reduce(share)))


def add_exact(detail: Detail, source: Array) -> None:
    """Add finite numbers that did not change."""
    detail.signal += squares(source)


def count_nonfinite(detail: Detail, source: Array) -> None:
    """Add the NaNs and infinities among floats."""
    detail.nan += int(np.count_nonzero(np.isnan(source)))
    detail.inf += int(np.count_nonzero(np.isinf(source)))


def _greatest(a: Array) -> float:
    """The greatest magnitude, or 0; NaN if there is one."""
    return max(float(np.maximum.reduce(a, initial=0)), -float(np.minimum.reduce(a, initial=0)))


def squares(a: Array) -> Fraction:
    """The sum of the squares of the finite values of the flat ``a``, to the precision of float64 but not bound to its
    range: what lies outside comes from the values made larger or smaller by a power of two.
    """
    with np.errstate(all="ignore"):
        total = _squares(a)
    if LITTLE < total < math.inf:
        return Fraction(total)
    a = a.astype(np.float64)
    a = a[np.isfinite(a)]
    exponent = math.frexp(_greatest(a))[1]
    return Fraction(_squares(np.ldexp(a, -exponent))) * Fraction(4) ** exponent


def _squares(a: Array) -> float:
    """The same in float64. OpenCV makes no array of float64 for it, which is what takes long; what is one is no reason
    to import it.
    """
    if a.size < SMALL or a.dtype.kind != "f" or (a.dtype == np.float64 and opencv.loaded() is None):
        wide = a.astype(np.float64, copy=False)
        return float(np.einsum("i,i->", wide, wide))
    cv2 = opencv.load()
    return float(cv2.norm(a[None], cv2.NORM_L2SQR))
