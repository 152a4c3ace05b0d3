"""Boxes of strided arrays, scattered and read through windows of a file, against NumPy's own striding."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.formats import strided
from tconv.formats.raw import RawSource
from tconv.formats.strided import boxes, scatter

SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@given(SHAPES, st.data())
def test_boxes_are_disjoint_in_order_and_make_up_the_range(shape: tuple[int, ...], data: Any) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    hi = data.draw(st.integers(0, numbers.size))
    lo = data.draw(st.integers(0, hi))
    found = [(at, numbers[index].reshape(-1).tolist()) for at, index in boxes(shape, lo, hi)]
    assert [n for _, part in found for n in part] == list(range(lo, hi))
    assert all(part[0] == at for at, part in found)
    assert len(found) <= max(1, 2 * len(shape) - 1)


@given(SHAPES, st.data())
def test_scattering_is_assigning_to_the_flattened_array(shape: tuple[int, ...], data: Any) -> None:
    axes = data.draw(st.permutations(range(len(shape))))
    view = np.zeros(shape, int).transpose(axes)
    hi = data.draw(st.integers(0, view.size))
    lo = data.draw(st.integers(0, hi))
    scatter(np.arange(lo + 1, hi + 1), view, lo)
    assert view.flatten().tolist() == [0] * lo + list(range(lo + 1, hi + 1)) + [0] * (view.size - hi)


@given(SHAPES, st.integers(2, 300), st.data())
def test_any_strides_through_windows_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], window: int, data: Any
) -> None:
    strides = tuple(data.draw(st.integers(0, 40)) for _ in shape)
    stored = np.arange(600, dtype=np.int16)
    path = tmp_path_factory.mktemp("strided") / "x"
    path.write_bytes(b"abc" + stored.tobytes())
    want = np.lib.stride_tricks.as_strided(stored[7:], shape, [2 * s for s in strides]).flatten()
    hi = data.draw(st.integers(0, want.size))
    lo = data.draw(st.integers(0, hi))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strided, "WINDOW", window)
        got = RawSource(path, dtype("int16"), shape, 3 + 2 * 7, strides=strides).read(lo, hi)
    assert got.tolist() == want[lo:hi].tolist()


@given(SHAPES, st.data())
def test_permuting_a_source_is_transposing_its_values(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], data: Any
) -> None:
    values = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    path = tmp_path_factory.mktemp("permuted") / "x"
    path.write_bytes(values.tobytes())
    source = RawSource(path, dtype("int16"), shape, 0)
    perms = [tuple(data.draw(st.permutations(range(len(shape))))) for _ in range(2)]
    for perm in perms:
        source, values = source.permuted(perm), values.transpose(perm)
    assert source.shape == values.shape
    assert source.read(0, values.size).tolist() == values.flatten().tolist()


@pytest.mark.slow
def test_what_is_mapped_at_a_time_is_small(tmp_path: Path) -> None:
    """A column of a file of 400 MB, of which each page has one element."""
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(400_000_000)
    source = RawSource(path, dtype("float32"), (50, 100_000), 0, strides=(1, 1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not source.read(0, 5_000_000).any()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
