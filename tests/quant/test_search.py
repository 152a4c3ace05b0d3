"""Ranges: percentiles are NumPy's, mse and entropy find what trying everything by hand finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.quant.grid import grid
from tconv.quant.observe import Distribution
from tconv.quant.search import METHODS, SHARES, search
from tests.quant.onnx_linear import linear
from tests.quant.test_entropy import by_hand

if TYPE_CHECKING:
    from tconv.ops import Array

INT8, UINT8, INT4 = grid("int8"), grid("uint8"), grid("int4")


def of(x: Array) -> Distribution:
    return Distribution(*np.unique(x.astype(np.float64), return_counts=True))


@pytest.mark.parametrize("method", METHODS)
def test_there_is_a_range_of_nothing(method: str) -> None:
    assert search(method, of(np.empty(0)), INT8, 99.9) == (0, 0)  # type: ignore[arg-type]  # one of the methods


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [0.0, 2.5, -2.5])
def test_constant_values_lose_nothing(method: str, value: float) -> None:
    for how in (INT8, UINT8):
        ends = search(method, of(np.full(50, value)), how, 99.9)  # type: ignore[arg-type]  # as above
        scale, zero = how.parameters(np.array(ends[:1]), np.array(ends[1:]))
        q = np.empty(1, how.dtype.numpy)
        wide = None if zero is None else zero.astype(np.float32)
        how.quantize(np.array([value], np.float32), scale, wide, q)
        assert how.dequantize(q, scale, wide)[0] == pytest.approx(value, rel=1e-6)


def test_minmax_is_all_of_it() -> None:
    assert search("minmax", of(np.array([3.0, -1, 2])), INT8, 99.9) == (-1, 3)


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=60),
    st.sampled_from([50.0, 90.0, 99.0, 99.9, 99.99, 100.0]),
)
def test_percentiles_are_those_of_numpy(some: list[float], percentile: float) -> None:
    x = np.array(some)
    low, high = search("percentile", of(x), INT8, percentile)
    tail = (100 - percentile) / 2
    np.testing.assert_allclose([low, high], np.percentile(x, [tail, 100 - tail]), rtol=1e-9, atol=1e-9)


def squared_error(x: Array, low: float, high: float, name: str, affine: bool) -> float:
    """What onnxruntime makes of ``x`` on a grid of that range, squared apart from ``x``."""
    if affine:
        low, high = min(low, 0), max(high, 0)
        scale = np.array((high - low) / 255, np.float32)
        zero = np.array(np.clip(np.rint(-low / float(scale)), 0, 255), np.uint8)
    else:
        top = 127 if name == "int8" else 7
        scale, zero = np.array(max(-low, high) / top, np.float32), None
    inside = x if affine else np.maximum(x, -max(-low, high))  # onnxruntime has -8 and -128 too
    _, back = linear(inside.astype(np.float32), scale, zero, name, 0)
    return float(np.square(back.astype(np.float64) - x).sum())


@pytest.mark.parametrize("name", ["int4", "uint8", "int8"])
@pytest.mark.parametrize("tail", [False, True])
def test_mse_finds_the_least_error_of_all_that_is_tried(name: str, tail: bool) -> None:
    x = np.random.default_rng(5).standard_normal(400).round(3)
    if tail:
        x[:2] = 30, -20
    how = grid(name)
    low, high = search("mse", of(x), how, 99.9)
    full = (x.min(), x.max()) if how.affine else (-np.abs(x).max(), np.abs(x).max())
    errors = [squared_error(x, share * full[0], share * full[1], name, how.affine) for share in SHARES]
    assert squared_error(x, low, high, name, how.affine) == pytest.approx(min(errors), rel=1e-6)
    if tail and name == "int4":
        assert high < 0.8 * full[1]  # the two far out are given up for all the others


@pytest.mark.parametrize("seed", range(4))
def test_entropy_finds_the_least_divergence_of_all_that_is_tried(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.laplace(size=20_000) if seed % 2 else rng.standard_normal(20_000) * rng.choice([1, 4], 20_000)
    edge = float(np.abs(x).max())
    low, high = search("entropy", of(x), INT8, 99.9)
    assert low == -high
    tried = [by_hand(x, INT8, -share * edge, share * edge, edge) for share in SHARES.tolist()]
    assert by_hand(x, INT8, low, high, edge) == pytest.approx(min(tried), rel=1e-9)


def test_entropy_cuts_off_what_is_rare() -> None:
    x = np.concatenate([np.random.default_rng(0).standard_normal(100_000), [60.0]])
    low, high = search("entropy", of(x), INT8, 99.9)
    assert 3 < high < 20
    assert low == -high
    assert search("minmax", of(x), INT8, 99.9)[1] == 60


def test_affine_ranges_keep_their_middle() -> None:
    x = np.concatenate([np.random.default_rng(0).uniform(0, 1, 5000), [50.0]])
    for method in ("mse", "entropy"):
        low, high = search(method, of(x), UINT8, 99.9)
        assert low >= 0
        assert high < 50
