"""The CRC-32 of bytes that come in pieces, in any order: what zip archives store of every member."""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

_POLYNOMIAL = 0xEDB88320  # CRC-32 of IEEE 802.3, bit-reversed as zlib has it
_ONE = 1 << 31  # the polynomial 1: the highest bit is the coefficient of x⁰


def _multiply(a: int, b: int) -> int:
    """a(x)·b(x) modulo the CRC's polynomial, over GF(2)."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = a << 1 & 0xFFFFFFFF
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


@lru_cache(maxsize=1024)
def _shift(count: int) -> int:
    """x to the power of 8·``count``: what appending ``count`` zero bytes multiplies a CRC by."""
    power, base = _ONE, _ONE >> 8
    while count:
        if count & 1:
            power = _multiply(power, base)
        base = _multiply(base, base)
        count >>= 1
    return power


def crc32_combine(first: int, second: int, second_size: int) -> int:
    """The CRC-32 of two byte strings, one after the other, from theirs and the size of the second.

    After ``crc32_combine`` of zlib, by Mark Adler: appending n bytes multiplies the first CRC by x⁸ⁿ.
    """
    return _multiply(_shift(second_size), first) ^ second


class _Run(NamedTuple):
    start: int
    stop: int
    crc: int

    def joined(self, after: _Run) -> _Run:
        return _Run(self.start, after.stop, crc32_combine(self.crc, after.crc, after.stop - after.start))


class PiecewiseCrc32:
    """Collects the CRC-32 of ``size`` bytes from pieces; thread-safe. Neighbours are joined as they come."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._runs: list[_Run] = []
        self._lock = threading.Lock()

    def add(self, start: int, data: bytes | memoryview) -> None:
        """The bytes from ``start`` on. What overlaps a piece that is already known is not counted again."""
        if not len(data):
            return
        run = _Run(start, start + len(data), zlib.crc32(data))
        with self._lock:
            at = bisect_left(self._runs, run)
            before, after = self._runs[max(at - 1, 0) : at], self._runs[at : at + 1]
            if any(r.start < run.stop and run.start < r.stop for r in (*before, *after)):
                return
            if before and before[0].stop == run.start:
                run, at = before[0].joined(run), at - 1
            else:
                before = []
            if after and after[0].start == run.stop:
                run = run.joined(after[0])
            else:
                after = []
            self._runs[at : at + len(before) + len(after)] = [run]

    @property
    def total(self) -> int | None:
        """The CRC-32 of all ``size`` bytes, or None while some are missing."""
        with self._lock:
            if not self.size:
                return 0
            whole = len(self._runs) == 1 and self._runs[0][:2] == (0, self.size)
            return self._runs[0].crc if whole else None
