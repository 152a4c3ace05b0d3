"""Two streams side by side: which tensor answers to which, and how far apart their values are."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tconv.errors import TconvError
from tconv.measure.compare import Difference, Tolerance
from tconv.scan import MAX_MEMORY, scan

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.request import Progress
    from tconv.tensor import Tensor


class Prefix(NamedTuple):
    """So many ``names`` of side 0 or 1 would have a partner if they did not begin with ``text``."""

    side: int
    text: str
    names: int


@dataclass(frozen=True)
class Pairing:
    """Tensors of both sides by name; ``alone``: the names that only side 0, or only side 1, has."""

    pairs: tuple[tuple[Tensor, Tensor], ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    prefix: Prefix | None = None


def pair(a: Sequence[Tensor], b: Sequence[Tensor]) -> Pairing:
    """Tensors that have the same name, in the order of ``a``."""
    others = {t.spec.name: t for t in b}
    pairs = tuple((t, others[t.spec.name]) for t in a if t.spec.name in others)
    paired = {t.spec.name for t, _ in pairs}
    names = ([t.spec.name for t in side] for side in (a, b))
    only_a, only_b = (tuple(n for n in side if n not in paired) for side in names)
    return Pairing(pairs, (only_a, only_b), _prefix(only_a, only_b))


def _prefix(a: Sequence[str], b: Sequence[str]) -> Prefix | None:
    """The prefix, up to a dot, without which most of the names would match."""
    found: Counter[tuple[int, str]] = Counter()
    for side, (names, wanted) in enumerate(((a, set(b)), (b, set(a)))):
        for name in names:
            dots = [n + 1 for n, char in enumerate(name) if char == "."]
            found.update((side, name[:n]) for n in dots if name[n:] in wanted)
    if not found:
        return None
    ((side, text), count) = found.most_common(1)[0]
    return Prefix(side, text, count)


def compare(
    pairs: Sequence[tuple[Tensor, Tensor]], tolerance: Tolerance, progress: Progress | None = None
) -> tuple[list[Difference], list[TconvError]]:
    """How the values of each pair differ, read piece by piece on both sides. Both tensors must have the same shape.

    Also returns what could not be read.
    """
    made = [Difference((a.spec.dtype, b.spec.dtype), tolerance) for a, b in pairs]
    # What decodes whole leads, so that it is decoded once, and the other side is asked for all of it at once.
    second = [not b.source.seekable for _, b in pairs]
    adding = threading.Lock()

    def visit(i: int, lo: int, x: Array) -> None:
        other = pairs[i][0 if second[i] else 1]
        try:
            y = other.source.read(lo, lo + x.size).reshape(-1)
        except TconvError as problem:
            raise problem.at(file=other.source.path, tensor=other.spec.name) from None
        part = Difference(made[i].dtypes, tolerance)
        part.update(lo, *((y, x) if second[i] else (x, y)))
        with adding:
            made[i].merge(part)

    leading = [pair[second[i]] for i, pair in enumerate(pairs)]
    return made, scan(leading, visit, progress, MAX_MEMORY // 2)  # the other side takes as much
