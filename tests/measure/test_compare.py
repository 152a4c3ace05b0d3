"""Differences, piece by piece: against NumPy on whole arrays and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tconv.dtypes import dtype
from tconv.measure import compare as module
from tconv.measure.compare import Difference, Tolerance

if TYPE_CHECKING:
    from tconv.ops import Array


def difference(a: Array, b: Array, tolerance: Tolerance | None = None, cuts: tuple[int, ...] = ()) -> Difference:
    of = dtype(a.dtype.name), dtype(b.dtype.name)
    bounds = [0, *sorted(cuts), a.size]
    whole = Difference(of, tolerance or Tolerance())
    for lo, hi in reversed(list(itertools.pairwise(bounds))):
        part = Difference(of, tolerance or Tolerance())
        part.update(lo, a[lo:hi], b[lo:hi])
        whole.merge(part)
    return whole


def test_by_hand() -> None:
    a = np.array([1.0, 2.0, 4.0, 0.0], np.float32)
    b = np.array([1.0, 2.5, 4.0, 0.25], np.float32)
    found = difference(a, b)
    assert (found.count, found.unequal, found.far, found.first, found.nan) == (4, 2, 2, 1, 0)
    assert (found.max_abs, found.max_rel) == (0.5, math.inf)
    assert found.sqnr == pytest.approx(10 * math.log10(21 / 0.3125))
    assert found.ulps == np.float32(0.25).view(np.int32)
    assert difference(a, a).sqnr == math.inf
    assert difference(np.zeros(2), np.ones(2)).sqnr == -math.inf


def test_nan_and_infinities() -> None:
    a = np.array([math.nan, math.nan, math.inf, math.inf, 1.0, 3.0])
    b = np.array([math.nan, 1.0, math.inf, -math.inf, 1.0, 3.0])
    found = difference(a, b)
    assert (found.unequal, found.nan, found.first, found.max_abs, found.max_rel) == (2, 1, 1, math.inf, math.inf)
    assert [found.signal, found.noise] == [10, 0]
    assert found.sqnr is None
    only_nan = difference(a[:2], b[:2])
    assert (only_nan.unequal, only_nan.nan, only_nan.max_abs, only_nan.max_rel, only_nan.ulps) == (1, 1, 0, 0, 0)


def test_there_is_no_ratio_where_a_difference_is_infinite() -> None:
    x = np.array([1.0, 2.0])
    for other in ([1.0, math.inf], [1.0, math.nan], [1.5, math.inf], [math.nan, math.inf]):
        for a, b in ((x, np.array(other)), (np.array(other), x)):
            assert difference(a, b).sqnr is None
            assert difference(a, a).sqnr == math.inf
    assert difference(np.array([1.7e308, 1.0]), np.array([-1.7e308, 1.0])).sqnr is None
    assert difference(x, np.array([1.5, math.nan])).sqnr == 10 * math.log10(1 / 0.25)


def test_complex_values_that_are_nan_on_one_side_are_so_beside_infinities() -> None:
    a, b = np.array([complex(math.nan, math.inf), 1]), np.array([complex(1, 1), 1])
    found = difference(a, b)
    assert (found.unequal, found.nan, found.max_abs) == (1, 1, 0)
    assert (difference(a, a).unequal, difference(a, a).nan) == (0, 0)


def test_no_tolerance_makes_an_infinity_close() -> None:
    a, b = np.array([math.inf, math.nan, 1.0]), np.array([1.0, 1.0, math.inf])
    assert difference(a, b, Tolerance(rtol=1, atol=1e300)).far == 3


@given(
    arrays.arrays(np.float32, 30, elements=st.floats(width=32)),
    arrays.arrays(np.float32, 30, elements=st.floats(width=32)),
    st.floats(0, 1),
    st.floats(0, 1e6),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_the_tolerance_is_that_of_numpy_with_a_as_the_reference(
    a: Array, b: Array, rtol: float, atol: float, cuts: tuple[int, int]
) -> None:
    b = np.where(np.arange(30) % 2, a, b)
    found = difference(a, b, Tolerance(rtol, atol), cuts)
    with np.errstate(all="ignore"):
        close = np.isclose(b.astype(np.float64), a.astype(np.float64), rtol, atol, equal_nan=True)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    assert (found.unequal, found.far) == (int((~same).sum()), int((~close).sum()))
    assert found.first == (None if close.all() else int((~close).argmax()))


@given(
    st.sampled_from(["int8", "int64", "uint64", "float32", "float64", "complex64"]).flatmap(
        lambda name: st.tuples(arrays.arrays(name, 25), arrays.arrays(name, 25))
    ),
    st.lists(st.integers(0, 25), max_size=3),
    st.integers(1, 7),
)
def test_pieces_add_up(both: tuple[Array, Array], cuts: list[int], block: int) -> None:
    a, b = both
    b = np.where(np.arange(25) % 3 > 0, a, b)
    whole = difference(a, b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        parts = difference(a, b, cuts=tuple(cuts))
    for field in ("count", "unequal", "far", "nan", "first", "max_abs", "max_rel", "ulps"):
        assert getattr(parts, field) == getattr(whole, field), field
    for power in ("signal", "noise"):
        ratio = getattr(parts, power) / (getattr(whole, power) or 1)
        assert float(ratio) == pytest.approx(float(bool(getattr(whole, power))), rel=1e-12)


def test_integers_beyond_float64_are_exact() -> None:
    found = difference(np.array([2**62, -(2**63)]), np.array([2**62 + 1, 2**63 - 1]))
    assert (found.max_abs, found.first, found.ulps) == (2**64 - 1, 0, None)
    assert difference(np.array([2**62]), np.array([2**62 + 1])).max_abs == 1
    assert difference(np.array([1], np.uint8), np.array([True])).unequal == 0


@pytest.mark.parametrize(("scale", "name"), [(1e-200, "float64"), (1e200, "float64"), (1e-40, "float32")])
def test_the_ratio_holds_where_squares_would_not(scale: float, name: str) -> None:
    x = np.array([1.0, 2.0, 3.0], name) * np.dtype(name).type(scale)
    b = x.copy()
    b[1] = 2.5 * scale
    assert difference(x, b).sqnr == pytest.approx(10 * math.log10(14 / 0.25), abs=1e-3)


def test_the_sqnr_of_a_half_is_that_of_its_digits() -> None:
    """Uniformly distributed errors of up to half a step: 6.02 dB a bit."""
    x = np.random.default_rng(0).uniform(1, 2, 100_000)
    found = difference(x, x.astype(np.float16))
    want = 10 * math.log10(np.square(x).sum() / np.square(x - x.astype(np.float16)).sum())
    assert found.sqnr == pytest.approx(want, abs=1e-9)
    assert 74 < want < 78
    assert found.ulps is None


def test_other_dtypes_of_the_same_values_are_equal() -> None:
    x = np.array([0, 1, 5, 100])
    for name in ("float16", "uint8", "complex64", "bfloat16", "float64"):
        other: Any = x.astype(dtype(name).numpy)
        found = Difference((dtype("int64"), dtype(name)))
        found.update(0, x, other)
        assert (found.unequal, found.far, found.max_abs) == (0, 0, 0)
