"""The bytes that come out of a deflate stream inside a file, with their checksum."""

from __future__ import annotations

import zlib
from io import RawIOBase
from typing import TYPE_CHECKING

from tconv.errors import TconvError
from tconv.formats.raw import CHUNK

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Inflated(RawIOBase):
    """What ``compressed`` bytes from ``start`` on decode to; ``crc`` is the CRC-32 of what was read so far.

    Only what is asked for is decoded. Raises ``TconvError`` for a stream that is broken or ends too early.
    """

    def __init__(self, file: RawIOBase, start: int, compressed: int) -> None:
        self._next_at = start
        self._left = compressed
        self.resume(file)
        self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
        self.crc = 0

    def resume(self, file: RawIOBase) -> None:
        """Go on where it was, with the file opened again."""
        file.seek(self._next_at)
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        while len(view) and not self._engine.eof:
            data = self._engine.unconsumed_tail or self._next()
            try:
                out = self._engine.decompress(data, len(view))
            except zlib.error as problem:
                raise TconvError(f"the compressed bytes are broken: {problem}") from problem
            if out:
                view[: len(out)] = out
                self.crc = zlib.crc32(out, self.crc)
                return len(out)
            if not data:
                raise TconvError("the compressed bytes end too early", remedy="fetch or write the file again")
        return 0

    def _next(self) -> bytes:
        data = self._file.read(min(CHUNK, self._left)) or b""
        self._left -= len(data)
        self._next_at += len(data)
        return data
