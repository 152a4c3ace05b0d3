"""Pieces of an array by channel."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tconv.channels import cuts


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
    for a, b, told in cuts(lo, hi, tuple(shape), axis, limit):
        assert a == at < b <= hi
        assert b - a <= limit
        at = b
        if axis is None:
            assert told is None
            continue
        channels = [np.unravel_index(i, shape)[axis] for i in range(a, b)]
        if told is None:
            group = prod(shape[axis:])
            assert a % group == 0
            assert (b - a) % group == 0
        else:
            assert sorted(set(channels)) == list(range(*told))
            inner = prod(shape[axis + 1 :])
            assert told[1] - told[0] == 1 or (a % inner == b % inner == 0 and channels == sorted(channels))
    assert at == hi
