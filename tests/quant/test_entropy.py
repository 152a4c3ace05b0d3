"""Divergences of many ranges at once are those of each by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.quant.entropy import divergences
from tconv.quant.grid import Grid, grid
from tconv.quant.observe import Distribution
from tests.quant.onnx_linear import linear

if TYPE_CHECKING:
    from tconv.ops import Array

SHARES = np.linspace(1, 0.2, 17)


def by_hand(x: Array, how: Grid, low: float, high: float, edge: float) -> float:
    """Bins, what is cut off put to the ends, the rest spread over each level's bins, which onnxruntime says."""
    counts, edges = np.histogram(x, 2048, (-edge, edge))
    middles = (edges[:-1] + edges[1:]) / 2
    inside = np.flatnonzero((middles >= low) & (middles <= high))
    if not counts[inside].any():
        return float("inf")
    p = counts[inside].astype(float)
    p[0] += counts[: inside[0]].sum()
    p[-1] += counts[inside[-1] + 1 :].sum()
    scale, zero = how.parameters(np.array(low), np.array(high))
    levels, _ = linear(middles[inside].astype(np.float32), scale, zero, how.name, 0)
    levels = np.maximum(levels, how.low)  # onnxruntime has -128, too
    q = np.zeros(inside.size)
    for level in np.unique(levels):
        mine = (levels == level) & (counts[inside] > 0)
        if mine.any():
            q[mine] = counts[inside][mine].sum() / mine.sum()
    p, q = p / p.sum(), q / q.sum()
    there = p > 0
    return float(np.sum(p[there] * np.log(p[there] / np.maximum(q[there], 1e-10))))


def compared(x: Array, how: Grid) -> tuple[Array, list[float]]:
    low, high = float(x.min()), float(x.max())
    if not how.affine:
        low, high = -max(-low, high), max(-low, high)
    found = Distribution(*np.unique(x, return_counts=True))
    edge = max(-low, high, abs(low), abs(high)) or 1.0
    hand = [by_hand(x, how, share * low, share * high, edge) for share in SHARES]
    return divergences(found, how, SHARES * low, SHARES * high), hand


@pytest.mark.parametrize("name", ["int8", "uint8", "int4", "uint4", "float8_e4m3fn", "int16"])
@pytest.mark.parametrize("size", [3, 200, 30_000])
@pytest.mark.parametrize("shift", [0, 8])
def test_every_range_is_as_by_hand(name: str, size: int, shift: int) -> None:
    x = np.random.default_rng(size).laplace(size=size) + shift
    made, hand = compared(x, grid(name))
    np.testing.assert_allclose(made, hand, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_few_are_as_by_hand(seed: int) -> None:
    """Most bins have nothing in them, and ranges end in such bins."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rng.integers(1, 12)) * 10.0 ** rng.integers(-30, 30)
    made, hand = compared(x, grid("int8" if seed % 2 else "uint4"))
    np.testing.assert_allclose(made, hand, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [1e-44, -3e38, 1.0])
def test_one_value_is_no_loss_until_it_is_outside(value: float) -> None:
    found = Distribution(np.array([value]), np.array([7]))
    losses = divergences(found, grid("int8"), SHARES * -abs(value), SHARES * abs(value))
    assert losses[0] == 0
    assert not np.isnan(losses).any()


def test_of_a_range_without_a_width_nothing_is_in_it() -> None:
    found = Distribution(np.zeros(1), np.array([7]))
    assert divergences(found, grid("int8"), 0 * SHARES, 0 * SHARES).tolist() == [np.inf] * 17
