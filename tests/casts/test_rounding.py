"""Rounding to nearest, as the one step from the exact value that it has to be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.casts import rounding
from tconv.dtypes import DTYPES, dtype
from tests.exact import FORMATS, decode, values

SINGLE = FORMATS["float32"]
NARROW = [name for name in FORMATS if DTYPES[name].bits <= 16]


def nearest(numbers: list[float], src: str, dst: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    x = np.array(numbers, dtype(src).numpy)
    out = np.empty(x.size, dtype(dst).numpy)
    with np.errstate(all="ignore"):
        rounding.nearest(x, dtype(src), dtype(dst), out)
    return out.astype(np.float64)


@pytest.mark.parametrize("name", NARROW)
def test_widening_is_exact(name: str) -> None:
    bits = np.arange(1 << DTYPES[name].bits, dtype=f"u{DTYPES[name].itemsize}")
    wide = rounding.widened(bits.view(DTYPES[name].numpy), DTYPES[name])
    assert wide.dtype == np.float32
    for b, got in zip(bits.tolist(), wide.tolist(), strict=True):
        meant = decode(b, FORMATS[name])
        assert (math.isnan(got) and math.isnan(meant)) or (got == meant and math.copysign(1, got) == _sign(meant))


def _sign(value: Fraction | float) -> float:
    return math.copysign(1, value)


@given(st.lists(st.floats(width=64), min_size=1, max_size=30))
def test_rounded_to_odd_is_exact_or_the_odd_neighbour(numbers: list[float]) -> None:
    x = np.array(numbers)
    with np.errstate(all="ignore"):
        single = rounding._odd_single(x)
    for value, odd, bits in zip(x.tolist(), single.tolist(), single.view(np.uint32).tolist(), strict=True):
        if math.isnan(value):
            assert math.isnan(odd)
        elif odd != value:
            magnitude = bits % 2**31
            assert magnitude & 1
            assert decode(magnitude - 1, SINGLE) < abs(value) < decode(magnitude + 1, SINGLE)
            assert math.copysign(1, odd) == math.copysign(1, value)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30))
def test_integers_rounded_to_odd_keep_what_decides_a_rounding(numbers: list[int]) -> None:
    made = rounding._odd_double(np.array(numbers, np.int64))
    for number, got in zip(numbers, made.tolist(), strict=True):
        if abs(number) <= 2**53 or number % 2**11 == 0:
            assert got == number
        else:
            assert (got / 2**11) % 2 == 1
            assert abs(int(got) - number) < 2**11


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=30))
def test_integers_are_sums_of_two_floats(numbers: list[int]) -> None:
    for x in (np.array(numbers, np.int64), np.array([n + 2**63 for n in numbers], np.uint64)):
        high, low = rounding.split(x)
        assert [int(h) + int(r) for h, r in zip(high, low, strict=True)] == x.tolist()
        assert all(abs(r) <= 2**10 for r in low)
    narrow = np.array([n >> 32 for n in numbers], np.int32)
    high, low = rounding.split(narrow)
    assert (high.tolist(), low.tolist()) == (narrow.tolist(), [0])


@pytest.mark.parametrize("name", NARROW)
def test_widening_into_a_given_place(name: str) -> None:
    x = np.array([1, -2, 0.5], np.float32).astype(dtype(name).numpy)
    out = np.empty(3, np.float32)
    assert rounding.widened(x, dtype(name), out) is out
    assert out.tolist() == [1, -2, 0.5]


def test_overflow_is_infinite_or_nan() -> None:
    assert nearest([65519.99, 65520, -65520], "float64", "float16").tolist() == [65504, math.inf, -math.inf]
    assert nearest([61439.99, 61440, -61440], "float32", "float8_e5m2").tolist() == [57344, math.inf, -math.inf]
    for name, last, over in (
        ("float8_e4m3fn", 464, 464.01),
        ("float8_e4m3fnuz", 247.9, 248),
        ("float8_e5m2fnuz", 61439, 61440),
    ):
        got = nearest([last, over, -over, math.inf], "float64", name)
        assert got[0] == DTYPES[name].max
        assert np.isnan(got[1:]).all()


def test_the_last_of_three_digits_decides() -> None:
    """2**24 + 1 is no float32; on its way to bfloat16 it must not lose that it is above the midpoint."""
    x = 2**24 + 2**16
    assert nearest([x, x + 1, x + 3 * 2**15], "int64", "bfloat16").tolist() == [2**24, 2**24 + 2**17, 2**24 + 2**17]
    assert nearest([x + 1], "int32", "bfloat16").tolist() == [2**24 + 2**17]
    assert nearest([2**63 + 2**55, 2**63 + 2**55 + 1], "uint64", "bfloat16").tolist() == [2**63, 2**63 + 2**56]


@pytest.mark.parametrize("src", ["uint32", "int64", "uint64"])
@pytest.mark.parametrize("dst", ["float32", "float64"])
def test_integers_to_wide_floats(src: str, dst: str) -> None:
    near = {
        2**n + k
        for n in range(20, 64)
        for k in (-1, 0, 1, 2 ** max(n - 24, 0), 3 * 2 ** max(n - 24, 0), 2 ** max(n - 53, 0))
    }
    numbers = sorted(v for v in near if v <= dtype(src).max)
    out = np.empty(len(numbers), dtype(dst).numpy)
    rounding.nearest(np.array(numbers, dtype(src).numpy), dtype(src), dtype(dst), out)
    for number, got in zip(numbers, values(out, dtype(dst)), strict=True):
        digits = 24 if dst == "float32" else 53
        unit = 2 ** max(number.bit_length() - digits, 0)
        assert got == round(Fraction(number, unit)) * unit
