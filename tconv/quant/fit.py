"""Scales and zero points from the values of tensors: one look for their extremes, and a second one if need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError, raise_all
from tconv.quant.observe import Channels, Extremes, Histograms, channels
from tconv.quant.op import Numbers
from tconv.quant.search import Method, search

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.op import Quantize
    from tconv.tensor import Scan, Tensor

MOST_SEARCHES = 1 << 16  # channels of a tensor for which ranges are searched


@dataclass(frozen=True)
class Calibration:
    """How ranges are found. ``pooled``: all tensors share the numbers, which are for all of a tensor then."""

    method: Method = "minmax"
    percentile: float = 99.9
    pooled: bool = False


def fit(tensors: Sequence[Tensor], ops: Sequence[Quantize], scan: Scan, how: Calibration) -> list[Numbers]:
    """The numbers for each tensor, which its op is to quantize.

    Raises ``TconvError``, naming all of them, for tensors that hold NaN or infinities.
    """
    shares = [channels(t.spec, op.axis, op.group) for t, op in zip(tensors, ops, strict=True)]
    bounds = _extremes(tensors, shares, scan)
    if how.pooled:
        low, high = min(low[0] for low, _ in bounds), max(high[0] for _, high in bounds)
        bounds = [(np.array([low]), np.array([high]))] * len(tensors)
    if how.method != "minmax":
        bounds = _searched(tensors, ops, shares, bounds, scan, how)
    return [_numbers(op, low, high) for op, (low, high) in zip(ops, bounds, strict=True)]


def _extremes(tensors: Sequence[Tensor], shares: Sequence[Channels], scan: Scan) -> list[tuple[Array, Array]]:
    seen = [Extremes(t.spec.dtype, one) for t, one in zip(tensors, shares, strict=True)]
    scan.values(tensors, lambda i, lo, x: seen[i].update(lo, x))
    raise_all([_not_finite(t, e) for t, e in zip(tensors, seen, strict=True) if e.nan or e.inf])
    return [e.bounds() for e in seen]


def _not_finite(tensor: Tensor, seen: Extremes) -> TconvError:
    kinds = " and ".join(f"{n} {kind}" for n, kind in ((seen.nan, "NaN"), (seen.inf, "inf")) if n)
    return TconvError(
        f"{kinds} of {tensor.spec.size} values: what is not finite has no scale",
        remedy="replace them first, or leave the tensor as it is (--keep)",
        file=tensor.source.path,
        tensor=tensor.spec.name,
    )


def _searched(
    tensors: Sequence[Tensor],
    ops: Sequence[Quantize],
    shares: Sequence[Channels],
    bounds: Sequence[tuple[Array, Array]],
    scan: Scan,
    how: Calibration,
) -> list[tuple[Array, Array]]:
    """Narrower bounds, by how the values are distributed between those that are known."""
    raise_all(
        [_too_many(t, one, how.method) for t, one in zip(tensors, shares, strict=True) if one.number > MOST_SEARCHES]
    )
    if how.pooled:
        total = sum(t.spec.size for t in tensors)
        found = [Histograms(tensors[0].spec.dtype, shares[0], *bounds[0], total)] * len(tensors)
    else:
        parts = zip(tensors, shares, bounds, strict=True)
        found = [Histograms(t.spec.dtype, one, *b, t.spec.size) for t, one, b in parts]
    scan.values(tensors, lambda i, lo, x: found[i].update(lo, x))
    made: dict[int, tuple[Array, Array]] = {}
    for op, histograms, one in zip(ops, found, shares, strict=True):
        if id(histograms) not in made:
            ranges = [search(how.method, histograms.of(c), op.grid, how.percentile) for c in range(one.number)]
            low, high = np.array(ranges, np.float64).reshape(-1, 2).T
            made[id(histograms)] = low, high
    return [made[id(histograms)] for histograms in found]


def _too_many(tensor: Tensor, one: Channels, method: str) -> TconvError:
    return TconvError(
        f"it has {one.number:,} scales, and {method} searches for {MOST_SEARCHES:,} at most",
        remedy="take larger groups, or minmax",
        file=tensor.source.path,
        tensor=tensor.spec.name,
    )


def _numbers(op: Quantize, low: Array, high: Array) -> Numbers:
    scale, zero = op.grid.parameters(low, high)
    return Numbers(scale, None if zero is None else zero.astype(np.float32))
