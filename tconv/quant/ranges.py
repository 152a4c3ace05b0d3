"""The range of values that each scale is made for: a look for the extremes, and a second one if a method needs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tconv.dtypes import DTYPES
from tconv.errors import TconvError, raise_all
from tconv.quant.observe import Channels, Extremes, Histograms
from tconv.quant.search import Method, search

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.quant.grid import Grid
    from tconv.step import Scan
    from tconv.tensor import Tensor

    Bounds: TypeAlias = tuple[Array, Array]

MOST_SEARCHES = 1 << 16  # channels of a tensor for which ranges are searched
AT_ONCE = 1 << 28  # bytes of distributions that are looked at in one pass through the values
LARGEST = DTYPES["float32"].max


@dataclass(frozen=True)
class Calibration:
    """How ranges are found."""

    method: Method = "minmax"
    percentile: float = 99.9


class Asked(NamedTuple):
    """A tensor for whose values ranges are asked: for each channel of ``share`` one, on ``grid``. Those of one ``pool``
    have the same.
    """

    tensor: Tensor
    grid: Grid
    share: Channels
    pool: str


class Ranges(NamedTuple):
    """Of every channel (float64) the range that a scale is for, and the least and the greatest of all values."""

    low: Array
    high: Array
    least: Array
    greatest: Array


_LEAVE = "leave the tensor as it is (--keep), or out (--skip)"


def ranges(asked: Sequence[Asked], scan: Scan, how: Calibration, leave: str = _LEAVE) -> list[Ranges]:
    """For each what was asked, in their order; a tensor that is asked for several times is read once. ``leave``: what
    the user can do without one that has none.

    Raises ``TconvError``, naming all of them, for tensors that hold NaN, infinities or what float32 does not hold, and
    for those that cannot share.
    """
    _refuse_unlike(asked)
    pools = defaultdict[str, list[Asked]](list)
    for one in asked:
        pools[one.pool].append(one)
    extremes = _extremes(pools, scan, leave)
    found = dict(extremes)
    if how.method != "minmax":
        raise_all([_too_many(one, how.method) for one in asked if one.share.number > MOST_SEARCHES])
        for some in in_rounds({pool: _cost(members) for pool, members in pools.items()}, AT_ONCE):
            found |= _searched({pool: pools[pool] for pool in some}, extremes, scan, how)
    return [Ranges(*found[one.pool], *extremes[one.pool]) for one in asked]


def _refuse_unlike(asked: Iterable[Asked]) -> None:
    first: dict[str, Asked] = {}
    for one in asked:
        other = first.setdefault(one.pool, one)
        if other.share.number != one.share.number:
            raise TconvError(
                f"{one.share.number} channels, and {other.tensor.spec.name} has {other.share.number}: "
                "they cannot share scales",
                remedy="take one scale for all (axis=None)",
                file=one.tensor.source.path,
                tensor=one.tensor.spec.name,
            )


def _extremes(pools: Mapping[str, Sequence[Asked]], scan: Scan, leave: str) -> dict[str, Bounds]:
    seen = {pool: [Extremes(one.tensor.spec.dtype, one.share) for one in members] for pool, members in pools.items()}
    updates = [
        (one.tensor, extremes.update)
        for pool, members in pools.items()
        for one, extremes in zip(members, seen[pool], strict=True)
    ]
    _show(updates, scan)
    found, problems = dict[str, "Bounds"](), list[TconvError]()
    for pool, members in pools.items():
        ends = [extremes.bounds() for extremes in seen[pool]]
        problems += filter(None, map(_refusal, members, seen[pool], ends, repeat(leave)))
        found[pool] = np.minimum.reduce([low for low, _ in ends]), np.maximum.reduce([high for _, high in ends])
    raise_all(list({problem.place(): problem for problem in problems}.values()))
    return found


def _show(updates: Iterable[tuple[Tensor, Callable[[int, Array], None]]], scan: Scan) -> None:
    """All values of every tensor to all that want to see them, each tensor once."""
    wanted = defaultdict[int, list[Callable[[int, "Array"], None]]](list)
    tensors: dict[int, Tensor] = {}
    for tensor, update in updates:
        tensors[id(tensor)] = tensor
        wanted[id(tensor)].append(update)
    keys = list(tensors)

    def visit(i: int, lo: int, x: Array) -> None:
        for update in wanted[keys[i]]:
            update(lo, x)

    scan.values([tensors[key] for key in keys], visit)


def _refusal(one: Asked, seen: Extremes, ends: Bounds, leave: str) -> TconvError | None:
    """What forbids a scale."""
    at = {"file": str(one.tensor.source.path), "tensor": one.tensor.spec.name}
    kinds = " and ".join(f"{n} {kind}" for n, kind in ((seen.nan, "NaN"), (seen.inf, "inf")) if n)
    if kinds:
        reason = f"{kinds} of {one.tensor.spec.size} values: what is not finite has no scale"
        return TconvError(reason, remedy=f"replace them first, or {leave}", **at)
    if np.abs(ends).max(initial=0) > LARGEST:
        reason = f"it has values beyond ±{LARGEST:.3g}, the range of float32, in which scales are"
        return TconvError(reason, remedy=f"scale them down first, or {leave}", **at)
    return None


def _too_many(one: Asked, method: str) -> TconvError:
    return TconvError(
        f"it has {one.share.number:,} scales, and {method} searches for {MOST_SEARCHES:,} at most",
        remedy="take larger groups, or minmax",
        file=one.tensor.source.path,
        tensor=one.tensor.spec.name,
    )


def _size(members: Iterable[Asked]) -> int:
    return sum(one.tensor.spec.size for one in members)


def _cost(members: Sequence[Asked]) -> int:
    return Histograms.nbytes(members[0].share.number, _size(members))


def in_rounds(costs: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """Pools in order, so many at a time as take no more than ``limit`` together; one that is larger has it alone."""
    some: list[str] = []
    for pool, cost in costs.items():
        if some and sum(costs[other] for other in some) + cost > limit:
            yield some
            some = []
        some.append(pool)
    if some:
        yield some


def _searched(
    pools: Mapping[str, Sequence[Asked]], bounds: Mapping[str, Bounds], scan: Scan, how: Calibration
) -> dict[str, Bounds]:
    """Narrower bounds, by how the values are distributed between those that are known."""
    found = {
        pool: Histograms(members[0].share.number, *bounds[pool], _size(members)) for pool, members in pools.items()
    }
    _show(
        [
            (one.tensor, found[pool].adding(one.tensor.spec.dtype, one.share))
            for pool, members in pools.items()
            for one in members
        ],
        scan,
    )
    made: dict[str, Bounds] = {}
    for pool, members in pools.items():
        grid, number = members[0].grid, members[0].share.number
        best = [search(how.method, found[pool].of(c), grid, how.percentile) for c in range(number)]
        low, high = np.array(best, np.float64).reshape(-1, 2).T
        made[pool] = low, high
    return made
