"""Extremes and distributions by channel: as NumPy finds them, in whatever pieces and order the values come."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.quant import observe
from tconv.quant.observe import Channels, Extremes, Histograms

if TYPE_CHECKING:
    from tconv.ops import Array

F32 = dtype("float32")


def values(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def others(shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    return tuple(n for n in range(len(shape)) if n != axis)


def pieces(draw: st.DataObject, size: int) -> list[tuple[int, int]]:
    """[0, size) in any order."""
    cuts = sorted({0, size, *draw.draw(st.lists(st.integers(0, size), max_size=6))})
    return draw.draw(st.permutations(list(pairwise(cuts))))


@given(st.data(), st.sampled_from([None, 0, 1, 2]))
def test_extremes_in_any_pieces_are_those_of_numpy(data: st.DataObject, axis: int | None) -> None:
    x = values((3, 4, 5), data.draw(st.integers(0, 9)))
    seen = Extremes(F32, Channels(x.shape, axis))
    for lo, hi in pieces(data, x.size):
        seen.update(lo, x.reshape(-1)[lo:hi])
    low, high = seen.bounds()
    np.testing.assert_array_equal(low, x.min(others(x.shape, axis)).reshape(-1))
    np.testing.assert_array_equal(high, x.max(others(x.shape, axis)).reshape(-1))


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint16", "bool"])
def test_extremes_of_every_kind_of_dtype(name: str) -> None:
    kind = dtype(name)
    x = np.array([0, 1, 1, 0] if name == "bool" else [3, 1, 7, 2], kind.numpy)
    seen = Extremes(kind, Channels((2, 2), 0))
    seen.update(0, x)
    low, high = seen.bounds()
    assert low.dtype == np.float64
    assert (low.tolist(), high.tolist()) == (([0, 0], [1, 1]) if name == "bool" else ([1, 2], [3, 7]))


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    x = np.array([[np.nan, 1, np.inf], [-np.inf, -np.inf, np.nan], [2, 3, 4]], np.float32)
    seen = Extremes(F32, Channels(x.shape, 0))
    seen.update(0, x.reshape(-1))
    assert (seen.nan, seen.inf) == (2, 3)
    low, high = seen.bounds()
    assert (low.tolist(), high.tolist()) == ([1, 0, 2], [1, 0, 4])


def test_float8_knows_no_infinity_but_nan() -> None:
    x = np.array([np.nan, 448], ml_dtypes.float8_e4m3fn)
    seen = Extremes(dtype("float8_e4m3fn"), Channels((2,), None))
    seen.update(0, x)
    assert (seen.nan, seen.inf, seen.bounds()[1].tolist()) == (1, 0, [448])


def test_channels_without_values_are_0() -> None:
    for shape, axis in [((3, 0), 0), ((0,), None)]:
        seen = Extremes(F32, Channels(shape, axis))
        seen.update(0, np.empty(0, np.float32))
        assert not np.concatenate(seen.bounds()).any()


@given(st.data(), st.sampled_from([None, 0, 1]))
def test_a_few_values_are_kept_as_they_are(data: st.DataObject, axis: int | None) -> None:
    x = np.round(values((4, 30), 1), 1)
    how = Channels(x.shape, axis)
    histograms = Histograms(how.number, *bounds(x, how), x.size)
    add = histograms.adding(F32, how)
    for lo, hi in pieces(data, x.size):
        add(lo, x.reshape(-1)[lo:hi])
    for channel in range(how.number):
        found = histograms.of(channel)
        want, counts = np.unique(x if axis is None else x.take(channel, axis), return_counts=True)
        assert found.values.tolist() == want.tolist()
        assert found.counts.tolist() == counts.tolist()


def bounds(x: Array, how: Channels) -> tuple[Array, Array]:
    apart = others(x.shape, how.axis)
    low, high = x.min(apart).reshape(-1), x.max(apart).reshape(-1)
    return low.astype(np.float64), high.astype(np.float64)


@pytest.mark.parametrize("axis", [None, 0])
def test_many_values_go_into_bins(axis: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "FEW", 100)
    x = values((2, 5000))
    how = Channels(x.shape, axis)
    histograms = Histograms(how.number, *bounds(x, how), x.size)
    add = histograms.adding(F32, how)
    for lo in range(0, x.size, 777):
        add(lo, x.reshape(-1)[lo : lo + 777])
    bins = observe.FINE if axis is None else observe.BINS
    for channel in range(how.number):
        mine = (x if axis is None else x[channel]).astype(np.float64)
        found = histograms.of(channel)
        counts, edges = np.histogram(mine, bins, (mine.min(), mine.max()))
        assert found.counts.sum() == mine.size
        assert np.abs(np.cumsum(counts[counts > 0])[-1] - np.cumsum(found.counts)[-1]) == 0
        width = edges[1] - edges[0]
        want = np.repeat((edges[:-1] + edges[1:]) / 2, counts)
        assert np.abs(np.repeat(found.values, found.counts) - want).max() <= width * 1.001


def test_what_histograms_take_is_known_beforehand() -> None:
    assert Histograms.nbytes(1, 1000) == 8000
    assert Histograms.nbytes(1, 10**9) == 8 << 14
    assert Histograms.nbytes(64, 10**9) == 8 * 64 * 2048


def test_a_constant_channel_has_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "FEW", 1)
    histograms = Histograms(1, np.array([2.5]), np.array([2.5]), 300)
    histograms.adding(F32, Channels((300,), None))(0, np.full(300, 2.5, np.float32))
    found = histograms.of(0)
    assert (found.values.tolist(), found.counts.tolist()) == ([2.5], [300])
