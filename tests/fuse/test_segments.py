"""Pieces of an array, and what a link of a run does to them."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tconv.account import CastKey, RangeKey
from tconv.dtypes import dtype
from tconv.fuse.segments import Check, Rounding, Window, cuts
from tests.fuse.test_run import Affine

F32, F64, F16 = dtype("float32"), dtype("float64"), dtype("float16")


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.data(),
    st.integers(1, 12),
)
def test_cuts_cover_the_range_once_and_know_their_channel(shape: list[int], data: st.DataObject, limit: int) -> None:
    axis = data.draw(st.none() | st.integers(0, len(shape) - 1))
    size = prod(shape)
    lo = data.draw(st.integers(0, size))
    hi = data.draw(st.integers(lo, size))
    at = lo
    for a, b, channel in cuts(lo, hi, tuple(shape), axis, limit):
        assert a == at < b <= hi
        assert b - a <= limit
        at = b
        if axis is None:
            assert channel is None
            continue
        channels = [np.unravel_index(i, shape)[axis] for i in range(a, b)]
        if channel is None:
            group = prod(shape[axis:])
            assert a % group == 0
            assert (b - a) % group == 0
        else:
            assert set(channels) == {channel}
    assert at == hi


def test_numbers_by_channel_reach_their_channel() -> None:
    x = np.arange(12, dtype=np.int16)
    for window, wanted in (
        (Window((2, 3, 2), 1), [0, 1, -2, -1, 2, 3, 6, 7, 4, 5, 8, 9]),
        (Window((2, 3, 2), None), [*range(12)]),
        (Window((1, 3, 12), 1, 2), [n - 2 for n in range(12)]),
    ):
        shift = (0.0, 4.0, 2.0) if window.axis is not None else (0.0,)
        segment = Rounding(
            (Affine(dtype=F32, axis=window.axis, shift=shift, divisor=(1.0,) * len(shift)),), F16, "error", "s"
        )
        values, src = segment.enter(x, dtype("int16"), window)
        assert (values.tolist(), src) == (wanted, F64)
        made, lost = segment.leave(values, src)
        assert (made.tolist(), made.dtype.name) == (wanted, "float16")
        assert (lost.minimum, lost.maximum) == (min(wanted), max(wanted))
        assert segment.key(src) == CastKey("s", F64, F16, "error")


def test_a_check_changes_nothing() -> None:
    x = np.array([-1.0, 0.5, np.nan], np.float32)
    check = Check((0, 1), F32)
    assert check.enter(x, F32, Window((3,), None)) == (x, F32)
    made, lost = check.leave(x, F32)
    assert made is x
    assert (lost.overflow, lost.nan, lost.minimum, lost.maximum) == (1, 1, -1, 0.5)
    assert check.key(F32) == RangeKey(F32, (0, 1))


def test_a_check_with_slack_passes_over_what_is_nearly_inside() -> None:
    x = np.array([-0.25, -0.26, 0, 1, 1.25, 1.26], np.float32)
    check = Check((0, 1), F32, 0.25, "s")
    assert check.leave(x, F32)[1].overflow == 2
    assert check.key(F32) == RangeKey(F32, (0, 1), "s")
