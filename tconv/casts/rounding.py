"""Correct rounding to a float dtype: once from the exact value, to nearest, ties to even (IEEE 754-2019, 4.3.1).

The narrow targets are reached from float32, which has to hold the value either exactly or *rounded to odd*: to the
one of its two neighbours whose last bit is 1. Rounding such a number again to a format with at least two digits fewer
gives the correct rounding of the original (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008).

Values that overflow become infinite, or NaN in a dtype without infinity; callers look for them afterwards.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tconv.casts import fast
from tconv.dtypes import DTYPES

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

_HOLDER = {"int4": "int8", "uint4": "uint8", "float4_e2m1fn": "float32"}  # 4-bit values lie one a byte in memory


def nearest(x: Array, src: DType, dst: DType, out: Array) -> None:
    """Flat numbers ``x`` of dtype ``src`` rounded to the float ``dst`` into ``out``."""
    if dst.bits >= 32:
        if src.name == "float16" and dst.bits == 32:
            fast.from_half(x, out)
        else:
            np.copyto(out, widened(x, src) if src.is_float else x, casting="same_kind")
        return
    single = _single(x, src)
    if dst.name == "float16":
        fast.to_half(single, out)
    elif dst.name == "bfloat16":
        np.copyto(out, single, casting="unsafe")
    else:
        np.take(_from_brain(dst), _odd_brain(single), out=out.view(np.uint8), mode="clip")


def widened(x: Array, src: DType, into: Array | None = None) -> Array:
    """The same values as float32, or as float64 if that is what they are; exact. ``into``: float32, to be used where
    there are none yet.
    """
    if src.bits >= 32:
        return x
    out = np.empty(x.size, np.float32) if into is None else into
    if src.bits <= 8:
        np.take(_values(src), x.view(np.uint8), out=out, mode="clip")
    elif src.name == "bfloat16":
        np.copyto(out, x)
    else:
        fast.from_half(x, out)
    return out


def held(x: Array, dtype: DType) -> tuple[Array, DType]:
    """The flat ``x`` as a dtype that holds its values and that NumPy computes with; what is one already stays."""
    if dtype.bits >= 8:
        return x, dtype
    holder = DTYPES[_HOLDER[dtype.name]]
    return x.astype(holder.numpy), holder


def split(x: Array) -> tuple[Array, Array]:
    """Integers as sums of two float64 arrays: the first is exact but for some ten low bits, which the second holds."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64), np.zeros(1)
    # Half of the rounded value fits in where the value itself may be one too large; beyond 2**53 it is even.
    half = np.trunc(x.astype(np.float64) / 2)
    rest = x.view(np.int64) - half.astype(x.dtype).view(np.int64) * 2
    return half * 2, rest.astype(np.float64)


def _single(x: Array, src: DType) -> Array:
    """float32 that holds the values exactly or rounded to odd."""
    if src.is_float:
        wide = widened(x, src)
        return wide if src.bits < 64 else _odd_single(wide)
    if src.bits <= 16:
        return x.astype(np.float32)
    return _odd_single(x.astype(np.float64) if src.bits == 32 else _odd_double(x))


def _odd_single(x: Array) -> Array:
    """float64 → float32, rounded to odd; a NaN stays one."""
    single = x.astype(np.float32)
    back = single.astype(np.float64)
    bits = single.view(np.uint32)
    bits -= np.abs(back) > np.abs(x)  # now truncated: an infinity that a finite value became is the largest float
    bits |= back != x
    return single


def _odd_double(x: Array) -> Array:
    """64-bit integers → float64: exact up to 2**53, beyond it rounded to odd multiples of 2**11."""
    limit, step = x.dtype.type(2**53), x.dtype.type(2**11)
    rest = step - x.dtype.type(1)
    odd = (x | ((x & rest) != 0) * step) & ~rest
    large = x > limit if x.dtype.kind == "u" else (x > limit) | (x < -limit)
    short: Array = np.where(large, odd, x)
    return short.astype(np.float64)


def _odd_brain(x: Array) -> Array:
    """The upper half of float32 bits, rounded to odd: 8 digits, enough for any 8-bit float."""
    bits = x.view(np.uint32)
    odd: Array = (bits >> np.uint32(16)) | ((bits & np.uint32(0xFFFF)) != 0)
    return odd


@cache
def _from_brain(dst: DType) -> Array:
    """The 8-bit float that each bfloat16 rounds to, by its bits."""
    brain = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    with np.errstate(all="ignore"):
        rounded: Array = brain.view(np.float32).astype(dst.numpy)
    return rounded.view(np.uint8)


@cache
def _values(src: DType) -> Array:
    """The value of each 8-bit float as float32, by its bits."""
    return np.arange(256, dtype=np.uint8).view(src.numpy).astype(DTYPES["float32"].numpy)
