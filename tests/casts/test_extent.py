"""Extremes and stated ranges, against comparing value by value in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.casts.extent import Extent, extent, outside
from tconv.dtypes import DTYPES, DType, dtype
from tests.exact import values

if TYPE_CHECKING:
    from tconv.ops import Array

REAL = [d for d in DTYPES.values() if d.bits >= 8 and d.kind != "complex"]


def some(data: st.DataObject, src: DType) -> Array:
    if src.kind == "bool":
        return np.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=8)), np.bool_)
    count = data.draw(st.integers(1, 8)) * src.itemsize
    return np.frombuffer(data.draw(st.binary(min_size=count, max_size=count)), src.numpy)


@pytest.mark.parametrize("src", REAL, ids=str)
@given(st.data())
def test_the_extremes_are_those_of_the_finite_values(src: DType, data: st.DataObject) -> None:
    x = some(data, src)
    meant = values(x, src)
    finite = [v for v in meant if math.isfinite(v)]
    found = extent(x, src)
    assert (found.low, found.high) == (min(finite, default=None), max(finite, default=None))
    assert found.finite == (len(finite) == len(meant))
    if finite and not src.is_float:
        assert isinstance(found.low, int)
        assert isinstance(found.high, int)


@pytest.mark.parametrize("src", REAL, ids=str)
@given(st.data())
def test_what_lies_outside_is_counted_exactly(src: DType, data: st.DataObject) -> None:
    x = some(data, src)
    meant = values(x, src)
    finite = [v for v in meant if math.isfinite(v)]
    # Bounds that the float dtype has, so that none stands for another; for integers any.
    others = [float(v) for v in values(some(data, src), src) if math.isfinite(v)]
    bound = st.sampled_from([*others, *map(float, finite), 0.0])
    if not src.is_float:
        bound |= st.integers(-(2**65), 2**65).map(float) | st.floats(-1000, 1000)
    low, high = sorted((data.draw(bound), data.draw(bound)))
    lost = outside(x, src, (low, high))
    assert lost.count == x.size
    assert lost.overflow == sum(not low <= Fraction(v) <= high for v in finite)
    assert lost.infinite == sum(math.isinf(v) for v in meant)
    assert lost.nan == sum(math.isnan(v) for v in meant)
    assert (lost.minimum, lost.maximum) == (min(finite, default=None), max(finite, default=None))


@pytest.mark.parametrize(
    ("x", "src", "stated", "count"),
    [
        ([2**63 - 1, -(2**63), 0], "int64", (-(2.0**63), 2.0**63), 0),
        ([2**63 - 1, 2**62, 0], "int64", (0, 2.0**62), 1),
        ([2**64 - 1, 2**64 - 2, 2**63], "uint64", (0, 2.0**63), 2),
        ([2**53, 2**53 + 1], "int64", (0, 2.0**53), 1),
        ([0, 1, 255], "uint8", (-5, 300), 0),
        ([0, 1, 255], "uint8", (-5, -1), 3),
        ([0, 1, 255], "uint8", (300, 400), 3),
        ([0, 1, 255], "uint8", (0.2, 0.8), 3),
        ([0, 1, 255], "uint8", (0.2, 1.8), 2),
        ([448, -448], "float8_e4m3fn", (1000, 2000), 2),
        ([448, -448], "float8_e4m3fn", (-1000, 1000), 0),
        ([1, 2, 3], "float64", (1, 3), 0),
        ([1, 2, 3], "float16", (-3, -1), 3),
    ],
)
def test_bounds_of_every_kind(x: list[int], src: str, stated: tuple[float, float], count: int) -> None:
    assert outside(np.array(x).astype(dtype(src).numpy), dtype(src), stated).overflow == count


@pytest.mark.parametrize("src", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_a_bound_is_the_value_that_its_text_would_be(src: str) -> None:
    x = np.array([0.1, 0.7]).astype(dtype(src).numpy)
    assert not outside(x, dtype(src), (0.1, 0.7))
    assert outside(x, dtype(src), (0.2, 0.6)).overflow == 2


def test_nan_and_infinities_are_outside_of_any_range() -> None:
    x = np.array([math.nan, math.inf, -math.inf, 5, -3], np.float32)
    lost = outside(x, dtype("float32"), (0, 10))
    assert (lost.overflow, lost.infinite, lost.nan, lost.minimum, lost.maximum) == (1, 2, 1, -3, 5)
    lost = outside(x[:1], dtype("float32"), (-3.4e38, 3.4e38))
    assert (lost.overflow, lost.nan, lost.minimum) == (0, 1, None)


def test_no_values_are_nowhere() -> None:
    assert extent(np.empty(0, np.float16), dtype("float16")) == Extent(None, None)
    assert not outside(np.empty(0, np.int8), dtype("int8"), (3, 4))
    assert Extent(None, None).within(3, 4)
    assert not Extent(None, None, finite=False).within(3, 4)
