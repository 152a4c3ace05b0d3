"""Files that stay open, for who reads small pieces of them in any order, from any thread and after a fork."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.formats.raw import truncated
from tconv.formats.stamp import Stamp, refuse_changed

if TYPE_CHECKING:
    from tconv.ops import Array

MOST = 64  # files open at a time: a process may have a thousand or so in all
_ONE_POSITION = threading.Lock()


class Files:
    """They are read and not mapped: a map of a file that shrinks would kill the process."""

    def __init__(self) -> None:
        self._open: dict[Path, _File] = {}

    def read(self, path: Path, seen: Stamp | None, offset: int, out: Array) -> None:
        """The bytes from ``offset`` on into all of ``out``, which is contiguous. Raises ``TconvError`` for a file that
        is not as it was when ``seen`` was taken, and for what cannot be read.
        """
        try:
            file = self._open.get(path) or self._opened(path)
            refuse_changed(file, seen)
            file.read(offset, out)
            refuse_changed(file, seen)
        except OSError as problem:
            raise TconvError(f"cannot be read: {problem.strerror or problem}", file=path) from problem
        except TconvError as problem:
            raise problem.at(file=path) from None

    def _opened(self, path: Path) -> _File:
        file = _File(path)
        while len(self._open) >= MOST:
            self._open.pop(next(iter(self._open)), None)  # who still reads from it holds it
        self._open[path] = file
        return file


class _File:
    """One file, which is closed when nobody holds it any more."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))

    def __del__(self) -> None:
        if hasattr(self, "_fd"):  # it could be opened
            os.close(self._fd)

    def fileno(self) -> int:
        return self._fd

    def read(self, offset: int, out: Array) -> None:
        view, done = out.reshape(-1).view(np.uint8).data, 0
        while done < len(view):
            count = _read_at(self._fd, view[done:], offset + done)
            if not count:
                raise truncated(offset + len(view), offset + done)
            done += count


def _read_at(fd: int, view: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):  # children of a fork share the position, and threads do
        return os.preadv(fd, [view], offset)
    with _ONE_POSITION:
        os.lseek(fd, offset, os.SEEK_SET)
        data = os.read(fd, min(len(view), 1 << 20))
    view[: len(data)] = data
    return len(data)
