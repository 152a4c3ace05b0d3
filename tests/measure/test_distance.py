"""Distances against exact arithmetic, for pairs of any two dtypes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tconv.dtypes import dtype
from tconv.measure.distance import apart, magnitudes, ulps

if TYPE_CHECKING:
    from tconv.ops import Array

NAMES = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
NEAR_THE_LIMITS = [2**53 - 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, 1, 0]


def exact(a: Any, b: Any) -> Fraction | float:
    """|a - b| of two Python numbers, by the rules for NaN and infinities."""
    if any(isinstance(v, float) and not math.isfinite(v) for v in (a, b)):
        if (math.isnan(a) and math.isnan(b)) or a == b:
            return Fraction(0)
        return abs(a - b) if not (math.isnan(a) or math.isnan(b)) else math.nan
    return abs(Fraction(a) - Fraction(b))


def check(a: Array, b: Array) -> None:
    got = apart(a, b, (dtype(a.dtype.name), dtype(b.dtype.name)))
    for x, y, found in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        want = exact(x, y)
        if isinstance(want, float):
            assert found == want or (math.isnan(found) and math.isnan(want))
        elif isinstance(found, int):
            assert found == want
        else:
            assert (found == 0) == (want == 0)
            try:
                assert found == pytest.approx(float(want), rel=2**-51)
            except OverflowError:
                assert found == math.inf


def pairs(names: tuple[str, str]) -> st.SearchStrategy[Any]:
    size = st.shared(st.integers(1, 20), key="size")
    return st.tuples(*(size.flatmap(lambda n, name=name: arrays.arrays(name, n)) for name in names))  # type: ignore[misc]  # the default holds the name


@given(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).flatmap(pairs))
def test_any_two_dtypes(both: tuple[Array, Array]) -> None:
    check(*both)


@pytest.mark.parametrize("a", ["int64", "uint64"])
@pytest.mark.parametrize("b", ["int64", "uint64", "float64", "float32", "int8"])
def test_large_integers_are_compared_exactly(a: str, b: str) -> None:
    signed = [s * v for v in NEAR_THE_LIMITS for s in (1, -1)]
    left = [v for v in signed if a != "uint64" or v >= 0] + [2**64 - 1] * (a == "uint64")
    right = [min(v, 127) if b == "int8" else v for v in signed if b != "uint64" or v >= 0]
    right = [max(v, -128) if b == "int8" else v for v in right] + [2**64 - 1] * (b == "uint64")
    grid = [(x, y) for x in left for y in right]
    check(np.array([x for x, _ in grid], a), np.array([y for _, y in grid], b))


def test_an_id_that_lost_its_last_digit_as_a_double_is_found() -> None:
    ids = np.array([2**53 + 1, 2**53 + 2])
    assert apart(ids, ids.astype(np.float64), (dtype("int64"), dtype("float64"))).tolist() == [1, 0]


def test_narrow_floats_and_signalling_nan() -> None:
    bits = np.array([0x7FA0, 0x3F80], np.uint16)  # NaN, 1.0
    x = bits.view(dtype("bfloat16").numpy)
    both = dtype("bfloat16"), dtype("float32")
    assert apart(x, np.array([np.nan, 1.5], np.float32), both).tolist() == [0, 0.5]
    e4m3 = np.array([1, 448], dtype("e4m3").numpy)
    assert apart(e4m3, np.array([1, 447]), (dtype("e4m3"), dtype("int64"))).tolist() == [0, 1]


def test_complex_numbers() -> None:
    x = np.array([1 + 1j, complex(math.nan, 0), complex(math.inf, 2), 5], np.complex64)
    y = np.array([4 + 5j, complex(math.nan, 0), complex(math.inf, 2), 5], np.complex128)
    assert apart(x, y, (dtype("complex64"), dtype("complex128"))).tolist() == [5, 0, 0, 0]
    real = np.array([1.0, math.nan, 0.0, 2.0])
    got = apart(x, real, (dtype("complex64"), dtype("float64")))
    assert got.tolist() == [1, 0, math.inf, 3]


def test_magnitudes() -> None:
    assert magnitudes(np.array([3 - 4j], np.complex64), dtype("complex64")).tolist() == [5]
    assert magnitudes(np.array([-(2**63)]), dtype("int64")).tolist() == [2.0**63]
    assert magnitudes(np.array([True]), dtype("bool")).tolist() == [1]
    assert magnitudes(np.array([-2], dtype("bf16").numpy), dtype("bf16")).tolist() == [2]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz"])
def test_ulps_count_the_numbers_between(name: str) -> None:
    """In the list of all values in order, 0 and -0 being one, they are the difference of the places."""
    wanted = dtype(name)
    patterns = np.arange(1 << wanted.bits, dtype=f"u{wanted.itemsize}").view(wanted.numpy)
    with np.errstate(invalid="ignore"):
        wide = patterns.astype(np.float64)
    ordered = np.unique(wide[~np.isnan(wide)])
    rng = np.random.default_rng(0)
    numbers = patterns[~np.isnan(wide)]
    for x, y in rng.choice(numbers, (500, 2)):
        places = np.searchsorted(ordered, [float(x), float(y)])
        one = np.array([x]), np.array([y])
        assert ulps(*one, wanted) == abs(int(places[0]) - int(places[1]))


def test_ulps_of_wide_floats() -> None:
    for name in ("float32", "float64"):
        kind = dtype(name)
        x = np.array([1.0, -1.0, 0.0], kind.numpy)
        up = np.nextafter(np.nextafter(x, np.inf, dtype=kind.numpy), np.inf, dtype=kind.numpy)
        assert ulps(x, up, kind) == 2
        assert ulps(x, x, kind) == 0
        assert ulps(np.array([0.0], kind.numpy), np.array([-0.0], kind.numpy), kind) == 0
    most = np.array([np.inf]), np.array([-np.inf])
    assert ulps(*most, dtype("float64")) == 2 * 0x7FF0000000000000
    nan = np.array([np.nan, 1.0]), np.array([1.0, 1.0])
    assert ulps(*nan, dtype("float64")) == 0
    assert ulps(nan[0][:1], nan[1][:1], dtype("float64")) == 0
