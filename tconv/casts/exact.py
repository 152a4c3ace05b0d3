"""Exact casts between all dtypes, and what each of them lost. No C cast outside its defined range is ever made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tconv.casts.bits import layout
from tconv.casts.extent import extent
from tconv.casts.fidelity import add_exact, count_nonfinite
from tconv.casts.four import float_to_float4, int_to_float4
from tconv.casts.kinds import Pair, float_to_float, float_to_int, int_to_float, int_to_int
from tconv.casts.rounding import held, widened
from tconv.errors import TconvError, UsageError
from tconv.lost import Detail, Lost, part

if TYPE_CHECKING:
    from tconv.casts.extent import Extent
    from tconv.dtypes import DType
    from tconv.ops import Array

__all__ = ["POLICIES", "Lost", "cast", "check_pair", "check_policy"]

POLICIES = ("error", "saturate", "inf")
BLOCK = 1 << 17  # elements cast and accounted for in one go: source and result stay in a core's second-level cache


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
    if src.kind == "complex" != dst.kind:
        raise TconvError(
            f"a cast from {src} to {dst} would lose the imaginary parts",
            remedy="take real and imaginary part, or the magnitude, before converting",
        )


def cast(
    x: Array, dst: DType, out: Array | None = None, *, src: DType, on_overflow: str = "error", detail: bool = False
) -> tuple[Array, Lost]:
    """The values of ``x`` (of dtype ``src``, native, any shape) as ``dst``, and what was lost.

    The result is ``out`` (of as many elements, of dtype ``dst``, apart from ``x``) if given; else an array of x's
    shape, which is ``x`` itself where nothing has to be done. Float targets are correctly rounded from the source
    value; integer targets are truncated toward zero; bool is what is not 0, NaN included, and loses nothing.
    A complex value is two real ones.

    Values out of range are the nearest value that ``dst`` has (0 for NaN), or infinite as ``on_overflow="inf"``
    says: whether they are to be refused is told by ``Lost.bad``. ``detail`` asks for ``Lost.detail``, which costs
    several times the cast. Raises what ``check_policy`` and ``check_pair`` do.
    """
    check_policy(dst, on_overflow)
    check_pair(src, dst)
    flat = np.require(np.asarray(x).reshape(-1), requirements=("C", "A"))
    lost = Lost(detail=Detail() if detail else None)
    if src == dst:
        with np.errstate(all="ignore"):
            _account_for(flat, src, lost)
        if out is not None:
            np.copyto(out, x.reshape(out.shape))
        return (x if out is None else out), lost
    direct = out is not None and out.flags.carray
    made = out.reshape(-1) if out is not None and direct else np.empty(flat.size, dst.numpy)
    pair = Pair(src, dst, on_overflow)
    with np.errstate(all="ignore"):
        for lo in range(0, flat.size, BLOCK):
            _cast(flat[lo : lo + BLOCK], made[lo : lo + BLOCK], pair, lost)
    if out is None:
        return made.reshape(x.shape), lost
    if not direct:
        out[...] = made.reshape(out.shape)
    return out, lost


def _account_for(x: Array, dtype: DType, lost: Lost) -> None:
    """Of values that stay what they are."""
    if dtype.kind == "complex":
        x, dtype = x.view(part(dtype).numpy), part(dtype)
    for lo in range(0, x.size, BLOCK):
        block, wider = held(x[lo : lo + BLOCK], dtype)
        _found(block, wider, lost)
        if lost.detail is not None and dtype.is_float:
            wide = widened(block, wider)
            add_exact(lost.detail, wide[np.isfinite(wide)])
            lost.detail.subnormal += layout(dtype).subnormals(x[lo : lo + BLOCK])
        elif lost.detail is not None and dtype.is_integer:
            add_exact(lost.detail, block)


_KINDS = {  # by whether the source is a float, whether the target is one, and whether that has 4 bits
    (True, True, False): float_to_float,
    (True, True, True): float_to_float4,
    (False, True, False): int_to_float,
    (False, True, True): int_to_float4,
    **{(True, False, four): float_to_int for four in (False, True)},
    **{(False, False, four): int_to_int for four in (False, True)},
}


def _found(x: Array, src: DType, lost: Lost) -> Extent:
    """What is counted of any source."""
    found = extent(x, src)
    lost.count += x.size
    if found.low is not None and found.high is not None:
        lost.spans(found.low, found.high)
    if lost.detail is not None and not found.finite:
        count_nonfinite(lost.detail, widened(x, src))
    return found


def _cast(x: Array, out: Array, pair: Pair, lost: Lost) -> None:
    """Flat and not empty, into ``out``; the account is added to ``lost``."""
    src, dst, policy = pair
    if src.kind == "complex":
        parts = Pair(part(src), part(dst), policy)
        _cast(x.view(parts.src.numpy), out.view(parts.dst.numpy), parts, lost)
        return
    if dst.kind == "complex":
        _real_to_complex(x, out, pair, lost)
        return
    x, src = held(x, src)
    pair = Pair(src, dst, policy)
    found = _found(x, src, lost)
    if src.kind == "bool":
        x = (x.view(np.uint8) != 0).view(np.uint8)
    if dst.kind == "bool":
        np.not_equal(widened(x, src) if src.is_float else x, 0, out=out)
    else:
        _KINDS[src.is_float, dst.is_float, dst.bits < 8](x, out, pair, found, lost)
    if lost.detail is not None and dst.is_float:
        lost.detail.subnormal += layout(dst).subnormals(out)


def _real_to_complex(x: Array, out: Array, pair: Pair, lost: Lost) -> None:
    real = part(pair.dst)
    parts = out.view(real.numpy).reshape(-1, 2)
    values, more = cast(x, real, src=pair.src, on_overflow=pair.policy, detail=lost.detail is not None)
    parts[:, 0], parts[:, 1] = values, 0
    lost.merge(more)
