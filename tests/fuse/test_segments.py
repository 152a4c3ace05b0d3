"""Pieces of an array, and what a link of a run does to them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tconv.account import CastKey, RangeKey
from tconv.channels import Window
from tconv.dtypes import dtype
from tconv.fuse.segments import Check, Rounding, Values
from tests.fuse.test_run import Affine

F32, F64, F16 = dtype("float32"), dtype("float64"), dtype("float16")


def test_numbers_by_channel_reach_their_channel() -> None:
    x = np.arange(12, dtype=np.int16)
    for window, wanted in (
        (Window((2, 3, 2), 1), [0, 1, -2, -1, 2, 3, 6, 7, 4, 5, 8, 9]),
        (Window((2, 3, 2), None), [*range(12)]),
        (Window((1, 3, 12), 1, (2, 3)), [n - 2 for n in range(12)]),
        (Window((1, 3, 6), 1, (1, 3)), [-4, -3, -2, -1, 0, 1, 4, 5, 6, 7, 8, 9]),
    ):
        shift = (0.0, 4.0, 2.0) if window.axis is not None else (0.0,)
        segment = Rounding(
            (Affine(dtype=F32, axis=window.axis, shift=shift, divisor=(1.0,) * len(shift)),), F16, "error", "s"
        )
        values = segment.enter(x, dtype("int16"), window)
        assert (values.x.tolist(), values.dtype, values.beyond) == (wanted, F64, None)
        made, lost = segment.leave(values, window)
        assert (made.tolist(), made.dtype.name) == (wanted, "float16")
        assert (lost.minimum, lost.maximum) == (min(wanted), max(wanted))
        assert segment.key(F64) == CastKey("s", F64, F16, "error")


def test_a_check_changes_nothing() -> None:
    x = np.array([-1.0, 0.5, np.nan], np.float32)
    check = Check((0, 1), F32)
    assert check.enter(x, F32, Window((3,), None)) == (x, F32, None)
    made, lost = check.leave(Values(x, F32), Window((3,), None))
    assert made is x
    assert (lost.overflow, lost.nan, lost.minimum, lost.maximum) == (1, 1, -1, 0.5)
    assert check.key(F32) == RangeKey(F32, (0, 1))


def test_a_check_with_slack_passes_over_what_is_nearly_inside() -> None:
    x = np.array([-0.25, -0.26, 0, 1, 1.25, 1.26], np.float32)
    check = Check((0, 1), F32, 0.25, "s")
    assert check.leave(Values(x, F32), Window((3,), None))[1].overflow == 2
    assert check.key(F32) == RangeKey(F32, (0, 1), "s")


@pytest.mark.parametrize(
    ("target", "policy", "ends"),
    [
        ("float64", "error", [1.7976931348623157e308, -1.7976931348623157e308]),
        ("float64", "saturate", [1.7976931348623157e308, -1.7976931348623157e308]),
        ("float64", "inf", [math.inf, -math.inf]),
        ("complex128", "saturate", [1.7976931348623157e308, -1.7976931348623157e308]),
        ("complex128", "inf", [math.inf, -math.inf]),
        ("complex64", "saturate", [3.4028234663852886e38, -3.4028234663852886e38]),
        ("float16", "saturate", [65504, -65504]),
        ("float16", "inf", [math.inf, -math.inf]),
        ("float8_e4m3fn", "saturate", [448, -448]),
        ("int8", "saturate", [127, -128]),
    ],
)
def test_what_is_beyond_float64_overflows_every_dtype(target: str, policy: str, ends: list[float]) -> None:
    op = Affine(dtype=F64, divisor=(1e-10,))
    segment = Rounding((op,), dtype(target), policy, "s")
    window = Window((4,), None)
    for at in ([0, 1, 2, 3], [3, 0, 2, 1]):
        x = np.array([1e300, -1e300, 2e-10, -1e-10])[at]
        made, lost = segment.leave(segment.enter(x, F64, window), window)
        assert made.tolist() == np.array([*ends, 2, -1])[at].tolist()
        assert (lost.count, lost.overflow, lost.infinite) == (4, 2, 0)
        assert (lost.lowest, lost.highest, lost.minimum, lost.maximum) == (-math.inf, math.inf, -1, 2)
        assert lost.bad("error")


@pytest.mark.parametrize("target", ["float64", "complex128"])
def test_the_largest_float64_is_one_where_arithmetic_leaves_it_alone(target: str) -> None:
    segment = Rounding((Affine(dtype=F64),), dtype(target), "error", "s")
    window = Window((3,), None)
    x = np.array([1.7976931348623157e308, -1.7976931348623157e308, 1])
    made, lost = segment.leave(segment.enter(x, F64, window), window)
    assert made.tolist() == x.tolist()
    assert not lost


def test_infinities_of_the_source_are_no_overflow_of_arithmetic() -> None:
    segment = Rounding((Affine(dtype=F64, divisor=(1e-10,)),), F64, "error", "s")
    window = Window((4,), None)
    made, lost = segment.leave(segment.enter(np.array([math.inf, 1e300, -math.inf, 1e-10]), F64, window), window)
    assert made.tolist() == [math.inf, 1.7976931348623157e308, -math.inf, 1]
    assert (lost.overflow, lost.infinite, lost.lowest, lost.highest) == (1, 0, math.inf, math.inf)


def test_a_bool_asks_of_what_is_beyond_float64_too() -> None:
    segment = Rounding((Affine(dtype=F64, divisor=(1e-10,)),), dtype("bool"), "error", "s")
    window = Window((2,), None)
    made, lost = segment.leave(segment.enter(np.array([1e300, 0]), F64, window), window)
    assert made.tolist() == [True, False]
    assert not lost


def test_a_range_is_called_by_whose_word_it_is() -> None:
    for check, called in (
        (Check((0, 1), F32), "the stated range"),
        (Check((0, 1), F32, step="denormalize(imagenet)"), "the range"),
        (Check((0, 1), F32, step="scale(uint8)", by_file=True), "the range known from the file"),
    ):
        assert check.key(F32).called == called
