"""Pieces of an array, and what a link of a run does to them."""

from __future__ import annotations

import numpy as np

from tconv.account import CastKey, RangeKey
from tconv.channels import Window
from tconv.dtypes import dtype
from tconv.fuse.segments import Check, Rounding
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
        values, src = segment.enter(x, dtype("int16"), window)
        assert (values.tolist(), src) == (wanted, F64)
        made, lost = segment.leave(values, src, window)
        assert (made.tolist(), made.dtype.name) == (wanted, "float16")
        assert (lost.minimum, lost.maximum) == (min(wanted), max(wanted))
        assert segment.key(src) == CastKey("s", F64, F16, "error")


def test_a_check_changes_nothing() -> None:
    x = np.array([-1.0, 0.5, np.nan], np.float32)
    check = Check((0, 1), F32)
    assert check.enter(x, F32, Window((3,), None)) == (x, F32)
    made, lost = check.leave(x, F32, Window((3,), None))
    assert made is x
    assert (lost.overflow, lost.nan, lost.minimum, lost.maximum) == (1, 1, -1, 0.5)
    assert check.key(F32) == RangeKey(F32, (0, 1))


def test_a_check_with_slack_passes_over_what_is_nearly_inside() -> None:
    x = np.array([-0.25, -0.26, 0, 1, 1.25, 1.26], np.float32)
    check = Check((0, 1), F32, 0.25, "s")
    assert check.leave(x, F32, Window((3,), None))[1].overflow == 2
    assert check.key(F32) == RangeKey(F32, (0, 1), "s")
