"""4-bit elements in bytes: packed from pieces in any order, read in any parts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import DTYPES
from tconv.formats.packed import HalfBytes, Packer
from tconv.formats.raw import RawSource

DIGITS = "0123456789abcdef"


@given(st.text(DIGITS, max_size=40), st.lists(st.integers(0, 40)), st.randoms())
def test_pieces_in_any_order_make_the_same_bytes(digits: str, marks: list[int], chosen: object) -> None:
    x = np.array([int(d, 16) for d in digits], np.uint8).view(DTYPES["uint4"].numpy)
    cuts = sorted({0, x.size, *(m for m in marks if m < x.size)})
    pieces = list(itertools.pairwise(cuts))
    chosen.shuffle(pieces)  # type: ignore[attr-defined]  # hypothesis's Random
    packer, found = Packer(x.size), bytearray((x.size + 1) // 2)
    for lo, hi in pieces:
        at, data = packer.pack(lo, x[lo:hi])
        found[at : at + data.size] = data.tobytes()
    want = bytes.fromhex("".join(b + a for a, b in zip(digits[::2], digits[1::2] + "0", strict=False)))
    assert bytes(found) == want


@pytest.mark.parametrize("into", [False, True])
def test_any_part_is_read(tmp_path: Path, into: bool) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"?" + bytes.fromhex("10325476"))
    source = HalfBytes(RawSource(path, DTYPES["uint8"], (4,), 1), DTYPES["uint4"], (7,))
    for lo in range(8):
        for hi in range(lo, 8):
            out = np.empty(hi - lo, DTYPES["uint4"].numpy) if into else None
            got = source.read(lo, hi, out)
            assert got.astype(np.uint8).tolist() == list(range(lo, hi))
            assert out is None or got is out
