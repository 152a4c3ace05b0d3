"""Scales and zero points from the values of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tconv.quant.observe import channels
from tconv.quant.op import Numbers
from tconv.quant.ranges import Asked, Calibration, ranges

if TYPE_CHECKING:
    from tconv.quant.op import Quantize
    from tconv.tensor import Scan, Tensor


def fit(
    tensors: Sequence[Tensor], ops: Sequence[Quantize], pools: Sequence[str], scan: Scan, how: Calibration
) -> list[Numbers]:
    """The numbers for each tensor, which its op is to quantize; those of one pool share them.

    Raises ``TconvError`` as ``ranges`` does.
    """
    asked = [
        Asked(tensor, op.grid, channels(tensor.spec, op.axis, op.group), pool)
        for tensor, op, pool in zip(tensors, ops, pools, strict=True)
    ]
    made = []
    for one, found in zip(asked, ranges(asked, scan, how), strict=True):
        scale, zero = one.grid.parameters(found.low, found.high)
        made.append(Numbers(scale, None if zero is None else zero.astype(np.float32)))
    return made
