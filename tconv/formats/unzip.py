"""Where the members of a zip archive lie, so that each can be read by itself; nothing is taken on trust."""

from __future__ import annotations

import struct
import zipfile
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import IO, NamedTuple, cast

from tconv.errors import TconvError
from tconv.formats.inflate import Inflated
from tconv.formats.raw import MAX_BYTES, file_size, opened, take

MAX_DIRECTORY = 100_000_000  # bytes; a million members take less
_END = struct.Struct("<4s8xI4xH")  # what ends an archive: the size of the directory, and of the comment after it
_LOCATOR, _END_64 = struct.Struct("<4s4xQ4x"), struct.Struct("<4s36xQ")  # the same where 32 bits do not do
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


def names(path: Path) -> list[str]:
    """The names of the members, from the archive's directory alone; ``TconvError`` for what has none."""
    with opened(path) as file:
        members, _ = _directory(file, file_size(file))
    return [member.filename for member in members]


def entries(file: RawIOBase) -> list[Entry]:
    """The members in the order of the archive's directory; ``TconvError`` for what is no whole archive.

    Members that overlap are refused: that is what makes the worst zip bombs,
    https://www.bamsoftware.com/hacks/zipbomb/
    """
    size = file_size(file)
    members, limit = _directory(file, size)
    starts, before = dict[int, int](), 0
    for member in sorted(members, key=lambda m: m.header_offset):
        if member.header_offset < before:
            raise TconvError("its bytes are those of another member too", tensor=member.filename)
        starts[member.header_offset] = start = _start(file, member)
        before = start + member.compress_size
        if before > limit:
            how = "beyond the end of the file" if before > size else "in the archive's directory"
            raise TconvError(f"it ends {how}", tensor=member.filename)
    return [_entry(member, starts[member.header_offset]) for member in members]


def _directory(file: RawIOBase, size: int) -> tuple[list[zipfile.ZipInfo], int]:
    """What the archive says of its members, and where it says so."""
    end = _end(file, size)
    if end is None:
        raise TconvError(
            "truncated: the directory at the end of its zip archive is missing", remedy="fetch or write the file again"
        )
    if end.directory > MAX_DIRECTORY:
        raise TconvError(
            f"a zip archive with a directory of {end.directory:,} bytes, and no more than {MAX_DIRECTORY:,} are read"
        )
    try:
        with zipfile.ZipFile(cast(IO[bytes], file)) as archive:
            return archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, struct.error, EOFError, RuntimeError, ValueError, OverflowError) as problem:
        raise TconvError(f"not a whole zip archive: {problem}", remedy="fetch or write the file again") from problem


def surplus(file: RawIOBase) -> int:
    """How many bytes follow the end of the archive."""
    size = file_size(file)
    end = _end(file, size)
    return size - end.at if end else 0


class _End(NamedTuple):
    """Where an archive ends, and the size of its directory."""

    at: int
    directory: int


def _end(file: RawIOBase, size: int) -> _End | None:
    """From the record that ends the directory: it is the last thing in the file, but for a comment."""
    start = max(0, size - _END.size - 0xFFFF)
    file.seek(start)
    tail = take(file, size - start)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        return None
    _, directory, comment = _END.unpack_from(tail, at)
    if at >= _LOCATOR.size:
        mark, place = _LOCATOR.unpack_from(tail, at - _LOCATOR.size)
        if mark == b"PK\6\7":
            directory = _directory_64(file, place)
    return _End(min(size, start + at + _END.size + comment), directory)


def _directory_64(file: RawIOBase, place: int) -> int:
    """The size of the directory from its record with fields of 64 bits; 0 if that is not there, which zipfile tells."""
    if place < MAX_BYTES:
        file.seek(place)
        data = take(file, _END_64.size)
        if len(data) == _END_64.size:
            mark, directory = _END_64.unpack(data)
            return int(directory) if mark == b"PK\6\6" else 0
    return 0


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
