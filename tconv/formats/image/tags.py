"""TIFF's structure (TIFF 6.0, BigTIFF): the directories of a file, their tags, and where the pixels lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from tconv.formats.image.exif import stated_by

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, STRIP_OFFSETS, ORIENTATION = 256, 257, 258, 259, 262, 273, 274
SAMPLES, STRIP_COUNTS, TILE_OFFSETS, TILE_COUNTS, EXTRA, FORMAT = 277, 279, 324, 325, 338, 339
PLANAR, JPEG_TABLES, XMP, ICC = 284, 347, 700, 34675
FILL_ORDER, STRIP_ROWS, PREDICTOR, TILE_WIDTH, TILE_HEIGHT = 266, 278, 317, 322, 323
_CODING = (WIDTH, HEIGHT, COMPRESSION, FILL_ORDER, STRIP_ROWS, PREDICTOR, TILE_WIDTH, TILE_HEIGHT)  # one value each
_WANTED = frozenset(
    (*_CODING, BITS, PHOTOMETRIC, STRIP_OFFSETS, SAMPLES, STRIP_COUNTS, TILE_OFFSETS, TILE_COUNTS, EXTRA)
) | {FORMAT, PLANAR, JPEG_TABLES}
_KINDS = {1: "B", 3: "H", 4: "I", 7: "B", 13: "I", 16: "Q", 18: "Q"}  # the unsigned types; 7 is "undefined"
_MAX_DIRECTORIES = 65536


@dataclass(frozen=True)
class Directory:
    """One image: its tags that matter here, and what entries say of its orientation, each with its position.

    ``besides``: where (position, length) the tags stand that make no pixel.
    """

    tags: dict[int, tuple[int, ...]]
    turned: dict[int, int | None] = field(default_factory=dict)
    besides: dict[int, tuple[int, int]] = field(default_factory=dict)

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
    patched, dialect = bytearray(data), _Dialect(data[:4])
    plain = dialect.entry.pack(ORIENTATION, 3, 1, struct.pack(dialect.order + "H", 1))
    for directory in found:
        for at in directory.turned:
            patched[at : at + len(plain)] = plain
    return bytes(patched)


def rewritten(data: bytes, directory: Directory, order: str, which: slice, samples: int, form: int) -> bytes:
    """A plain TIFF of the same compressed data: the pieces ``which``, as ``samples`` of one format with black as zero.

    So a decoder gets what it knows: one plane of several, or samples under the name of others of that size.
    """
    pieces = directory.pieces()[which]
    body = b"".join(data[at : at + length] for at, length in pieces)
    starts = [8 + sum(length for _, length in pieces[:i]) for i in range(len(pieces))]
    offsets, counts = (TILE_OFFSETS, TILE_COUNTS) if TILE_OFFSETS in directory.tags else (STRIP_OFFSETS, STRIP_COUNTS)
    tags: dict[int, Sequence[int]] = {tag: directory.tags[tag][:1] for tag in _CODING if tag in directory.tags}
    tags |= {BITS: directory.tags[BITS][:1] * samples, FORMAT: [form] * samples, SAMPLES: [samples]}
    tags |= {PHOTOMETRIC: [2 if samples > 1 else 1], offsets: starts, counts: [length for _, length in pieces]}
    if samples == 4:
        tags[EXTRA] = [2]
    at = 8 + len(body)
    far = at + 2 + 12 * len(tags) + 4
    entries, values = struct.pack(order + "H", len(tags)), b""
    for tag in sorted(tags):
        kind, size = ("H", 3) if tag in (BITS, FORMAT) else ("I", 4)
        value = struct.pack(f"{order}{len(tags[tag])}{kind}", *tags[tag])
        entries += struct.pack(order + "HHI", tag, size, len(tags[tag]))
        if len(value) > 4:
            entries += struct.pack(order + "I", far + len(values))
            values += value
        else:
            entries += value.ljust(4, b"\0")
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", at)
    return b"".join([head, body, entries, bytes(4), values])


def _directory(file: BinaryIO, dialect: _Dialect, body: bytes, start: int, budget: int) -> tuple[Directory, int]:
    tags: dict[int, tuple[int, ...]] = {}
    besides: dict[int, tuple[int, int]] = {}
    turned: dict[int, int | None] = {}
    used = 0
    for i, (tag, kind, count, inline) in enumerate(dialect.entry.iter_unpack(body)):
        if tag in (XMP, ICC) and count > len(inline):
            besides[tag] = dialect.offset.unpack(inline)[0], count
        if tag == ORIENTATION:
            turned[start + i * dialect.entry.size] = stated_by(kind, count, inline, dialect.order)
        if tag not in _WANTED or kind not in _KINDS or (kind == 7) != (tag == JPEG_TABLES):
            continue
        item = struct.Struct(dialect.order + _KINDS[kind])
        length = count * item.size
        if length > len(inline):
            used += length
            if used > budget:
                raise ValueError(f"tag {tag} claims {count} values, more than fit into the file")
            inline = _read(file, dialect.offset.unpack(inline)[0], length)
        tags[tag] = tuple(value for (value,) in item.iter_unpack(inline[:length]))
    return Directory(tags, turned, besides), used


def beside(file: BinaryIO, directory: Directory, tag: int) -> bytes:
    """The value of a tag that makes no pixel; nothing where it is missing, or not in the file."""
    at, length = directory.besides.get(tag, (0, 0))
    return _read(file, at, length) if at + length <= file.seek(0, 2) else b""


def _number(file: BinaryIO, at: int, form: struct.Struct) -> int:
    return int(form.unpack(_read(file, at, form.size))[0])


def _read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    data = file.read(length)
    if len(data) < length:
        raise EOFError("it ends within a directory")
    return data
