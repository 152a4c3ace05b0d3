"""Measuring values piece by piece: the same as looking at the whole array at once, for every dtype."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tconv.dtypes import DTYPES, dtype
from tconv.measure import statistics as module
from tconv.measure.histogram import RESOLUTION
from tconv.measure.statistics import Measure, Summary

if TYPE_CHECKING:
    from tconv.ops import Array

NUMPY = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def measured(x: Array, name: str, cuts: list[int] | None = None, order: int = -1) -> Summary:
    """``x`` measured in pieces, which are merged from the last to the first (or, ``order=1``, as they come)."""
    bounds = [0, *sorted(cuts or []), x.size]
    whole = Measure(dtype(name))
    for lo, hi in list(itertools.pairwise(bounds))[::order]:
        part = Measure(dtype(name))
        part.update(x[lo:hi])
        whole.merge(part)
    return whole.summary()


def exact_mean(x: Array) -> float:
    """Of the finite values, as Python's fractions have it."""
    return float(sum((Fraction(v) for v in x.tolist()), Fraction(0)) / x.size)


def check(x: Array, found: Summary) -> None:
    """Against NumPy on the whole array of NumPy's own dtypes, or of what is widened to one."""
    with np.errstate(all="ignore"):
        finite = x[np.isfinite(x)]
        counts = [x.size, np.isnan(x).sum(), np.isinf(x).sum(), (x == 0).sum()]
    assert [found.count, found.nan, found.inf, found.zeros] == counts
    if not finite.size:
        assert (found.min, found.max, found.mean, found.quantiles, found.spread) == (None,) * 5
        return
    assert found.min == finite.min()
    assert found.max == finite.max()
    scale = float(sum(abs(Fraction(v)) for v in finite.tolist()) / finite.size)
    assert found.mean is not None
    assert found.mean == pytest.approx(exact_mean(finite), abs=2**-50 * scale, rel=0)
    assert found.quantiles is not None
    assert found.spread is not None
    assert sum(found.spread) == finite.size
    ordered = sorted(finite.tolist())
    for got, at in zip(found.quantiles, module.QUANTILES, strict=True):
        rank = at * (len(ordered) - 1)
        low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
        want = float(Fraction(low) + (Fraction(high) - Fraction(low)) * (rank - math.floor(rank)))
        tolerance = 0.0 if found.exact else RESOLUTION * (1 + 1e-6) * max(abs(low), abs(high)) + 2.0**-133
        assert got == pytest.approx(want, abs=tolerance, rel=0)


def any_array(names: list[str]) -> st.SearchStrategy[Any]:
    return st.sampled_from(names).flatmap(lambda name: arrays.arrays(name, st.integers(0, 60)))


@given(any_array([*NUMPY, *FLOATS]), st.lists(st.integers(0, 60), max_size=4))
def test_pieces_add_up_to_what_numpy_says_of_the_whole(x: Array, cuts: list[int]) -> None:
    check(x, measured(x, x.dtype.name, [min(c, x.size) for c in cuts]))


