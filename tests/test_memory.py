"""A source in memory gives any part, into a buffer too."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tconv.dtypes import dtype
from tconv.memory import ArraySource


def test_any_part_can_be_read() -> None:
    source = ArraySource(Path("labels.csv"), dtype("int64"), (2, 2), np.array([1, 2, 3, 4]))
    assert source.seekable
    assert source.read(1, 3).tolist() == [2, 3]
    out = np.zeros(2, np.int64)
    assert source.read(2, 4, out) is out
    assert out.tolist() == [3, 4]
