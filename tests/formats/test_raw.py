"""Elements at an offset of a file, strided or not, against NumPy's own striding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats.raw import MAX_AXES, RawSource, checked_bytes

SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@given(SHAPES, st.data())
def test_any_strides_even_those_that_repeat_or_overlap(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], data: Any
) -> None:
    strides = tuple(data.draw(st.integers(0, 5)) for _ in shape)
    stored = np.arange(100, dtype=np.int16)
    path = tmp_path_factory.mktemp("raw") / "x"
    path.write_bytes(b"abc" + stored.tobytes())
    want = np.lib.stride_tricks.as_strided(stored[7:], shape, [2 * s for s in strides]).flatten()
    source = RawSource(path, dtype("int16"), shape, 3 + 2 * 7, strides=strides)
    hi = data.draw(st.integers(0, want.size))
    lo = data.draw(st.integers(0, hi))
    assert source.read(lo, hi).tolist() == want[lo:hi].tolist()


def test_the_other_byte_order(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes.fromhex("ff 3ff8000000000000 c004000000000000"))
    source = RawSource(tmp_path / "x", dtype("complex128"), (1,), 1, swap=True)
    assert source.read(0, 1).tolist() == [1.5 - 2.5j]


def test_a_swapped_bfloat16(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes.fromhex("4049 bf80"))
    source = RawSource(tmp_path / "x", dtype("bfloat16"), (2,), 0, swap=True)
    assert source.read(0, 2).astype(np.float32).tolist() == [3.140625, -1.0]


def test_the_bytes_of_a_shape() -> None:
    assert checked_bytes((), dtype("float32")) == 4
    assert checked_bytes((3, 5), dtype("complex128")) == 240
    assert checked_bytes((3, 0), dtype("int8")) == 0
    assert checked_bytes((2**60 - 1,), dtype("float64")) == 2**63 - 8
    assert checked_bytes((2**45, 0), dtype("float64")) == 0


@pytest.mark.parametrize("shape", [(-1,), (2**60,), (0, 2**63), (2**46, 0), (2**31, 2**31, 2), (1,) * (MAX_AXES + 1)])
def test_what_is_no_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(TconvError, match="shape"):
        checked_bytes(shape, dtype("float64"))
