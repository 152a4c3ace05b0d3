"""Which state of a file it is that was read: of two that were mixed nobody would know what the result is."""

from __future__ import annotations

import os
from io import RawIOBase
from typing import NamedTuple

from tconv.errors import TconvError


class Stamp(NamedTuple):
    """What changes when a file is replaced or written to; times in nanoseconds."""

    device: int
    inode: int
    size: int
    modified: int


def stamp(file: RawIOBase) -> Stamp:
    """That of an open file, now."""
    found = os.fstat(file.fileno())
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def refuse_changed(file: RawIOBase, seen: Stamp | None) -> None:
    """Raise ``TconvError`` if it is not as it was when ``seen`` was taken; what was never looked at is."""
    if seen is not None and stamp(file) != seen:
        raise TconvError("changed while it was read", remedy="run it again when nobody writes to it")
