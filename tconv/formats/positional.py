"""Writing a file whose offsets are known beforehand: positional, thread-safe, in any order."""

from __future__ import annotations

import errno
import os
import sys
import threading
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.ops import Array
    from tconv.tensor import Spec

_WINDOWS_LOCK = threading.Lock()
WRITE_BACK = 1 << 24  # bytes: few enough to be on the disk soon, and enough for large requests to it
_NOTHING = (1 << 62, 0, 0)
_FULL = (errno.ENOSPC, errno.EDQUOT)


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


def reserve(fd: int, size: int) -> None:
    """Make the empty file ``fd`` one of ``size`` bytes, and have Linux set space for them aside: what is written has
    its place then, which is faster, and a full disk is an ``OSError`` before any work.

    ``os.posix_fallocate`` would write into every block where a file system cannot do that; it is left alone here.
    """
    os.truncate(fd, size)
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, 0, ctypes.c_int64(0), ctypes.c_int64(size)) and (problem := ctypes.get_errno()) in _FULL:
        os.truncate(fd, 0)  # it has taken all that there was
        raise OSError(problem, os.strerror(problem))


class PositionalWriter(Writer):
    """Base of the writers that know ``offsets`` (bytes, one a tensor) and a header before any value is seen."""

    offsets: list[int]
    specs: Sequence[Spec]
    _fd: int = -1
    _lock: threading.Lock
    _fresh: tuple[int, int, int]  # from where to where was written since the last time, and how many bytes

    @abstractmethod
    def header(self) -> list[tuple[int, bytes]]:
        """What the file holds besides the tensors and is known beforehand: (offset, bytes)."""

    def trailer(self) -> list[tuple[int, bytes]]:
        """What is only known when all tensors are written (checksums, say)."""
        return []

    def open(self, path: Path) -> None:
        self._fd = created(path)
        reserve(self._fd, self.size)
        self._lock, self._fresh = threading.Lock(), _NOTHING
        for offset, data in self.header():
            pwrite(self._fd, memoryview(data), offset)

    def write(self, i: int, lo: int, array: Array) -> None:
        data = memoryview(array.reshape(-1).view("u1").data)
        offset = self.offsets[i] + lo * self.specs[i].dtype.itemsize
        pwrite(self._fd, data, offset)
        self._write_back(offset, offset + len(data))

    def _write_back(self, lo: int, hi: int) -> None:
        """Have the disk take [lo, hi) while the next values are made, for else ``commit`` waits for all of it.

        To forget pages that are not on the disk yet Linux begins to write them, and it keeps them in memory meanwhile.
        """
        with self._lock:
            self._fresh = (min(lo, self._fresh[0]), max(hi, self._fresh[1]), self._fresh[2] + hi - lo)
            if self._fresh[2] < WRITE_BACK:
                return
            first, end, _ = self._fresh
            self._fresh = _NOTHING
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, first, end - first, os.POSIX_FADV_DONTNEED)

    def commit(self) -> None:
        for offset, data in self.trailer():
            pwrite(self._fd, memoryview(data), offset)
        os.fsync(self._fd)
        self.abort()

    def abort(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
