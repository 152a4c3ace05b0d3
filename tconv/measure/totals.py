"""Adds up what many tensors have in their channels, from any thread, to one result."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tconv.errors import TconvError
from tconv.measure.pool import Channels, NotFinite, Powers, powers

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.ops import Array
    from tconv.tensor import Range, Tensor

UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class Source:
    """Tensors of one dtype and range. ``known``: what was taken to [0, 1]; None where values were left as they are."""

    dtype: str
    known: Range | None
    tensors: int


def channels_of(tensor: Tensor) -> Channels:
    return Channels.of(tensor.spec.shape, tensor.spec.axis("C"))


class Totals:
    """Adds up what there is in tensors, from any thread; what a tensor has counts once it is complete."""

    def __init__(self, tensors: Sequence[Tensor], raw: bool) -> None:
        self._tensors, self._raw = tensors, raw
        self._adding = threading.Lock()
        self._open: dict[int, tuple[int, list[Powers]]] = {}  # how many values were seen of those under way
        self._totals: dict[Range | None, list[Powers]] = {}
        self._bad: dict[int, int] = {}
        self._done: list[int] = []

    def visit(self, i: int, lo: int, x: Array) -> None:
        spec = self._tensors[i].spec
        try:
            found = powers(x, lo, spec.dtype, channels_of(self._tensors[i]))
        except NotFinite as problem:
            with self._adding:
                self._bad[i] = self._bad.get(i, 0) + problem.count
            return
        with self._adding:
            count, before = self._open.pop(i, (0, None))
            found = found if before is None else _added(before, found)
            if count + x.size < spec.size:
                self._open[i] = count + x.size, found
                return
            known = self._known(i)
            self._totals[known] = _added(self._totals[known], found) if known in self._totals else found
            self._done.append(i)

    def _known(self, i: int) -> Range | None:
        spec = self._tensors[i].spec
        if self._raw:
            return None
        return UNIT if spec.range is None else spec.range  # bool, of which scale knows the range

    def failures(self) -> list[TconvError]:
        found = []
        for i, count in sorted(self._bad.items()):
            tensor = self._tensors[i]
            reason = f"{count} of its values are NaN or infinite" if count else "its values are too large to be squared"
            found.append(TconvError(f"{reason}: there is no mean", file=tensor.source.path, tensor=tensor.spec.name))
        return found

    def channels(self) -> tuple[Powers, ...]:
        """All of them together, on one scale."""
        whole: list[Powers] = []
        for known, found in self._totals.items():
            scaled = [p.scaled(known) for p in found] if known else found
            whole = _added(whole, scaled) if whole else scaled
        return tuple(whole)

    def files(self) -> set[Path]:
        return {self._tensors[i].source.path for i in self._done}

    def sources(self) -> tuple[Source, ...]:
        found = Counter((self._tensors[i].spec.dtype.name, self._known(i)) for i in sorted(self._done))
        return tuple(Source(name, known, count) for (name, known), count in found.items())


def _added(a: Sequence[Powers], b: Sequence[Powers]) -> list[Powers]:
    return [x + y for x, y in zip(a, b, strict=True)]
