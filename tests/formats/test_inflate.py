"""Deflate streams inside a file, against zlib."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError
from tconv.formats.inflate import Inflated
from tconv.formats.raw import opened, take


def deflated(data: bytes, level: int = 6) -> bytes:
    engine = zlib.compressobj(level, zlib.DEFLATED, -15)
    return engine.compress(data) + engine.flush()


@given(st.binary(max_size=300), st.integers(0, 200), st.integers(1, 100), st.integers(0, 9))
def test_any_bytes_in_parts_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes, repeats: int, step: int, level: int
) -> None:
    data = seed * repeats
    stream = deflated(data, level)
    path = tmp_path_factory.mktemp("deflated") / "x"
    path.write_bytes(b"before" + stream + b"after")
    with opened(path) as file:
        content, parts = Inflated(file, 6, len(stream)), list[bytes]()
        while part := take(content, step):
            parts.append(part)
        assert b"".join(parts) == data
        assert content.crc == zlib.crc32(data)


def test_only_what_is_asked_for_is_decoded(tmp_path: Path) -> None:
    bomb = deflated(bytes(1 << 24))
    (tmp_path / "x").write_bytes(bomb)
    with opened(tmp_path / "x") as file:
        assert take(Inflated(file, 0, len(bomb)), 10) == bytes(10)


def test_a_stream_that_is_cut_off(tmp_path: Path) -> None:
    data = random.Random(0).randbytes(1000)
    stream = deflated(data)
    (tmp_path / "x").write_bytes(stream)
    for size in (0, 1, 100, len(stream) - 1):
        with opened(tmp_path / "x") as file, pytest.raises(TconvError, match="end too early"):
            take(Inflated(file, 0, size), 2000)


def test_a_stream_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff" * 100)
    with opened(tmp_path / "x") as file, pytest.raises(TconvError, match="compressed bytes are broken"):
        take(Inflated(file, 0, 100), 10)
