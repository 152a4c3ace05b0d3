"""Casts on a device, bit for bit those of the CPU but for the bits of NaNs, and what each tensor lost.

torch's own conversions are used where they round once: between floats where the source is float32 or narrower, and to
float32 and float64 from anything. From float64 to float16 and bfloat16 torch goes by way of float32 and rounds twice;
here that float32 is rounded to odd, which makes the second rounding the right one (see ``casts/rounding.py``). Floats
become integers only where they are in range, since what torch makes of others depends on the device. 64-bit integers,
the floats of 8 and 4 bits and complex numbers are left to the CPU: ``pairs.exact`` says what is done here. A NaN
keeps its sign and as much of its bits as on the CPU, if it is a quiet one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from tconv.devices.bits import carrier, moved, numbers

if TYPE_CHECKING:
    from torch import Tensor

    from tconv.dtypes import DType
    from tconv.lost import Number

    Columns: TypeAlias = dict[str, Tensor]  # of each tensor of the batch one number, named as in Lost and Detail


_MANTISSA = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23, torch.float64: 52}  # bits
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def rounded(
    x: Tensor, src: DType, dst: DType, policy: str, *, beyond: Tensor | None = None, detail: bool
) -> tuple[Tensor, Columns]:
    """Each row of ``x``, carried elements of ``src``, as carried elements of ``dst``; and the account of each row.
    ``beyond``: which are infinite since arithmetic left the range of float64; they overflow any dtype.
    """
    value = numbers(x, src)
    infinite = torch.isinf(value) if beyond is None else torch.isinf(value) & ~beyond
    lost = _extent(value)
    if detail:
        lost["source_nan"] = _count(torch.isnan(value))
        lost["source_inf"] = _count(infinite)
    if dst.kind == "bool":
        return (value != 0).to(torch.uint8), lost
    if dst.is_float:
        made, back, over = _to_float(value, infinite, src, dst, lost)
        error = value.double() - back if detail else None
        made = made if policy == "inf" else torch.where(over, _bound(value, made), made)
        made = made if src == dst else _quiet(value, made, dst)
    else:
        made, error = _to_integer(value, infinite, src, dst, lost)
    if error is not None:
        _add_errors(lost, value.double(), error, share=_shares(src, dst))
        if dst.is_float:
            small = torch.finfo(made.dtype).smallest_normal
            lost["subnormal"] = _count((made != 0) & (made.abs() < small))
    return made, lost


def outside(x: Tensor, dtype: DType, low: Number, high: Number) -> Columns:
    """How many of each row lie outside [low, high], which are values of ``dtype``."""
    value = numbers(x, dtype)
    lost = _extent(value)
    wide = value.double()
    lost["nan"], lost["infinite"] = _count(torch.isnan(value)), _count(torch.isinf(value))
    inside = _count((wide >= low) & (wide <= high))
    lost["overflow"] = x.shape[1] - inside - lost["nan"] - lost["infinite"]
    return lost


def _to_float(value: Tensor, infinite: Tensor, src: DType, dst: DType, lost: Columns) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest floats, what they are in float64, and which of them overflowed, as those that are ``infinite`` do
    not.
    """
    made = value if src == dst else _nearest(value, carrier(dst))
    back = made.double()
    over = torch.isinf(back) & ~infinite
    lost |= _overflow(value, over)
    if src.is_float:
        lost["underflow"] = _count((value != 0) & (made == 0))
    else:
        lost["inexact"] = _count((back != value.double()) & ~over)
    return made, back, over


def _nearest(value: Tensor, dst: torch.dtype) -> Tensor:
    if dst.itemsize >= 4:
        return value.to(dst)
    wide = value.double() if not value.is_floating_point() else value
    return (_odd_single(wide) if wide.dtype == torch.float64 else wide.float()).to(dst)


def _odd_single(x: Tensor) -> Tensor:
    """float64 → float32, rounded to odd; a NaN stays one."""
    single = x.float()
    back = single.double()
    bits = single.view(torch.int32) - (back.abs() > x.abs()).int()  # truncated
    return (bits | (back != x).int()).view(torch.float32)


