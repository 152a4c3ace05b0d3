"""Writing a file whose offsets are known beforehand: positional, thread-safe, in any order."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.tensor import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.ops import Array
    from tconv.tensor import Spec

_WINDOWS_LOCK = threading.Lock()


def pwrite(fd: int, data: memoryview, offset: int) -> None:
    """All of ``data`` at ``offset``; a full disk is an ``OSError`` here, where a mapped file would be a SIGBUS."""
    while data:
        if hasattr(os, "pwrite"):
            done = os.pwrite(fd, data, offset)
        else:  # Windows has one file position only
            with _WINDOWS_LOCK:
                os.lseek(fd, offset, os.SEEK_SET)
                done = os.write(fd, data)
        data, offset = data[done:], offset + done


def created(path: Path) -> int:
    """A file that must not be there before, open for writing, with the mode that the umask gives."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, 0o666)


class PositionalWriter(Writer):
    """Base of the writers that know ``offsets`` (bytes, one a tensor) and a header before any value is seen."""

    offsets: list[int]
    specs: Sequence[Spec]
    _fd: int = -1

    @abstractmethod
    def header(self) -> list[tuple[int, bytes]]:
        """What the file holds besides the tensors and is known beforehand: (offset, bytes)."""

    def trailer(self) -> list[tuple[int, bytes]]:
        """What is only known when all tensors are written (checksums, say)."""
        return []

    def open(self, path: Path) -> None:
        self._fd = created(path)
        os.truncate(self._fd, self.size)
        for offset, data in self.header():
            pwrite(self._fd, memoryview(data), offset)

    def write(self, i: int, lo: int, array: Array) -> None:
        data = memoryview(array.reshape(-1).view("u1").data)
        offset = self.offsets[i] + lo * self.specs[i].dtype.itemsize
        pwrite(self._fd, data, offset)

    def commit(self) -> None:
        for offset, data in self.trailer():
            pwrite(self._fd, memoryview(data), offset)
        os.fsync(self._fd)
        self.abort()

    def abort(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
