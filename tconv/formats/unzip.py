"""Where the members of a zip archive lie, so that each can be read by itself; nothing is taken on trust."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from io import RawIOBase
from typing import IO, cast

from tconv.errors import TconvError
from tconv.formats.inflate import Inflated
from tconv.formats.raw import file_size, take

_ENCRYPTED, _UTF8 = 0x1, 0x800  # flags
_DEFLATE_LIMIT = 1032  # no byte of a deflate stream can stand for more


@dataclass(frozen=True, slots=True)
class Entry:
    """A member: its bytes are ``compressed`` ones from ``start`` on, and ``size`` once they are decoded."""

    name: str
    start: int
    size: int
    compressed: int
    crc: int
    method: int
    encrypted: bool

    @property
    def deflated(self) -> bool:
        return self.method == zipfile.ZIP_DEFLATED

    def check(self) -> None:
        """Refuse what is neither stored nor deflated, and sizes that no such member can have."""
        if self.encrypted:
            raise TconvError("the member is encrypted")
        if self.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TconvError(f"the member is compressed by method {self.method}; tconv reads stored and deflated ones")
        most = self.compressed * (_DEFLATE_LIMIT if self.deflated else 1)
        if self.size > most or (not self.deflated and self.size < most):
            raise TconvError(f"{self.size:,} bytes cannot come out of {self.compressed:,}")

    def content(self, file: RawIOBase) -> RawIOBase:
        """Its bytes from the first on; ``file`` is the archive. A stored member can be read beyond its end."""
        if self.deflated:
            return Inflated(file, self.start, self.compressed)
        file.seek(self.start)
        return file


def entries(file: RawIOBase) -> list[Entry]:
    """The members in the order of the archive's directory; ``TconvError`` for what is no whole archive.

    Members that overlap are refused: that is what makes the worst zip bombs,
    https://www.bamsoftware.com/hacks/zipbomb/
    """
    size = file_size(file)
    try:
        with zipfile.ZipFile(cast(IO[bytes], file)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as problem:
        raise TconvError(f"not a whole zip archive: {problem}", remedy="fetch or write the file again") from problem
    starts, end = dict[int, int](), 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset < end:
            raise TconvError("its bytes are those of another member too", tensor=member.filename)
        starts[member.header_offset] = start = _start(file, member)
        end = start + member.compress_size
        if end > size:
            raise TconvError("it ends beyond the end of the file", tensor=member.filename)
    return [_entry(member, starts[member.header_offset]) for member in members]


def _start(file: RawIOBase, member: zipfile.ZipInfo) -> int:
    """Where its bytes start, after the local header, which must have the name that the directory has."""
    file.seek(member.header_offset)
    head = take(file, 30)
    if len(head) == 30 and head.startswith(b"PK\3\4"):
        flags, name_size, extra_size = struct.unpack_from("<6xH18xHH", head)
        encoding = "utf8" if flags & _UTF8 else "cp437"
        if take(file, name_size).decode(encoding, "replace") == member.orig_filename:
            return member.header_offset + 30 + int(name_size) + int(extra_size)
    raise TconvError("it is not where the archive's directory says", tensor=member.filename)


def _entry(member: zipfile.ZipInfo, start: int) -> Entry:
    encrypted = bool(member.flag_bits & _ENCRYPTED)
    return Entry(
        member.filename, start, member.file_size, member.compress_size, member.CRC, member.compress_type, encrypted
    )
