"""The sources of an array that is taken apart: every slice along its first axis as a source of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tconv.tensor import Sequential

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Source


@dataclass(frozen=True, eq=False)
class Row:
    """Slice ``index`` of ``whole``: where that can be read anywhere, a slice costs what a slice is."""

    whole: Source
    index: int

    @property
    def path(self) -> Path:
        return self.whole.path

    @property
    def dtype(self) -> DType:
        return self.whole.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.shape[1:]

    @property
    def seekable(self) -> bool:
        return self.whole.seekable

    @property
    def sequential(self) -> bool:
        return isinstance(self.whole, Sequential) and self.whole.sequential

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        """See ``tensor.Source``."""
        start = self.index * prod(self.shape)
        return self.whole.read(start + lo, start + hi, out)


class Decoded:
    """A source that decodes whole, decoded once for all its slices: it is held until each of them has been read."""

    seekable: Final = False

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._values: Array | None = None
        self._left = 0

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def dtype(self) -> DType:
        return self.source.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        """See ``tensor.Source``."""
        with self._lock:
            if self._values is None:
                self._values, self._left = self.source.read(0, prod(self.shape)), self.shape[0]
            part = self._values[lo:hi]
            self._left -= 1
            if not self._left:
                self._values = None
        if out is None:
            return part
        np.copyto(out, part)
        return out


def rows(source: Source) -> Sequence[Row]:
    """The slices of ``source`` along axis 0."""
    whole = source if source.seekable else Decoded(source)
    return [Row(whole, n) for n in range(source.shape[0])]
