"""One block of real values to float4, the float without infinity and NaN, with the account of what that lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tconv.casts.bits import layout
from tconv.casts.fidelity import add_errors
from tconv.casts.kinds import count_over
from tconv.casts.rounding import nearest, widened

if TYPE_CHECKING:
    from tconv.casts.extent import Extent
    from tconv.casts.kinds import Pair
    from tconv.lost import Lost
    from tconv.ops import Array

BEYOND = 7  # what is as far from 0 as this or farther rounds to 8, if there were one; 6 is the largest float4


def float_to_float4(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """To nearest, once. There is neither infinity nor NaN: these are 6, -6 and 0, and counted."""
    src, dst, _ = pair
    wide = widened(x, src)
    nearest(x, src, dst, out)
    missed = np.zeros(x.size, bool)
    if not found.within(dst.min, dst.max):
        nan, infinite = np.isnan(wide), np.isinf(wide)
        over = (np.abs(wide) >= BEYOND) & ~infinite
        missed = nan | infinite | over
        lost.nan += int(np.count_nonzero(nan))
        lost.infinite += int(np.count_nonzero(infinite))
        count_over(wide, over, lost)
        out.view(np.uint8)[nan] = 0
    lost.underflow += int(np.count_nonzero(wide[~missed])) - layout(dst).nonzeros(out[~missed])
    if lost.detail is not None:
        add_errors(lost.detail, wide, np.where(missed, np.nan, wide - widened(out, dst)))


def int_to_float4(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """To nearest; 5 is the one integer in its range that it lacks."""
    nearest(x, pair.src, pair.dst, out)
    fits = np.ones(x.size, bool)
    if not found.within(-BEYOND + 1, BEYOND - 1):
        fits = (x < BEYOND) & (x > -BEYOND)
        count_over(x, ~fits, lost)
    values, made = x[fits].astype(np.float64), widened(out[fits], pair.dst).astype(np.float64)
    lost.inexact += int(np.count_nonzero(values != made))
    if lost.detail is not None and values.size:
        add_errors(lost.detail, values, values - made)
