"""Which state of a file it is that was read: of two that were mixed nobody would know what the result is."""

from __future__ import annotations

import os
import struct
from typing import NewType, Protocol

from tconv.errors import TconvError


class Open(Protocol):
    """A file that is open."""

    def fileno(self) -> int: ...


# What changes when a file is replaced or written to, packed: as four numbers it would take a fifth of an image's plan.
Stamp = NewType("Stamp", bytes)

_FIELDS = struct.Struct("=QQQq")
_WORD = (1 << 64) - 1  # some file systems of Windows number inodes in more bits


def stamp(file: Open) -> Stamp:
    """That of an open file, now: device, inode, size, and the time of its last change in nanoseconds."""
    found = os.fstat(file.fileno())
    return Stamp(_FIELDS.pack(found.st_dev, found.st_ino & _WORD, found.st_size, found.st_mtime_ns))


def refuse_changed(file: Open, seen: Stamp | None) -> None:
    """Raise ``TconvError`` if it is not as it was when ``seen`` was taken; what was never looked at is."""
    if seen is not None and stamp(file) != seen:
        raise TconvError("changed while it was read", remedy="run it again when nobody writes to it")
