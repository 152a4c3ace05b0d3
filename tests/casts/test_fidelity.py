"""How errors add up; that they are right for every cast is for tests/test_casts.py."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.casts.fidelity import SMALL, add_errors, add_exact, count_nonfinite, squares
from tconv.lost import Detail

if TYPE_CHECKING:
    from tconv.ops import Array


def test_errors_of_some_values() -> None:
    detail = Detail()
    add_errors(detail, np.array([4, -8, 0, 3], np.float32), np.array([1, -0.5, 0, 0], np.float32))
    assert detail == Detail(inexact=2, max_abs_error=1, max_rel_error=0.25, signal=Fraction(89), noise=Fraction(5, 4))
    add_errors(detail, np.array([2.0]), np.array([2.0]))
    assert detail == Detail(inexact=3, max_abs_error=2, max_rel_error=1, signal=Fraction(93), noise=Fraction(21, 4))
    add_exact(detail, np.array([3, 4], np.int8))
    assert detail.signal == 118


def test_values_without_an_error_to_speak_of_are_left_out() -> None:
    detail = Detail()
    source = np.array([math.nan, math.inf, 1e30, 2], np.float32)
    add_errors(detail, source, np.array([math.nan, math.nan, -math.inf, 0.5], np.float32))
    assert detail == Detail(inexact=1, max_abs_error=0.5, max_rel_error=0.25, signal=Fraction(4), noise=Fraction(1, 4))
    add_errors(detail, source[:1], source[:1].copy())
    assert detail.inexact == 1
    count_nonfinite(detail, source)
    assert (detail.nan, detail.inf) == (1, 1)


@pytest.mark.parametrize("size", [SMALL - 1, SMALL, 5 * SMALL + 3])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("scale", [1, 1e15])
def test_sums_of_squares_are_those_of_exact_arithmetic(size: int, kind: type, scale: float) -> None:
    x: Array = (np.random.default_rng(1).standard_normal(size) * (100 if kind is np.int32 else scale)).astype(kind)
    wanted = sum(int(v) ** 2 for v in x) if kind is np.int32 else math.fsum(float(v) ** 2 for v in x)
    assert float(squares(x)) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("size", [3, SMALL + 1])
@pytest.mark.parametrize(
    ("kind", "value"),
    [("float64", 1e-200), ("float64", 5e-324), ("float64", 1e-162), ("float64", 1.7e308), ("float32", 1e-45)],
)
def test_squares_that_no_float64_holds(size: int, kind: str, value: float) -> None:
    x: Array = np.full(size, value, kind)
    x[1] = -x[1]
    wanted = size * Fraction(float(x[0])) ** 2
    assert abs(squares(x) / wanted - 1) < Fraction(1, 10**12)
    x[0], x[2] = np.inf, np.nan
    wanted = (size - 2) * Fraction(float(x[1])) ** 2
    assert abs(squares(x) / wanted - 1) < Fraction(1, 10**12)


def test_nothing_has_no_square() -> None:
    assert squares(np.empty(0)) == squares(np.zeros(3, np.float16)) == 0
