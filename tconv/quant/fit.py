"""Scales and zero points from the values of tensors: one look for their extremes, and a second one if need be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tconv.dtypes import DTYPES
from tconv.errors import TconvError, raise_all
from tconv.quant.observe import Channels, Extremes, Histograms, channels
from tconv.quant.op import Numbers
from tconv.quant.search import Method, search

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.op import Quantize
    from tconv.tensor import Scan, Tensor

FLOAT32 = DTYPES["float32"]
MOST_SEARCHES = 1 << 16  # channels of a tensor for which ranges are searched


@dataclass(frozen=True)
class Calibration:
    """How ranges are found."""

    method: Method = "minmax"
    percentile: float = 99.9


def fit(
    tensors: Sequence[Tensor], ops: Sequence[Quantize], pools: Sequence[str], scan: Scan, how: Calibration
) -> list[Numbers]:
    """The numbers for each tensor, which its op is to quantize; those of one pool share them.

    Raises ``TconvError``, naming all of them, for tensors that hold NaN or infinities.
    """
    shares = [channels(t.spec, op.axis, op.group) for t, op in zip(tensors, ops, strict=True)]
    _refuse_unlike(tensors, shares, pools)
    bounds = _pooled(_extremes(tensors, shares, scan), pools)
    if how.method != "minmax":
        bounds = _searched(tensors, ops, shares, pools, bounds, scan, how)
    found: dict[str, Numbers] = {}
    for pool, op, (low, high) in zip(pools, ops, bounds, strict=True):
        if pool not in found:
            found[pool] = _numbers(op, low, high)
    return [found[pool] for pool in pools]


def _refuse_unlike(tensors: Sequence[Tensor], shares: Sequence[Channels], pools: Sequence[str]) -> None:
    first: dict[str, tuple[Tensor, int]] = {}
    for tensor, share, pool in zip(tensors, shares, pools, strict=True):
        other, number = first.setdefault(pool, (tensor, share.number))
        if number != share.number:
            raise TconvError(
                f"{share.number} channels, and {other.spec.name} has {number}: they cannot share scales",
                remedy="take one scale for all (axis=None)",
                file=tensor.source.path,
                tensor=tensor.spec.name,
            )


def _pooled(bounds: Sequence[tuple[Array, Array]], pools: Sequence[str]) -> list[tuple[Array, Array]]:
    """The bounds of all of a pool, for each of it."""
    wide: dict[str, tuple[Array, Array]] = {}
    for pool, (low, high) in zip(pools, bounds, strict=True):
        known = wide.get(pool, (low, high))
        wide[pool] = np.minimum(known[0], low), np.maximum(known[1], high)
    return [wide[pool] for pool in pools]


def _extremes(tensors: Sequence[Tensor], shares: Sequence[Channels], scan: Scan) -> list[tuple[Array, Array]]:
    seen = [Extremes(t.spec.dtype, one) for t, one in zip(tensors, shares, strict=True)]
    scan.values(tensors, lambda i, lo, x: seen[i].update(lo, x))
    pairs = list(zip(tensors, seen, strict=True))
    raise_all([_not_finite(t, e) for t, e in pairs if e.nan or e.inf])
    raise_all([_too_large(t) for t, e in pairs if np.abs(e.bounds()).max(initial=0) > FLOAT32.max])
    return [e.bounds() for e in seen]


def _not_finite(tensor: Tensor, seen: Extremes) -> TconvError:
    kinds = " and ".join(f"{n} {kind}" for n, kind in ((seen.nan, "NaN"), (seen.inf, "inf")) if n)
    return TconvError(
        f"{kinds} of {tensor.spec.size} values: what is not finite has no scale",
        remedy="replace them first, or leave the tensor as it is (--keep)",
        file=tensor.source.path,
        tensor=tensor.spec.name,
    )


def _too_large(tensor: Tensor) -> TconvError:
    return TconvError(
        f"it has values beyond {FLOAT32.max:.8g}: what is quantized is computed in float32",
        remedy="make them smaller first, or leave the tensor as it is (--keep)",
        file=tensor.source.path,
        tensor=tensor.spec.name,
    )


def _searched(
    tensors: Sequence[Tensor],
    ops: Sequence[Quantize],
    shares: Sequence[Channels],
    pools: Sequence[str],
    bounds: Sequence[tuple[Array, Array]],
    scan: Scan,
    how: Calibration,
) -> list[tuple[Array, Array]]:
    """Narrower bounds, by how the values are distributed between those that are known."""
    raise_all(
        [_too_many(t, one, how.method) for t, one in zip(tensors, shares, strict=True) if one.number > MOST_SEARCHES]
    )
    sizes = Counter[str]()
    for tensor, pool in zip(tensors, pools, strict=True):
        sizes[pool] += tensor.spec.size
    found: dict[str, Histograms] = {}
    for pool, share, ends in zip(pools, shares, bounds, strict=True):
        found.setdefault(pool, Histograms(share.number, *ends, sizes[pool]))
    scan.values(tensors, lambda i, lo, x: found[pools[i]].update(lo, x, tensors[i].spec.dtype, shares[i]))
    made: dict[str, tuple[Array, Array]] = {}
    for pool, op, share in zip(pools, ops, shares, strict=True):
        if pool not in made:
            ranges = [search(how.method, found[pool].of(c), op.grid, how.percentile) for c in range(share.number)]
            low, high = np.array(ranges, np.float64).reshape(-1, 2).T
            made[pool] = low, high
    return [made[pool] for pool in pools]


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
