"""Slices of an array as sources: the right elements, and what decodes whole is decoded once for all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.rows import rows
from tests.memory import ArraySource

if TYPE_CHECKING:
    from tconv.ops import Array

X = np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6)


class Counting(ArraySource):
    """Decodes whole, and tells how often."""

    times = 0

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        type(self).times += 1
        return super().read(lo, hi, out)


def test_a_slice_is_read_where_it_lies() -> None:
    for n, row in enumerate(rows(ArraySource(X))):
        assert (row.path, row.dtype.name, row.shape) == (Path("memory"), "int16", (5, 6))
        assert (row.seekable, row.sequential) == (True, False)
        assert row.read(0, 30).tolist() == X[n].reshape(-1).tolist()
        out = np.zeros(7, np.int16)
        row.read(11, 18, out)
        assert out.tolist() == X[n].reshape(-1)[11:18].tolist()


def test_what_decodes_whole_is_decoded_once_a_pass() -> None:
    Counting.times = 0
    every = rows(Counting(X, seekable=False))
    assert not every[0].seekable
    for passes in (1, 2):
        with ThreadPoolExecutor(4) as pool:
            got = list(pool.map(lambda row: row.read(0, 30, np.empty(30, np.int16)), every))
        assert [g.tolist() for g in got] == X.reshape(4, 30).tolist()
        assert Counting.times == passes
