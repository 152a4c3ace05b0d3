"""Bins by bits: which values they tell apart, and quantiles against NumPy and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import DTYPES, dtype
from tconv.measure.histogram import RESOLUTION, bins, quantile, spread

REAL = [d for d in DTYPES.values() if d.kind != "complex"]


@pytest.mark.parametrize("name", [d.name for d in REAL if d.itemsize <= 2])
def test_up_to_16_bits_every_value_has_its_bin(name: str) -> None:
    wanted = dtype(name)
    patterns = np.arange(1 << (8 * wanted.itemsize), dtype=f"u{wanted.itemsize}")
    if wanted.kind == "bool":
        patterns = patterns[:2]  # readers make any other byte 1
    found = bins(wanted)
    assert found.exact
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            found.values[: patterns.size], patterns.view(wanted.numpy).astype(np.float64), strict=True
        )
    counts = found.count(np.repeat(patterns.view(wanted.numpy), 2))
    assert counts[: patterns.size].tolist() == [2] * patterns.size


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_beyond_that_a_bin_stands_for_what_is_within_the_resolution(name: str) -> None:
    wanted = dtype(name)
    rng = np.random.default_rng(0)
    if wanted.is_float:
        x = (rng.standard_normal(20_000) * 10.0 ** rng.uniform(-30, 30, 20_000)).astype(wanted.numpy)
    else:
        info = np.iinfo(wanted.numpy)
        x = rng.integers(info.min, info.max, 20_000, wanted.numpy) >> wanted.numpy.type(0)
        x = x // wanted.numpy.type(2) ** rng.integers(0, wanted.bits - 1, 20_000).astype(wanted.numpy)
    found = bins(wanted)
    for value in x[:2000]:
        at = int(found.count(value.reshape(1)).argmax())
        assert abs(found.values[at] - float(value)) <= RESOLUTION * abs(float(value)) * (1 + 1e-6)
    assert int(found.count(x).sum()) == x.size


def test_small_integers_and_zero_are_exact_all_the_same() -> None:
    for name in ("int32", "uint64"):
        found = bins(dtype(name))
        for value in range(256):
            counts = found.count(np.array([value], dtype(name).numpy))
            assert found.values[counts.argmax()] == value
    for name in ("float32", "float64"):
        found = bins(dtype(name))
        for zero in (0.0, -0.0):
            assert found.values[found.count(np.array([zero], dtype(name).numpy)).argmax()] == 0


@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40),
    st.sampled_from([Fraction(1, 100), Fraction(1, 2), Fraction(99, 100), Fraction(0), Fraction(1)]),
)
def test_quantiles_are_those_of_numpy(numbers: list[int], at: Fraction) -> None:
    values, counts = np.unique(np.array(numbers), return_counts=True)
    want = np.quantile(np.array(numbers, np.float64), float(at))
    assert quantile(values, counts, at) == pytest.approx(want, rel=1e-12, abs=1e-3)


def test_quantiles_are_rounded_once_and_of_integers_exact() -> None:
    big = np.array([2**62 + 1, 2**62 + 3])
    ones = np.array([1, 1])
    assert quantile(big, ones, Fraction(0)) == 2**62 + 1
    assert quantile(big, np.array([3, 1]), Fraction(1, 2)) == 2**62 + 1
    assert quantile(np.array([1.0, 2.0]), ones, Fraction(1, 4)) == 1.25
    assert quantile(np.array([-1.7e308, 1.7e308]), ones, Fraction(1, 2)) == 0.0
    assert quantile(np.array([0.1, 7.0]), np.array([5, 1]), Fraction(1, 2)) == 0.1


def test_spread() -> None:
    values, counts = np.array([0, 1, 5, 9.99, 10]), np.array([1, 2, 3, 4, 5])
    assert list(spread(values, counts, 0, 10, 5)) == [3, 0, 3, 0, 9]
    assert list(spread(np.array([3.0]), np.array([7]), 3.0, 3.0, 4)) == [7, 0, 0, 0]
    assert list(spread(np.array([-1.7e308, 1.7e308]), np.array([1, 2]), -1.7e308, 1.7e308, 2)) == [1, 2]
    assert list(spread(np.array([0, 5e-324]), np.array([1, 2]), 0, 5e-324, 2)) == [1, 2]
    assert list(spread(np.array([-1, -1e-20, 1]), np.array([1, 1, 1]), -1, 1, 16)) == [1, *[0] * 6, 1, *[0] * 7, 1]
    assert list(spread(np.array([-1, 1e-20, 1]), np.array([1, 1, 1]), -1, 1, 2)) == [1, 2]
    wide = np.array([0, 2**62 - 1, 2**62, 2**63 - 1])
    assert list(spread(wide, np.array([1, 2, 4, 8]), 0, 2**63 - 1, 2)) == [3, 12]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float), min_size=2, max_size=9),
    st.integers(1, 16),
)
def test_the_parts_are_those_of_exact_arithmetic(numbers: list[float], parts: int) -> None:
    values, counts = np.unique(np.array(numbers), return_counts=True)
    low, high = Fraction(values[0]), Fraction(values[-1])
    want = [0] * parts
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        place = (Fraction(value) - low) / (high - low) * parts if high > low else 0
        want[min(int(place), parts - 1)] += count
    assert list(spread(values, counts, values[0].item(), values[-1].item(), parts)) == want
