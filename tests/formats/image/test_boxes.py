"""Boxes: lengths of each kind, paths, and lengths that lie."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.formats.image.boxes import Box, boxes, contents, inside


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body


def listed(data: bytes) -> list[tuple[bytes, bytes]]:
    file = io.BytesIO(data)
    return [(one.kind, contents(file, one)) for one in boxes(file, 0, len(data))]


def test_plain_long_and_open_ended_boxes() -> None:
    long = struct.pack(">I4sQ", 1, b"long", 16 + 3) + b"abc"
    rest = struct.pack(">I4s", 0, b"rest") + b"to the end"
    assert listed(box(b"one ", b"1") + long + rest) == [(b"one ", b"1"), (b"long", b"abc"), (b"rest", b"to the end")]


def test_a_path_leads_to_the_first_of_its_kind() -> None:
    data = box(b"free", b"") + box(b"meta", b"\0\0\0\0" + box(b"a   ", box(b"b   ", b"1")) + box(b"a   ", b""))
    file = io.BytesIO(data)
    meta = inside(file, Box(b"", 0, len(data)), b"meta")
    assert meta is not None
    found = inside(file, meta, b"a   b   ", skip=4)
    assert found is not None
    assert contents(file, found) == b"1"
    assert inside(file, meta, b"a   c   ", skip=4) is None
    assert inside(file, meta, b"x   ", skip=4) is None


@pytest.mark.parametrize("length", [2, 7, 10, 1 << 31])
def test_lengths_that_lie(length: int) -> None:
    with pytest.raises(EOFError, match="ends within its box b'kind'"):
        listed(struct.pack(">I4s", length, b"kind") + b"x")


@given(st.binary(max_size=60))
def test_any_bytes_end(data: bytes) -> None:
    try:
        found = listed(data)
    except (EOFError, struct.error):
        return
    assert sum(8 + len(body) for _, body in found) <= len(data)
