"""Single elements: widened, told, found by their index."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import DTYPES, dtype
from tconv.measure.elements import index, plain, told


@pytest.mark.parametrize("name", [d.name for d in DTYPES.values() if d.kind != "complex" and d.itemsize <= 2])
def test_plain_numbers_are_the_same_values(name: str) -> None:
    wanted = dtype(name)
    count = 2 if name == "bool" else 1 << min(8 * wanted.itemsize, 16 if wanted.bits >= 8 else wanted.bits)
    x = np.arange(count, dtype=f"u{wanted.itemsize}").view(wanted.numpy)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        want = x.astype(np.float64)
    got = plain(x, wanted)
    assert got.dtype.kind in "iuf"
    assert not wanted.is_float or got.dtype == np.float32
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got.astype(np.float64), want)


@given(st.lists(st.integers(1, 6), max_size=4), st.data())
def test_index_is_that_of_numpy(shape: list[int], data: st.DataObject) -> None:
    flat = data.draw(st.integers(0, math.prod(shape) - 1))
    assert index(flat, shape) == (tuple(map(int, np.unravel_index(flat, shape))) if shape else ())


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (65519.99609375, "float32", "65519.996"),
        (65520.0, "float32", "65520"),
        (0.1, "float64", "0.1"),
        (-(2**63), "int64", "-9223372036854775808"),
        (math.nan, "float16", "NaN"),
        (math.inf, "bfloat16", "inf"),
        (3.3895313892515355e38, "bfloat16", "3.38953e+38"),
        (2.5, "complex64", "2.5"),
    ],
)
def test_told(value: float, name: str, text: str) -> None:
    assert told(value, dtype(name)) == text