@given(any_array([*NUMPY, *FLOATS]), st.lists(st.integers(0, 60), max_size=4), st.sampled_from([0, 7]))
def test_many_values_are_counted_in_bins(x: Array, cuts: list[int], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", few)
        cuts = [min(c, x.size) for c in cuts]
        found = measured(x, x.dtype.name, cuts)
        assert found == measured(x, x.dtype.name, cuts, order=1)
    check(x, found)


@pytest.mark.parametrize("name", [*FLOATS[:1], *NARROW, "int8", "uint16", "float4_e2m1fn", "int4"])
def test_all_bit_patterns_of_narrow_dtypes(name: str) -> None:
    wanted = DTYPES[name]
    patterns = np.arange(1 << min(wanted.bits, 16), dtype=f"u{wanted.itemsize}").view(wanted.numpy)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = patterns.astype(np.float64 if wanted.is_float else np.int64)
    found = measured(patterns, name, [3, patterns.size // 2])
    assert found.exact
    check(wide, found)
    assert found.mean == exact_mean(wide[np.isfinite(wide)])


@given(arrays.arrays(np.uint16, 50))
def test_the_mean_of_narrow_floats_is_exact(bits: Array) -> None:
    for name in ("float16", "bfloat16"):
        x = bits.view(dtype(name).numpy)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            wide = x.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        found = measured(x, name, [20])
        assert found.mean == (exact_mean(finite) if finite.size else None)


@pytest.mark.parametrize("few", [0, module.FEW])
def test_64_bit_integers_are_exact(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(module, "FEW", few)
    signed = measured(np.array([-(2**63), 2**63 - 1, 2**53 + 1, 5]), "int64")
    assert (signed.min, signed.max) == (-(2**63), 2**63 - 1)
    assert signed.mean == float(Fraction(2**53 + 5, 4))
    unsigned = measured(np.array([2**64 - 1, 2**64 - 2, 2**63], np.uint64), "uint64")
    assert (unsigned.min, unsigned.max) == (2**63, 2**64 - 1)
    assert unsigned.mean == float(Fraction(2 * 2**64 - 3 + 2**63, 3))


def test_a_sum_that_overflows_is_no_infinite_mean() -> None:
    found = measured(np.full(1000, 1.7e308), "float64")
    assert found.mean == pytest.approx(1.7e308, rel=1e-15)
    assert measured(np.array([1.7e308, 1.7e308, -1.7e308, -1.7e308]), "float64").mean == 0


def test_complex_values_are_measured_by_their_magnitude() -> None:
    x = np.array([3 + 4j, 0, complex("nan"), complex(0, math.inf), -5j], np.complex64)
    for name in ("complex64", "complex128"):
        found = measured(x.astype(name), name)
        assert [found.count, found.nan, found.inf, found.zeros] == [5, 1, 1, 1]
        assert [found.min, found.max, found.mean] == [0, 5, pytest.approx(10 / 3)]
    large = measured(np.array([complex(3e38, 3e38)], np.complex64), "complex64")
    assert large.max == pytest.approx(4.2426406e38)


@pytest.mark.parametrize("few", [0, module.FEW])
def test_parts_decide_whether_a_complex_value_is_finite(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """As ``check --finite`` has it: NaN is one that has a NaN; what is finite is so however large its magnitude."""
    monkeypatch.setattr(module, "FEW", few)
    nan, inf = math.nan, math.inf
    x = np.array([complex(nan, inf), complex(inf, nan), complex(inf, 1), complex(-inf, inf), complex(1, nan), 3 + 4j])
    for name in ("complex64", "complex128"):
        found = measured(x.astype(name), name)
        assert [found.count, found.nan, found.inf, found.min, found.max] == [6, 3, 2, 5, 5]
    found = measured(np.array([complex(1.5e308, 1.5e308), 1]), "complex128")
    assert [found.nan, found.inf, found.min, found.max] == [0, 0, 1, 1.7976931348623157e308]
    assert found.mean == 1.7976931348623157e308 / 2


def test_many_subnormal_values_are_as_near_as_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 0)
    for name, least in (("float32", 2.0**-126), ("float64", 2.0**-1022)):
        x = (np.arange(1, 1001) / 1000 * least).astype(name)
        found = measured(x, name)
        assert not found.exact
        assert found.quantiles is not None
        for got, at in zip(found.quantiles, (0.01, 0.5, 0.99), strict=True):
            assert abs(got - float(np.quantile(x.astype(np.float64), at))) <= 2.0**-7 * least


def test_what_is_told_of_nothing_and_of_a_single_value() -> None:
    for name in [*NUMPY, *FLOATS, *NARROW, "complex64"]:
        empty = Measure(dtype(name)).summary()
        assert empty == Summary(0, 0, 0, 0, exact=True)
        one = measured(np.ones(1, dtype(name).numpy), name)
        assert (one.min, one.max, one.mean, one.quantiles) == (1, 1, 1.0, (1, 1, 1))
        assert type(one.min) is (int if dtype(name).kind in ("bool", "int", "uint") else float)


def test_only_nan() -> None:
    for name in [*FLOATS, "bfloat16", "float8_e4m3fn"]:
        found = measured(np.full(5, np.nan).astype(dtype(name).numpy), name)
        assert found == Summary(5, 5, 0, 0, exact=True)


def test_the_resolution_is_as_told_on_many_values() -> None:
    x = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    found = measured(x, "float32", [100_000, 150_000])
    assert not found.exact
    assert found.quantiles is not None
    for got, at in zip(found.quantiles, (0.01, 0.5, 0.99), strict=True):
        want = float(np.quantile(x.astype(np.float64), at))
        assert got == pytest.approx(want, rel=0.004)
    assert found.mean == pytest.approx(math.fsum(x.tolist()) / x.size, abs=1e-16)
    spread = np.histogram(x.astype(np.float64), bins=module.PARTS, range=(x.min(), x.max()))[0]
    assert found.spread is not None
    assert np.abs(np.array(found.spread) - spread).max() < 0.02 * x.size


def test_a_buffer_that_is_used_again_does_not_change_what_was_seen() -> None:
    measure, buffer = Measure(dtype("float32")), np.array([1.0, 2.0], np.float32)
    measure.update(buffer)
    buffer[:] = 99
    assert measure.summary().max == 2.0
