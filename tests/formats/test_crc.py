"""Checksums of pieces, against zlib's checksum of the whole."""

from __future__ import annotations

import random
import threading
import zlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tconv.formats.crc import PiecewiseCrc32, crc32_combine


def test_the_check_value_of_the_standard_in_two_halves() -> None:
    assert crc32_combine(zlib.crc32(b"1234"), zlib.crc32(b"56789"), 5) == 0xCBF43926


@given(st.binary(), st.binary())
def test_combining_is_the_checksum_of_the_concatenation(first: bytes, second: bytes) -> None:
    assert crc32_combine(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


def test_combining_across_more_than_four_gigabytes() -> None:
    zeros = bytes(1 << 20)
    whole = zlib.crc32(b"x")
    for _ in range(5 * 1024):
        whole = zlib.crc32(zeros, whole)
    tail = 0
    for _ in range(5 * 1024):
        tail = zlib.crc32(zeros, tail)
    assert crc32_combine(zlib.crc32(b"x"), tail, 5 << 30) == whole


@given(st.binary(min_size=1, max_size=200), st.integers(0, 2**32), st.lists(st.integers(0, 200), max_size=12))
def test_pieces_in_any_order(data: bytes, seed: int, cuts: list[int]) -> None:
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    pieces = list(pairwise(edges))
    random.Random(seed).shuffle(pieces)
    checksum = PiecewiseCrc32(len(data))
    for lo, hi in pieces:
        assert checksum.total is None
        checksum.add(lo, data[lo:hi])
        checksum.add(lo, data[lo:hi])  # once more: counted once
    assert checksum.total == zlib.crc32(data)


def test_pieces_from_several_threads() -> None:
    data = random.Random(0).randbytes(100_000)
    checksum = PiecewiseCrc32(len(data))

    def feed(first: int) -> None:
        for lo in range(first * 100, len(data), 400):
            checksum.add(lo, data[lo : lo + 100])

    threads = [threading.Thread(target=feed, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert checksum.total == zlib.crc32(data)


def test_nothing_has_the_checksum_of_nothing() -> None:
    assert PiecewiseCrc32(0).total == zlib.crc32(b"")