def _quiet(value: Tensor, made: Tensor, dst: DType) -> Tensor:
    """With the NaN for every NaN that the CPU makes of it, since what torch does differs from device to device: quiet,
    of its sign, and with the first bits of its mantissa, but for bfloat16, which ml_dtypes gives none.
    """
    if not value.is_floating_point():
        return made
    digits, bits = _MANTISSA[value.dtype], value.view(_BITS[value.itemsize]).to(torch.int64)
    payload = bits & ((1 << digits) - 1)
    shift = _MANTISSA[made.dtype] - digits
    payload = payload << shift if shift > 0 else payload >> -shift
    plain = int(np.array(np.nan, dst.numpy).view(f"i{dst.itemsize}")) | (payload if dst.name != "bfloat16" else 0)
    nan = torch.where(bits < 0, plain | torch.iinfo(moved(dst)).min, plain).to(moved(dst))
    return torch.where(torch.isnan(value), nan, made.view(moved(dst))).view(made.dtype)


def _bound(value: Tensor, made: Tensor) -> Tensor:
    """The greatest finite number of the dtype of ``made``, with the sign of the value."""
    top = torch.full_like(made, torch.finfo(made.dtype).max)
    return torch.where(value < 0, -top, top)


def _to_integer(value: Tensor, infinite: Tensor, src: DType, dst: DType, lost: Columns) -> tuple[Tensor, Tensor]:
    """Toward zero and within the range, and the errors, none (a NaN) of what was not in it."""
    wide = value.double()
    whole = wide.trunc()
    below, above = whole < float(dst.min), whole >= float(dst.max + 1)
    outside = below | above | torch.isnan(wide)
    lost |= _overflow(value, (below | above) & ~infinite)
    lost["infinite"], lost["nan"] = _count(infinite), _count(torch.isnan(wide))
    if src.is_float:
        lost["underflow"] = _count((whole == 0) & (wide != 0))
    made = torch.where(outside, 0, whole).to(torch.int64)
    made = torch.where(below, int(dst.min), torch.where(above, int(dst.max), made))
    return made.to(carrier(dst)), torch.where(outside, torch.nan, wide - whole)


def _count(which: Tensor) -> Tensor:
    return which.sum(1)


def _extent(value: Tensor) -> Columns:
    """The least and the greatest finite value; infinite where there is none."""
    wide = value.double()
    finite = torch.isfinite(wide)
    return {
        "minimum": torch.where(finite, wide, torch.inf).amin(1),
        "maximum": torch.where(finite, wide, -torch.inf).amax(1),
    }


def _overflow(value: Tensor, over: Tensor) -> Columns:
    wide = value.double()
    return {
        "overflow": _count(over),
        "lowest": torch.where(over, wide, torch.inf).amin(1),
        "highest": torch.where(over, wide, -torch.inf).amax(1),
    }


def _shares(src: DType, dst: DType) -> torch.dtype:
    """In which dtype the CPU divides errors by values: the one that holds both."""
    narrow = src.is_float and src.bits <= 32 and not (dst.is_float and dst.bits > 32)
    return torch.float32 if narrow else torch.float64


def _add_errors(lost: Columns, source: Tensor, error: Tensor, *, share: torch.dtype) -> None:
    """As ``casts.fidelity`` has them: infinite and NaN errors say that there is none to speak of."""
    kept = torch.isfinite(error)
    source, error = torch.where(kept, source, 0), torch.where(kept, error, 0)
    lost["changed"] = _count(error != 0)
    lost["max_abs_source"], lost["max_abs_error"] = source.abs().amax(1), error.abs().amax(1)
    lost["signal"], lost["noise"] = _squares(source, lost["max_abs_source"]), _squares(error, lost["max_abs_error"])
    lost["max_rel_error"] = torch.where(source != 0, error.to(share) / source.to(share), 0).abs().amax(1)


def _squares(x: Tensor, unit: Tensor) -> Tensor:
    """The sums of the squares in units of the greatest, since those of the values may be beyond float64."""
    parts = torch.where(unit[:, None] != 0, x / unit[:, None], 0)
    return (parts * parts).sum(1)
