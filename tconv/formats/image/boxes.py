"""Boxes, of which AVIF (ISO/IEC 14496-12) and JPEG 2000 (ISO/IEC 15444-1, annex I) files are made."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple


class Box(NamedTuple):
    kind: bytes
    start: int  # where its contents begin
    end: int


def boxes(file: BinaryIO, start: int, end: int) -> Iterator[Box]:
    """The boxes between two positions of the file, each known to lie there."""
    at = start
    while at < end:
        length, kind = struct.unpack(">I4s", read(file, at, min(8, end - at)))
        inner = at + 8
        if length == 1:
            (length,) = struct.unpack(">Q", read(file, inner, min(8, end - inner)))
            inner += 8
        until = end if length == 0 else at + length
        if not inner <= until <= end:
            raise EOFError(f"it ends within its box {kind!r}")
        yield Box(kind, inner, until)
        at = until


def inside(file: BinaryIO, box: Box, path: bytes, skip: int = 0) -> Box | None:
    """The first box at the end of a path (kinds of four bytes each) within ``box``, behind ``skip`` bytes."""
    if not path:
        return box
    found = (inner for inner in boxes(file, box.start + skip, box.end) if inner.kind == path[:4])
    first = next(found, None)
    return first and inside(file, first, path[4:])


def contents(file: BinaryIO, box: Box) -> bytes:
    return read(file, box.start, box.end - box.start)


def read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)
