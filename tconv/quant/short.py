"""Which tensors lose too much by being quantized, and what becomes of them instead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tconv.ops import CastTo

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.step import Scan
    from tconv.tensor import Tensor


class Short(NamedTuple):
    """How much of a tensor would have been left, in dB, and what it becomes; None: it stays as it is."""

    sqnr: float
    dtype: DType | None

    def __str__(self) -> str:
        return f"{f'becomes {self.dtype}' if self.dtype else 'stays as it is'}: {self.sqnr:.1f} dB"


def fallen_short(
    tensors: Sequence[Tensor], quantized: Sequence[Tensor], scan: Scan, step: str, least: float, other: DType
) -> Mapping[str, Short]:
    """Those of ``quantized`` of which ``step`` leaves less than ``least`` dB. Each becomes ``other``, unless that would
    leave no more, or has no room for its values. ``tensors``: all as they are before.
    """
    short = {name: sqnr for name, sqnr in _sqnr(quantized, scan, step).items() if sqnr < least}
    cast = [t.then(CastTo(dtype=other, step=step)) for t in tensors if t.spec.name in short and t.spec.dtype != other]
    instead = _sqnr(cast, scan, step)
    return {name: Short(sqnr, other if instead.get(name, -math.inf) > sqnr else None) for name, sqnr in short.items()}


def _sqnr(tensors: Sequence[Tensor], scan: Scan, step: str) -> dict[str, float]:
    """How much of each tensor ``step`` leaves, by name: less than nothing if values overflow."""
    found = {}
    for tensor, account in zip(tensors, scan(tensors, True), strict=True):
        for key, lost in account.by_cast.items():
            if key.step == step and lost.detail is not None:
                found[tensor.spec.name] = -math.inf if lost.overflow else lost.detail.sqnr
    return found
