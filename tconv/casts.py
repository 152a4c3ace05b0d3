"""Exact casts between all dtypes, and what each of them lost. No C cast outside its defined range is ever made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tconv import fastcast
from tconv.bits import layout
from tconv.errors import TconvError, UsageError
from tconv.lost import Lost, part
from tconv.rounding import nearest, widened

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

__all__ = ["POLICIES", "Lost", "cast", "check_pair", "check_policy"]

POLICIES = ("error", "saturate", "inf")


def check_policy(dst: DType, on_overflow: str) -> None:
    """Raise ``UsageError`` for a policy that does not exist, or that ``dst`` cannot follow."""
    if on_overflow not in POLICIES:
        raise UsageError(f"there is no overflow policy {on_overflow!r}", remedy=f"choose {', '.join(POLICIES)}")
    if on_overflow == "inf" and not dst.has_inf:
        raise UsageError(f"{dst} has no inf to overflow to", remedy="choose saturate or error")


def check_pair(src: DType, dst: DType) -> None:
    """Raise ``TconvError`` where there is no cast from ``src`` to ``dst`` that makes sense."""
    if src == dst:
        return
    for dtype in (src, dst):
        if dtype.bits < 8:
            raise TconvError(f"there is no cast from {src} to {dst}", remedy="8 bits are the least that is cast")
    if src.kind == "complex" != dst.kind:
        raise TconvError(
            f"a cast from {src} to {dst} would lose the imaginary parts",
            remedy="take real and imaginary part, or the magnitude, before converting",
        )


def cast(
    x: Array, dst: DType, out: Array | None = None, *, src: DType, on_overflow: str = "error"
) -> tuple[Array, Lost]:
    """The values of ``x`` (of dtype ``src``, native, any shape) as ``dst``, and what was lost.

    The result is ``out`` (of as many elements, of dtype ``dst``, apart from ``x``) if given; else an array of x's
    shape, which is ``x`` itself where nothing has to be done. Float targets are correctly rounded from the source
    value; integer targets are truncated toward zero; bool is what is not 0, NaN included, and loses nothing.
    A complex value is two real ones.

    Values out of range are the nearest value that ``dst`` has (0 for NaN), or infinite as ``on_overflow="inf"``
    says: whether they are to be refused is told by ``Lost.bad``. Raises what ``check_policy`` and ``check_pair`` do.
    """
    check_policy(dst, on_overflow)
    if src == dst:
        if out is not None:
            np.copyto(out, x.reshape(out.shape))
        return (x if out is None else out), Lost(x.size)
    check_pair(src, dst)
    flat = np.require(np.asarray(x).reshape(-1), requirements=("C", "A"))
    direct = out is not None and out.flags.carray
    made = out.reshape(-1) if out is not None and direct else np.empty(flat.size, dst.numpy)
    with np.errstate(all="ignore"):
        lost = _cast(flat, made, src, dst, on_overflow) if flat.size else Lost()
    if out is None:
        return made.reshape(x.shape), lost
    if not direct:
        out[...] = made.reshape(out.shape)
    return out, lost


def _cast(x: Array, out: Array, src: DType, dst: DType, policy: str) -> Lost:
    """Flat and not empty, into ``out``."""
    if src.kind == "complex":
        source, target = part(src), part(dst)
        return _cast(x.view(source.numpy), out.view(target.numpy), source, target, policy)
    if dst.kind == "complex":
        return _real_to_complex(x, out, src, dst, policy)
    if src.kind == "bool":
        x = (x.view(np.uint8) != 0).view(np.uint8)
    if dst.kind == "bool":
        np.not_equal(widened(x, src) if src.is_float else x, 0, out=out)
        return Lost(x.size)
    if src.is_float:
        return (_float_to_float if dst.is_float else _float_to_int)(x, out, src, dst, policy)
    return _int_to_float(x, out, src, dst, policy) if dst.is_float else _int_to_int(x, out, src, dst)


def _real_to_complex(x: Array, out: Array, src: DType, dst: DType, policy: str) -> Lost:
    real = part(dst)
    parts = out.view(real.numpy).reshape(-1, 2)
    values, lost = cast(x, real, src=src, on_overflow=policy)
    parts[:, 0], parts[:, 1] = values, 0
    return lost


def _float_to_float(x: Array, out: Array, src: DType, dst: DType, policy: str) -> Lost:
    lost, target = Lost(), layout(dst)
    overflows = src.max > dst.max or (src.has_inf and not dst.has_inf)
    flushes = src.tiny < dst.tiny
    for lo in range(0, x.size, fastcast.BLOCK):
        values, made = x[lo : lo + fastcast.BLOCK], out[lo : lo + fastcast.BLOCK]
        nearest(values, src, dst, made)
        lost.count += values.size
        if flushes:
            lost.underflow += _flushed(values, made, src, dst)
        if overflows and target.has_nonfinite(made):
            _overflowed(values, made, src, dst, policy, lost)
    return lost


def _flushed(x: Array, made: Array, src: DType, dst: DType) -> int:
    """How many non-zero values became zero. A zero stays one, so the difference of the counts tells."""
    if src.name == "float32" and dst.name == "float16" and (found := fastcast.flushed(x, made)) is not None:
        return found
    target = layout(dst)
    return layout(src).nonzeros(x) - target.nonzeros(made) if target.has_zero(made) else 0


def _overflowed(x: Array, made: Array, src: DType, dst: DType, policy: str, lost: Lost) -> None:
    """Count what became infinite or NaN without having been so, and clamp it as the policy says."""
    wide = widened(x, src)
    over = layout(dst).nonfinite(made) & np.isfinite(wide)
    _count_over(wide, over, lost)
    clamped = over
    if not dst.has_inf:
        infinite = np.isinf(wide)
        lost.infinite += int(np.count_nonzero(infinite))
        clamped = over | infinite
    if policy != "inf":
        layout(dst).clamp(made, clamped, wide < 0)


def _count_over(x: Array, over: Array, lost: Lost) -> None:
    offenders = x[over]
    if offenders.size:
        lost.overflow += offenders.size
        lost.saw(offenders.min().item())
        lost.saw(offenders.max().item())


def _int_to_float(x: Array, out: Array, src: DType, dst: DType, policy: str) -> Lost:
    """Integers up to 2**digits are exact; what lies beyond is compared with what it became."""
    lost = Lost(x.size)
    nearest(x, src, dst, out)
    exact = 2**dst.digits
    if max(-src.min, src.max) <= exact or (int(x.max()) <= exact and int(x.min()) >= -exact):
        return lost
    over = layout(dst).nonfinite(out)
    _count_over(x, over, lost)
    back = widened(out, dst).astype(np.float64)
    held = (back >= float(src.min)) & (back < float(src.max + 1))
    same = np.where(held, back, 0).astype(src.numpy) == x
    lost.inexact = int(np.count_nonzero(~(same & held | over)))
    if policy != "inf":
        layout(dst).clamp(out, over, x < 0)
    return lost


def _float_to_int(x: Array, out: Array, src: DType, dst: DType, policy: str) -> Lost:
    """Toward zero. The bounds are powers of two, or 0: exact in any float, unlike the largest integer itself."""
    lost = Lost(x.size)
    wide = widened(x, src)
    whole = np.trunc(wide)
    low, end = float(dst.min), float(dst.max + 1)
    lost.underflow = int(np.count_nonzero(whole == 0)) - int(np.count_nonzero(wide == 0))
    if whole.min() >= low and whole.max() < end:  # False if there is a NaN
        np.copyto(out, whole, casting="unsafe")
        return lost
    below, above, infinite = whole < low, whole >= end, np.isinf(wide)
    lost.nan = int(np.count_nonzero(np.isnan(wide)))
    lost.infinite = int(np.count_nonzero(infinite))
    _count_over(wide, (below | above) & ~infinite, lost)
    np.copyto(out, np.where((whole >= low) & (whole < end), whole, 0), casting="unsafe")
    out[below], out[above] = dst.min, dst.max
    return lost


def _int_to_int(x: Array, out: Array, src: DType, dst: DType) -> Lost:
    lost = Lost(x.size)
    low, high = max(int(src.min), int(dst.min)), min(int(src.max), int(dst.max))
    if (low > src.min and int(x.min()) < low) or (high < src.max and int(x.max()) > high):
        least, most = x.dtype.type(low), x.dtype.type(high)
        _count_over(x, (x < least) | (x > most), lost)
        x = np.clip(x, least, most)
    np.copyto(out, x, casting="unsafe")
    return lost
