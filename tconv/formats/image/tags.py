"""TIFF's structure (TIFF 6.0, BigTIFF): the directories of a file, their tags, and where the pixels lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import BinaryIO

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, STRIP_OFFSETS, ORIENTATION = 256, 257, 258, 259, 262, 273, 274
SAMPLES, STRIP_COUNTS, TILE_OFFSETS, TILE_COUNTS, EXTRA, FORMAT = 277, 279, 324, 325, 338, 339
PLANAR, JPEG_TABLES = 284, 347
_WANTED = frozenset((256, 257, 258, 259, 262, 273, 274, 277, 279, 284, 324, 325, 338, 339, 347))
_KINDS = {1: "B", 3: "H", 4: "I", 7: "B", 13: "I", 16: "Q", 18: "Q"}  # the unsigned types; 7 is "undefined"
_MAX_DIRECTORIES = 65536


@dataclass(frozen=True)
class Directory:
    """One image: its tags that matter here, and where the value of the orientation tag stands (position, format)."""

    tags: dict[int, tuple[int, ...]]
    orientation_at: tuple[int, str] | None = field(default=None, compare=False)

    def one(self, tag: int, default: int | None = None) -> int:
        """The single value of a tag; ``ValueError`` if it is missing and there is no default."""
        values = self.tags.get(tag, () if default is None else (default,))
        if not values:
            raise ValueError(f"tag {tag} is missing")
        return values[0]

    def pieces(self) -> list[tuple[int, int]]:
        """Where the strips or tiles begin, and how many bytes each has."""
        if TILE_OFFSETS in self.tags and STRIP_OFFSETS in self.tags:
            raise ValueError("it says that its pixels are in strips and that they are in tiles")
        offsets = self.tags.get(TILE_OFFSETS) or self.tags.get(STRIP_OFFSETS)
        counts = self.tags.get(TILE_COUNTS) or self.tags.get(STRIP_COUNTS)
        if not offsets or not counts or len(counts) < len(offsets):
            raise ValueError("it does not say where all its pixels are")
        return list(zip(offsets, counts, strict=False))


class _Dialect:
    """How a file stores numbers: byte order, and 4 or 8 bytes an offset."""

    def __init__(self, head: bytes) -> None:
        self.order = {b"II": "<", b"MM": ">"}[head[:2]]
        self.big = struct.unpack_from(self.order + "H", head, 2)[0] == 43
        self.offset = struct.Struct(self.order + ("Q" if self.big else "I"))
        self.count = struct.Struct(self.order + ("Q" if self.big else "H"))
        self.entry = struct.Struct(self.order + ("HHQ8s" if self.big else "HHI4s"))
        self.first = 8 if self.big else 4


def directories(file: BinaryIO, every: bool) -> tuple[list[Directory], int, str]:
    """The first directory (or all of them), how many there are, and the byte order (< or >)."""
    size = file.seek(0, 2)
    file.seek(0)
    dialect = _Dialect(file.read(4))
    found, seen = list[Directory](), set[int]()
    at = _number(file, dialect.first, dialect.offset)
    budget = size  # many directories that share one huge table must not multiply it
    while at and at not in seen:  # one that comes back to an earlier one ends there, as in Pillow
        if len(seen) == _MAX_DIRECTORIES:
            raise ValueError(f"more than {_MAX_DIRECTORIES} images")
        seen.add(at)
        count = _number(file, at, dialect.count)
        start, length = at + dialect.count.size, count * dialect.entry.size
        if start + length > size:
            raise EOFError(f"a directory of {count} entries reaches behind its end")
        if every or not found:
            directory, used = _directory(file, dialect, _read(file, start, length), start, budget)
            found.append(directory)
            budget -= used
        at = _number(file, start + length, dialect.offset)
    if not found:
        raise ValueError("no image in it")
    return found, len(seen), dialect.order


def upright(data: bytes, found: list[Directory]) -> bytes:
    """The same file with every orientation tag saying 1, as decoders differ in what they make of it."""
    patched = bytearray(data)
    for directory in found:
        if directory.orientation_at:
            at, form = directory.orientation_at
            struct.pack_into(form, patched, at, 1)
    return bytes(patched)


def _directory(file: BinaryIO, dialect: _Dialect, body: bytes, start: int, budget: int) -> tuple[Directory, int]:
    tags: dict[int, tuple[int, ...]] = {}
    orientation_at, used = None, 0
    for i, (tag, kind, count, inline) in enumerate(dialect.entry.iter_unpack(body)):
        if tag not in _WANTED or kind not in _KINDS or (kind == 7) != (tag == JPEG_TABLES):
            continue
        item = struct.Struct(dialect.order + _KINDS[kind])
        length = count * item.size
        if length > len(inline):
            used += length
            if used > budget:
                raise ValueError(f"tag {tag} claims {count} values, more than fit into the file")
            inline = _read(file, dialect.offset.unpack(inline)[0], length)
        elif tag == ORIENTATION and count == 1:
            orientation_at = (start + (i + 1) * dialect.entry.size - len(inline), item.format)
        tags[tag] = tuple(value for (value,) in item.iter_unpack(inline[:length]))
    return Directory(tags, orientation_at), used


def _number(file: BinaryIO, at: int, form: struct.Struct) -> int:
    return int(form.unpack(_read(file, at, form.size))[0])


def _read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    data = file.read(length)
    if len(data) < length:
        raise EOFError("it ends within a directory")
    return data
