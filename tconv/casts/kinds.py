"""One block of real values from each kind of dtype to each other, with the account of what that lost.

Functions take flat ``x``, not empty, and its extent; they fill ``out``, and add to ``lost``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv.casts import fast
from tconv.casts.bits import layout
from tconv.casts.extent import Extent
from tconv.casts.fidelity import add_errors, add_exact
from tconv.casts.rounding import nearest, split, widened
from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Detail, Lost, Number
    from tconv.ops import Array


class Pair(NamedTuple):
    """From which dtype to which, and what becomes of values that do not fit."""

    src: DType
    dst: DType
    policy: str


def float_to_float(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """To nearest, once; infinite or NaN is what overflowed, until it is clamped."""
    src, dst, _ = pair
    nearest(x, src, dst, out)
    if src.tiny < dst.tiny:
        lost.underflow += _flushed(x, out, src, dst)
    if lost.detail is not None:
        _add_rounding(lost.detail, x, out, pair, found)
    fits = found.within(dst.min, dst.max) or (src.max <= dst.max and dst.has_inf >= src.has_inf)
    if not fits and layout(dst).has_nonfinite(out):
        _overflowed(x, out, pair, lost)


def _add_rounding(detail: Detail, x: Array, made: Array, pair: Pair, found: Extent) -> None:
    """The errors of a rounding are exact: they are the last digits of the wider of the two formats."""
    src, dst, _ = pair
    single = np.dtype(np.float32)
    if src.digits <= dst.digits and src.tiny >= dst.tiny and src.max <= dst.max:
        wide = made if dst.bits == 32 else widened(x, src, buffer("wide", single, x.size))
        add_exact(detail, wide if found.finite else wide[np.isfinite(wide)])
        return
    wide = widened(x, src, buffer("wide", single, x.size))
    error = buffer("error", single, x.size)
    back = widened(made, dst, error)
    if back.dtype != single or wide.dtype != single:
        error = buffer("error64", np.dtype(np.float64), x.size)
    add_errors(detail, wide, np.subtract(wide, back, out=error))


def _flushed(x: Array, made: Array, src: DType, dst: DType) -> int:
    """How many non-zero values became zero. A zero stays one, so the difference of the counts tells."""
    if src.name == "float32" and dst.name == "float16" and (found := fast.flushed(x, made)) is not None:
        return found
    target = layout(dst)
    return layout(src).nonzeros(x) - target.nonzeros(made) if target.has_zero(made) else 0


def _overflowed(x: Array, made: Array, pair: Pair, lost: Lost) -> None:
    """Count what became infinite or NaN without having been so, and clamp it as the policy says."""
    src, dst, policy = pair
    wide = widened(x, src)
    over = layout(dst).nonfinite(made) & np.isfinite(wide)
    count_over(wide, over, lost)
    clamped = over
    if not dst.has_inf:
        infinite = np.isinf(wide)
        lost.infinite += int(np.count_nonzero(infinite))
        clamped = over | infinite
    if policy != "inf":
        layout(dst).clamp(made, clamped, wide < 0)


def count_over(x: Array, over: Array, lost: Lost) -> None:
    """Count those of ``x`` that are ``over``, and note how far they go."""
    offenders = x[over]
    if offenders.size:
        lost.overflow += offenders.size
        lost.saw(offenders.min().item(), offenders.max().item())


def int_to_float(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """Integers up to 2**digits are exact; what lies beyond is compared with what it became."""
    _, dst, policy = pair
    nearest(x, pair.src, dst, out)
    if found.within(-(2**dst.digits), 2**dst.digits):
        if lost.detail is not None:
            add_exact(lost.detail, x)
        return
    high, low = split(x)
    made = widened(out, dst).astype(np.float64)
    over = np.isinf(made) | np.isnan(made)
    inexact = (made - high != low) & ~over
    lost.inexact += int(np.count_nonzero(inexact))
    if lost.detail is not None:
        add_errors(lost.detail, high + low, high - made + low)
    if over.any():
        count_over(x, over, lost)
        if policy != "inf":
            layout(dst).clamp(out, over, x < 0)


def float_to_int(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """Toward zero. The bounds are powers of two, or 0: exact in any float, unlike the largest integer itself."""
    _, dst, _ = pair
    wide = widened(x, pair.src)
    whole = np.trunc(wide)
    lost.underflow += int(np.count_nonzero(whole == 0)) - int(np.count_nonzero(wide == 0))
    if Extent(_whole(found.low), _whole(found.high), found.finite).within(dst.min, dst.max):
        if lost.detail is not None:
            add_errors(lost.detail, wide, wide - whole)
        np.copyto(out, whole, casting="unsafe")
        return
    below, above, infinite = whole < float(dst.min), whole >= float(dst.max + 1), np.isinf(wide)
    lost.nan += int(np.count_nonzero(np.isnan(wide)))
    lost.infinite += int(np.count_nonzero(infinite))
    count_over(wide, (below | above) & ~infinite, lost)
    outside = below | above | np.isnan(wide)
    if lost.detail is not None:
        add_errors(lost.detail, wide, np.where(outside, np.nan, wide - whole))
    np.copyto(out, np.where(outside, 0, whole), casting="unsafe")
    out[below], out[above] = dst.min, dst.max


def _whole(value: Number | None) -> int | None:
    return None if value is None else math.trunc(value)


def int_to_int(x: Array, out: Array, pair: Pair, found: Extent, lost: Lost) -> None:
    """What is out of range becomes the bound; nothing wraps."""
    src, dst, _ = pair
    kept = x
    if not found.within(dst.min, dst.max):
        least, most = x.dtype.type(max(int(src.min), int(dst.min))), x.dtype.type(min(int(src.max), int(dst.max)))
        over = (x < least) | (x > most)
        count_over(x, over, lost)
        kept, x = x[~over], np.clip(x, least, most)
    if lost.detail is not None:
        add_exact(lost.detail, kept)
    np.copyto(out, x, casting="unsafe")
