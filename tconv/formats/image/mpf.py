"""Several pictures in one JPEG file (CIPA DC-007, Multi-Picture Format): where each of them begins."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

MARK = b"MPF\0"  # what an APP2 segment begins with that holds the index
_ENTRIES = 0xB002
_ENTRY = 16  # bytes: attributes, size and offset in 32 bits each, two pictures that depend on it in 16


class Index(NamedTuple):
    """What follows the mark, and where in the file that begins."""

    data: bytes
    at: int

    def starts(self) -> Iterator[int]:
        """Where in the file the pictures behind the first begin. Raises ``ValueError`` for a damaged index."""
        try:
            for place, length in self._entries():
                for entry in range(place + _ENTRY, place + length, _ENTRY):
                    yield self.at + self._unpack("8xI", entry)[0]
        except (KeyError, struct.error):
            raise ValueError("the index of its pictures is damaged") from None

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Where the entries are, one a picture, and how many bytes they take."""
        (start,) = self._unpack("I", 4)
        (count,) = self._unpack("H", start)
        for at in range(start + 2, start + 2 + 12 * count, 12):
            tag, _, length, place = self._unpack("HHII", at)
            if tag == _ENTRIES:
                yield place, length

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        order = {b"II*\0": "<", b"MM\0*": ">"}[self.data[:4]]
        return struct.unpack_from(order + form, self.data, at)
