"""Zip archives of stored members whose places are known before their bytes are: each can be written, and mapped, alone.

Records after the ZIP File Format Specification (APPNOTE.TXT) 6.3.10, with the 64-bit fields where they are needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64  # bytes; NumPy's own for .npy, and that of the vector registers
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_ZIP64, _PADDING = 0x0001, 0xD935  # header ids of extra fields; the second is Android's, for alignment
_UTF8 = 0x0800  # the flag of a name that is not plain ASCII
_DATE = 1 << 5 | 1  # 1 January 1980, the first that zip can tell: the same content gives the same file
_UNIX, _MODE = 3 << 8, 0o600 << 16  # as NumPy writes them
_LOCAL_CRC = 14  # where in a local header the checksum is


@dataclass(frozen=True, slots=True)
class Member:
    """A stored member. ``header``: the offset of its local header; ``start``: that of its first byte."""

    name: str
    size: int
    header: int
    start: int

    @property
    def crc_offset(self) -> int:
        return self.header + _LOCAL_CRC

    def local_header(self) -> bytes:
        """The record before its bytes; its checksum is zero until it is known."""
        size = min(self.size, _MAX_32)
        extra = _zip64_sizes(self.size)
        name = self.name.encode()
        extra += _padding(self.start - self.header - 30 - len(name) - len(extra))
        common = _common(self, 0, size, len(name), len(extra))
        return struct.pack("<4s", b"PK\3\4") + common + name + extra


def place(sizes: Iterable[tuple[str, int]]) -> list[Member]:
    """Members of those names and sizes one after the other, the first byte of each aligned."""
    members, end = list[Member](), 0
    for name, size in sizes:
        least = end + 30 + len(name.encode()) + len(_zip64_sizes(size))
        start = -(-least // ALIGNMENT) * ALIGNMENT
        if 0 < start - least < 6:  # no room for a padding field
            start += ALIGNMENT
        members.append(Member(name, size, end, start))
        end = start + size
    return members


def directory(members: Sequence[Member], checksums: Sequence[int]) -> tuple[int, bytes]:
    """The central directory and what ends the archive, and the offset where it belongs."""
    at = members[-1].start + members[-1].size if members else 0
    entries = b"".join(_entry(m, crc) for m, crc in zip(members, checksums, strict=True))
    return at, entries + _end(len(members), at, len(entries))


def _entry(member: Member, crc: int) -> bytes:
    large = [n for n in (member.size, member.size, member.header) if n >= _MAX_32]
    extra = struct.pack(f"<HH{len(large)}Q", _ZIP64, 8 * len(large), *large) if large else b""
    name = member.name.encode()
    common = _common(member, crc, min(member.size, _MAX_32), len(name), len(extra))
    return (
        struct.pack("<4sH", b"PK\1\2", _UNIX | _version(member))
        + common
        + struct.pack("<HHHII", 0, 0, 0, _MODE, min(member.header, _MAX_32))
        + name
        + extra
    )


def _common(member: Member, crc: int, size: int, name_size: int, extra_size: int) -> bytes:
    """The fields that local headers and directory entries share."""
    flags = 0 if member.name.isascii() else _UTF8
    version, stored, time = _version(member), 0, 0
    return struct.pack("<5H3I2H", version, flags, stored, time, _DATE, crc, size, size, name_size, extra_size)


def _version(member: Member) -> int:
    """The version of the format that it takes to read it, times ten."""
    return 45 if max(member.size, member.header) >= _MAX_32 else 20


def _zip64_sizes(size: int) -> bytes:
    return struct.pack("<HHQQ", _ZIP64, 16, size, size) if size >= _MAX_32 else b""


def _padding(size: int) -> bytes:
    return struct.pack("<HHH", _PADDING, size - 4, ALIGNMENT).ljust(size, b"\0") if size else b""


def _end(count: int, at: int, size: int) -> bytes:
    """The end of the directory, preceded by its 64-bit twin where 16 or 32 bits do not do."""
    short = struct.pack(
        "<4s4H2IH",
        b"PK\5\6",
        0,
        0,
        min(count, _MAX_16),
        min(count, _MAX_16),
        min(size, _MAX_32),
        min(at, _MAX_32),
        0,
    )
    if count < _MAX_16 and max(at, size) < _MAX_32:
        return short
    twin = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, _UNIX | 45, 45, 0, 0, count, count, size, at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + size, 1)
    return twin + locator + short
