"""Pooled mean and std: exact for integers, as good as NumPy for floats, whatever the pieces and their order."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import from_numpy
from tconv.measure import pool
from tconv.measure.pool import Channels, NotFinite, Powers, powers, root

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "int32", "uint64", "float16", "float32", "float64"]


def made(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.3
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.normal(3, 2, shape).astype(dtype)
    info = np.iinfo(kind)
    return rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), shape, dtype=dtype, endpoint=True)


def of(x: Any, axis: int | None, cuts: int = 1, order: random.Random | None = None) -> list[Powers]:
    """Of an array looked at in ``cuts`` pieces."""
    dtype = from_numpy(x.dtype)
    assert dtype is not None
    channels = Channels.of(x.shape, axis)
    bounds = np.linspace(0, x.size, cuts + 1).astype(int).tolist()
    pieces = list(itertools.pairwise(bounds))
    if order:
        order.shuffle(pieces)
    total = [Powers()] * channels.count
    for lo, hi in pieces:
        found = powers(x.reshape(-1)[lo:hi], lo, dtype, channels)
        total = [a + b for a, b in zip(total, found, strict=True)]
    return total


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), [((13, 17, 3), 2), ((5, 3, 11), 1), ((3, 200), 0), ((7, 9, 5), 2)])
@pytest.mark.parametrize("cuts", [1, 7])
def test_mean_and_std_are_those_of_numpy(dtype: str, shape: tuple[int, ...], axis: int, cuts: int) -> None:
    x = made(dtype, shape)
    wide = np.moveaxis(x.astype(np.float64), axis, -1).reshape(-1, shape[axis])
    found = of(x, axis, cuts)
    np.testing.assert_allclose([p.mean for p in found], wide.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose([p.std for p in found], wide.std(axis=0), rtol=1e-12)
    assert [float(p.lowest or 0) for p in found] == wide.min(axis=0).tolist()
    assert [float(p.highest or 0) for p in found] == wide.max(axis=0).tolist()
    assert {p.count for p in found} == {x.size // shape[axis]}


def test_without_an_axis_all_of_it_is_one_channel() -> None:
    (found,) = of(np.arange(6, dtype=np.uint8).reshape(2, 3), None)
    assert found == Powers(6, Fraction(15), Fraction(55), Fraction(0), Fraction(5))


def test_integers_are_exact_where_float64_is_not() -> None:
    """Around 65000 the squares of 2**22 values add up beyond 2**53."""
    x = np.full(1 << 22, 64999, np.uint16)
    x[::2] = 65000
    (found,) = of(x, None)
    assert found.total == 64999 * 2**21 + 65000 * 2**21
    assert found.squares == 64999**2 * 2**21 + 65000**2 * 2**21
    assert (found.mean, found.std) == (64999.5, 0.5)


def test_a_small_spread_about_a_large_mean_is_not_cancelled() -> None:
    x = 1e9 + np.tile([-0.5, 0.5], 50_000)
    (found,) = of(x, None, cuts=11)
    assert found.mean == 1e9
    assert found.std == 0.5


@given(st.fractions(min_value=0), st.integers(-1000, 1000))
def test_a_root_is_the_float_nearest_to_it(fraction: Fraction, power: int) -> None:
    q = fraction * Fraction(2) ** power
    found = root(q)
    lower, upper = Fraction(math.nextafter(found, -1)), Fraction(math.nextafter(found, math.inf))
    exact = Fraction(found)
    assert ((exact + lower) / 2) ** 2 <= q <= ((exact + upper) / 2) ** 2 or q == exact == 0


def test_the_std_is_rounded_once() -> None:
    """It is the root of 11/144: 0.276385399196283331…, and that of the nearest float64 to it is an ulp more."""
    (found,) = of(np.array([1] * 11 + [0], np.uint8), None)
    assert found.std == 0.2763853991962833 != math.sqrt(11 / 144)


def test_bands_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    for dtype in ("uint8", "uint16", "bool"):
        for shape, axis in (((50, 40, 3), 2), ((3, 50, 40), 0)):
            x = made(dtype, shape)
            whole = of(x, axis)
            with monkeypatch.context() as patched:
                patched.setattr(pool, "_BAND", 100)
                assert of(x, axis) == whole


@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 9),
    st.sampled_from(["uint8", "uint16", "float32"]),
    st.randoms(use_true_random=False),
)
def test_pieces_and_their_order_make_no_difference(
    times: int, count: int, inner: int, cuts: int, dtype: str, order: random.Random
) -> None:
    x = made(dtype, (times, count, inner))
    in_order, shuffled = of(x, 1, cuts), of(x, 1, cuts, order)
    assert in_order == shuffled
    if dtype != "float32":
        assert in_order == of(x, 1)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=30))
def test_sums_of_floats_are_added_without_rounding(numbers: list[float]) -> None:
    """Pieces of one value each: what is pooled is exact."""
    x = np.array(numbers)
    (found,) = of(x, None, cuts=len(numbers))
    exact = [Fraction(n) for n in numbers]
    assert found.total == sum(exact)
    assert found.squares == sum(n * n for n in exact)


def test_scaling_is_that_of_the_values() -> None:
    x = np.array([0, 51, 255], np.uint8)
    (found,) = of(x, None)
    scaled = found.scaled((0, 255))
    assert scaled.total == Fraction(6, 5)
    assert scaled.squares == Fraction(26, 25)
    assert scaled.lowest == 0
    assert scaled.highest == 1
    shifted = found.scaled((-255, 255))
    assert shifted.lowest == Fraction(1, 2)
    assert shifted.highest == 1


@pytest.mark.parametrize(("values", "count"), [([1, np.nan, np.inf], 2), ([1e200, -1e200], 0)])
def test_what_has_no_mean_is_counted(values: list[float], count: int) -> None:
    with pytest.raises(NotFinite) as caught:
        of(np.array(values), None)
    assert caught.value.count == count


def test_narrow_floats_and_their_non_finite_values() -> None:
    import ml_dtypes

    x = np.array([1, 2, 4, 8], ml_dtypes.bfloat16)
    (found,) = of(x, None)
    assert found.total == 15
    assert found.squares == 85
    with pytest.raises(NotFinite):
        of(np.array([1, np.nan], ml_dtypes.float8_e4m3fn), None)
