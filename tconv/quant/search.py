"""Which range of values a scale is made for: all of them, or what is left when rare extremes are cut off.

minmax: all. percentile: the middle ``p`` percent, (100 - p) / 2 cut off on either side. mse: the range of which the
rounded values are nearest to the values, by squared error. entropy: the range of which the quantized distribution
tells least from that of the values, by Kullback-Leibler divergence (S. Migacz, "8-bit Inference with TensorRT", 2017).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from tconv.quant.entropy import divergences

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.grid import Grid
    from tconv.quant.observe import Distribution

Method = Literal["minmax", "percentile", "mse", "entropy"]
METHODS = ("minmax", "percentile", "mse", "entropy")
SHARES = np.linspace(1, 0.2, 81)  # of the full range, tried by mse and entropy
AT_ONCE = 1 << 20  # values that are quantized in one go


def search(method: Method, found: Distribution, how: Grid, percentile: float) -> tuple[float, float]:
    """The range for the scale of one channel. ``found``: its values; 0 and 0 if there are none."""
    if not found.values.size:
        return 0.0, 0.0
    low, high = float(found.values[0]), float(found.values[-1])
    if method == "percentile":
        return _percentile(found, percentile)
    if method == "minmax":
        return low, high
    if not how.affine:
        low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
    if method == "mse":
        losses = _squares(found, how, SHARES * low, SHARES * high)
    else:
        losses = divergences(found, how, SHARES * low, SHARES * high)
    best = float(SHARES[int(np.argmin(losses))])  # the wider one of equals
    return best * low, best * high


def _percentile(found: Distribution, percentile: float) -> tuple[float, float]:
    """By the positions of values, between neighbours as ``numpy.percentile`` has it."""
    ends = np.cumsum(found.counts)
    tail = (100 - percentile) / 200

    def at(share: float) -> float:
        place = share * (int(ends[-1]) - 1)
        first = math.floor(place)
        below, above = (float(found.values[np.searchsorted(ends, n, side="right")]) for n in (first, math.ceil(place)))
        return below + (above - below) * (place - first)

    return at(tail), at(1 - tail)


def _squares(found: Distribution, how: Grid, low: Array, high: Array) -> Array:
    """The sum of squared errors for each of several ranges."""
    x = found.values.astype(np.float32)
    scale, zero = how.parameters(low, high)
    wide = None if zero is None else zero.astype(np.float32)[:, None]
    losses = np.empty(len(low))
    step = max(1, AT_ONCE // x.size)
    for first in range(0, len(low), step):
        part = slice(first, first + step)
        scales, zeros = scale[part, None], None if wide is None else wide[part]
        q = np.empty((len(scales), x.size), how.dtype.numpy)
        how.quantize(np.broadcast_to(x, q.shape), scales, zeros, q)
        error = how.dequantize(q, scales, zeros).astype(np.float64) - found.values
        losses[part] = np.square(error) @ found.counts
    return losses
