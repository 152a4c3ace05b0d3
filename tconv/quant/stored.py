"""Scales and zero points that a file has beside quantized numbers: how they go together, and what cannot be true.

``told`` is what the metadata of the file say of the tensor, if they say anything; any JSON. What they say must fit what
is there: a file of which a part is missing, renamed or of another tensor would give other values, and no error.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.errors import TconvError, UsageError
from tconv.quant.grid import INTEGERS, TARGETS, Grid, grid

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Spec


def grid_of(spec: Spec, scale: Spec, zero: Spec | None, told: Any) -> Grid:
    """The grid that the numbers lie on. Raises ``TconvError`` for what does not go together."""
    if not scale.dtype.is_float:
        raise TconvError(f"its scale is {scale.dtype}, not a float")
    if zero is not None and not zero.dtype.is_integer:
        raise TconvError(f"its zero points are {zero.dtype}, not integers")
    if zero is not None and zero.shape != scale.shape:
        raise TconvError(f"{scale.shape} scales and {zero.shape} zero points do not go together")
    name = _told(told, "to", str)
    _refuse_untrue(spec, name, zero, told)
    if name == "nf4":
        return grid("nf4")
    if spec.dtype.name == "uint4" and zero is None:
        raise TconvError(
            "uint4 without zero points may be nf4, and the file does not say so: its metadata are missing",
            remedy="take the file that quantize wrote; renamed tensors lose what is told of them",
        )
    if spec.dtype.name in INTEGERS:
        found = grid(spec.dtype.name, "affine")
        return found if zero is not None else replace(found, scheme="symmetric")
    try:
        return grid(spec.dtype.name)
    except UsageError:
        raise TconvError(f"{spec.dtype} is no dtype of quantized values") from None


def _refuse_untrue(spec: Spec, name: str | None, zero: Spec | None, told: Any) -> None:
    if name in TARGETS and grid(name).dtype != spec.dtype:
        raise TconvError(f"it is {spec.dtype}, and {name} by the metadata of the file", remedy=_AGAIN)
    scheme = _told(told, "scheme", str)
    if scheme == "affine" and zero is None:
        raise TconvError("its zero points are not there, of which the metadata of the file tell", remedy=_AGAIN)
    if scheme == "symmetric" and zero is not None:
        raise TconvError("it has zero points, and none by the metadata of the file", remedy=_AGAIN)


def shares(spec: Spec, shape: tuple[int, ...], told: Any, axis: int | None) -> tuple[int | None, int | None]:
    """The axis along which, or the number of elements in a row for which, scales of ``shape`` are; both None where one
    is for all. ``axis``: where several fit, the one that the user means. Raises ``TconvError`` where none fits.
    """
    along, group = _told(told, "axis", int), _told(told, "group", int)
    if prod(shape) == 1 and len(shape) in (0, 1, len(spec.shape)) and along is None and group is None:
        return None, None
    kept = _kept(spec.shape, shape)
    if len(shape) == 2 and (kept is None or group is not None):
        return None, _group(spec, shape, group)
    fitting = [n for n, size in enumerate(spec.shape) if n == kept or (size,) == shape]
    for said, who in ((along, " (the metadata of the file say which)"), (axis, "")):
        if said is not None:
            place = range(len(spec.shape))[said] if -len(spec.shape) <= said < len(spec.shape) else None
            if place not in fitting:
                raise TconvError(f"{prod(shape)} scales do not fit axis {said} of {spec.shape}{who}")
            fitting = [n for n in fitting if n == place]
    if len(fitting) != 1:
        which = f"any of the axes {fitting}" if fitting else "no axis"
        raise TconvError(
            f"{prod(shape)} scales fit {which} of {spec.shape}",
            remedy="say which: --step 'dequantize(axis=0)'" if fitting else "",
        )
    return fitting[0], None


def _kept(shape: tuple[int, ...], scales: tuple[int, ...]) -> int | None:
    """The one axis of scales that keep all axes of the tensor, of length 1 but for it."""
    wide = [n for n, size in enumerate(scales) if size != 1]
    fits = len(scales) == len(shape) > 1 and len(wide) == 1 and scales[wide[0]] == shape[wide[0]]
    return wide[0] if fits else None


def _group(spec: Spec, shape: tuple[int, ...], told: int | None) -> int:
    """How many elements in a row share one of the scales of ``shape``: (rows, groups of a row)."""
    rows = spec.shape[0] if len(spec.shape) > 1 else 1
    row = prod(spec.shape[1:]) if len(spec.shape) > 1 else spec.size
    if shape[0] != rows or bool(row) != bool(shape[1]) or row % max(shape[1], 1):
        raise TconvError(f"{shape} scales do not divide the rows of {spec.shape} into groups")
    group = max(row // max(shape[1], 1), 1)
    if row and told not in (None, group):
        raise TconvError(f"its groups are of {group}, and of {told} by the metadata of the file", remedy=_AGAIN)
    return group


def refuse_scales(scales: Array) -> None:
    """Refuse, by a ``TconvError``, what is no scale."""
    with np.errstate(over="ignore", under="ignore"):
        found = scales.astype(np.float32)
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise TconvError(
            "a scale is a number above 0 that float32 holds, and here are others (NaN, infinite, 0 or less)",
            remedy=_AGAIN,
        )


def refuse_zeros(zeros: Array, dtype: DType) -> None:
    """Refuse, by a ``TconvError``, zero points that are no numbers of ``dtype``; of floats, any but 0."""
    low, high = (dtype.min, dtype.max) if dtype.is_integer else (0, 0)
    wide = zeros if zeros.dtype.itemsize > 1 else zeros.astype(np.int64)
    if wide.size and not low <= int(wide.min()) <= int(wide.max()) <= high:
        raise TconvError(
            f"zero points of {dtype} are {f'from {low:g} to {high:g}' if high else '0'}, and here are others",
            remedy=_AGAIN,
        )


_AGAIN = "the file is broken: quantize again"


def _told(told: Any, key: str, kind: type) -> Any:
    """What is told under ``key``, if it is of that kind."""
    found = told.get(key) if isinstance(told, dict) else None
    return found if type(found) is kind else None
