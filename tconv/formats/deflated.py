"""Elements in a deflated member of a zip archive: it decodes from its beginning on, as far as it is asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.formats import strided
from tconv.formats.inflate import Inflated
from tconv.formats.raw import CHUNK, fill_from, opened, to_native
from tconv.formats.stamp import Stamp

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.formats.unzip import Entry
    from tconv.ops import Array

MAX_KEPT = 1 << 26  # bytes that are kept for readers who were overtaken


def corrupt() -> TconvError:
    return TconvError("the bytes are not those that were written (bad CRC-32)", remedy="fetch or write the file again")


class Cursor:
    """Reads what a member decodes to, for any thread: as long as they come in about ascending order, just once.

    What a reader passes over is kept for the one that it has overtaken, since threads that are handed pieces in order
    need not arrive in order. None ever waits for another: who asks for what is gone makes it begin again. The checksum
    is compared when the last byte is read.
    """

    def __init__(self, path: Path, member: Entry, seen: Stamp | None = None) -> None:
        self.path = path
        self.member = member
        self.seen = seen
        self._lock = threading.Lock()
        self._content: Inflated | None = None  # what comes next is byte ``_at``
        self._at = 0
        self._kept: list[tuple[int, Array]] = []

    def read(self, since: int, start: int, out: Array) -> None:
        """The bytes from ``start`` on into all of ``out``, which is flat; nobody wants those before ``since``."""
        with self._lock:
            if self._recall(start, out):
                return
            try:
                with opened(self.path, self.seen) as file:
                    content = self._resumed(file, start)
                    self._pass_over(content, since, start)
                    self._advance(content, out)
            except BaseException:
                self._content = None
                self._kept.clear()
                raise

    def _resumed(self, file: RawIOBase, start: int) -> Inflated:
        if self._content is not None and self._at <= start:
            self._content.resume(file)
        else:
            self._content, self._at = Inflated(file, self.member.start, self.member.compressed), 0
            self._kept.clear()
        return self._content

    def _pass_over(self, content: Inflated, since: int, start: int) -> None:
        """Go on to ``start``; keep the last of what lies between."""
        unwanted = max(since, start - MAX_KEPT)
        while self._at < unwanted:
            self._advance(content, np.empty(min(CHUNK, unwanted - self._at), np.uint8))
        if self._at < start:
            first, passed = self._at, np.empty(start - self._at, np.uint8)
            self._advance(content, passed)
            self._kept.append((first, passed))
        while sum(kept.size for _, kept in self._kept) > MAX_KEPT:
            del self._kept[0]

    def _recall(self, start: int, out: Array) -> bool:
        """Whether ``out`` could be filled with what was kept, which is then given up."""
        wanted = out.view(np.uint8)
        for n, (first, kept) in enumerate(self._kept):
            lo, hi = start - first, start - first + wanted.size
            if wanted.size and lo >= 0 and hi <= kept.size:
                wanted[:] = kept[lo:hi]
                parts = ((first, kept[:lo]), (first + hi, kept[hi:]))
                self._kept[n : n + 1] = [part for part in parts if part[1].size]
                return True
        return False

    def _advance(self, content: Inflated, out: Array) -> None:
        fill_from(content, out, self._at)
        self._at += out.nbytes
        if self._at == self.member.size and (content.read(1) or content.crc != self.member.crc):
            raise corrupt()


@dataclass(frozen=True, slots=True)
class DeflatedSource:
    """A ``Source`` of elements at byte ``offset`` of what a member decodes to.

    ``order`` has the axes from the one whose neighbours lie farthest apart to the one whose are next to each other;
    None is C order. Any other decodes whole.
    """

    dtype: DType
    shape: tuple[int, ...]
    cursor: Cursor
    offset: int
    swap: bool = False
    order: tuple[int, ...] | None = None

    @property
    def path(self) -> Path:
        return self.cursor.path

    @property
    def seekable(self) -> bool:
        return self.order is None

    @property
    def decoder(self) -> str:
        """The library that inflates the bytes."""
        return "zlib"

    @property
    def sequential(self) -> bool:
        return True

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(hi - lo, self.dtype.numpy)
        if self.order is None:
            self._decode(lo, out)
        elif (lo, hi) == (0, self._size):
            self._rearrange(out, self.order)
        else:
            whole = np.empty(self._size, self.dtype.numpy)
            self._rearrange(whole, self.order)
            out[:] = whole[lo:hi]
        return out

    @property
    def _size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def _decode(self, at: int, out: Array) -> None:
        self.cursor.read(self.offset, self.offset + at * self.dtype.itemsize, out)
        to_native(out, self.swap)

    def _rearrange(self, out: Array, order: tuple[int, ...]) -> None:
        """All elements, a part at a time, each to its place in C order."""
        stored = out.reshape(self.shape).transpose(order)
        part = np.empty(min(out.size, max(1, CHUNK // self.dtype.itemsize)), self.dtype.numpy)
        for at in range(0, out.size, part.size or 1):
            values = part[: out.size - at]
            self._decode(at, values)
            strided.scatter(values, stored, at)
