"""Scales and zero points from the values of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import Problems, TconvError
from tconv.quant.observe import channels
from tconv.quant.op import Numbers
from tconv.quant.ranges import Asked, Calibration, in_rounds, ranges
from tconv.quant.shelf import Shelf

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.op import Quantize
    from tconv.step import Scan
    from tconv.tensor import Tensor

CHANNEL = 64  # bytes that the extremes of one take, and what is made of them
AT_ONCE = 1 << 26  # bytes for the channels of as many tensors as are looked at in one pass


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
    found: dict[str, Numbers] = {}
    problems = Problems()
    with Shelf() as shelf:
        for some in map(set, in_rounds({one.pool: one.share.number * CHANNEL for one in asked}, AT_ONCE)):
            part = [one for one in asked if one.pool in some]
            try:
                bounds = ranges(part, scan, how)
            except TconvError as problem:
                problems.add(problem)
                continue
            for one, ends in zip(part, bounds, strict=True):
                if one.pool not in found:
                    found[one.pool] = _numbers(one, ends.low, ends.high, shelf)
    problems.raise_all()
    return [found[one.pool] for one in asked]


def _numbers(one: Asked, low: Array, high: Array, shelf: Shelf) -> Numbers:
    scale, zero = one.grid.parameters(low, high)
    return Numbers(shelf.keep(scale), None if zero is None else shelf.keep(zero.astype(np.float32)))
