"""How errors add up; that they are right for every cast is for tests/test_casts.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.casts import fidelity
from tconv.casts.fidelity import SMALL, add_errors, add_exact, count_nonfinite
from tconv.lost import Detail

if TYPE_CHECKING:
    from tconv.ops import Array


def test_errors_of_some_values() -> None:
    detail = Detail()
    add_errors(detail, np.array([4, -8, 0, 3], np.float32), np.array([1, -0.5, 0, 0], np.float32))
    assert detail == Detail(inexact=2, max_abs_error=1, max_rel_error=0.25, signal=16 + 64 + 9, noise=1.25)
    add_errors(detail, np.array([2.0]), np.array([2.0]))
    assert detail == Detail(inexact=3, max_abs_error=2, max_rel_error=1, signal=93, noise=5.25)
    add_exact(detail, np.array([3, 4], np.int8))
    assert detail.signal == 118


def test_values_without_an_error_to_speak_of_are_left_out() -> None:
    detail = Detail()
    source = np.array([math.nan, math.inf, 1e30, 2], np.float32)
    add_errors(detail, source, np.array([math.nan, math.nan, -math.inf, 0.5], np.float32))
    assert detail == Detail(inexact=1, max_abs_error=0.5, max_rel_error=0.25, signal=4, noise=0.25)
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
    assert fidelity._squares(x) == pytest.approx(wanted, rel=1e-13)
