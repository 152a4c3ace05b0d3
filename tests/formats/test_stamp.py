"""A file is another one when it was replaced or written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tconv.errors import TconvError
from tconv.formats.stamp import Stamp, refuse_changed, stamp


def of(path: Path) -> Stamp:
    with path.open("rb") as file:
        return stamp(file)


def test_a_file_that_nobody_touches_stays_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    seen = of(path)
    with path.open("rb") as file:
        assert file.read() == b"abc"
        refuse_changed(file, seen)
        refuse_changed(file, None)


@pytest.mark.parametrize("moment", [(5, 10**9), (5, 1), (5, -(10**9))])  # access and change, in nanoseconds
def test_a_change_at_another_time_shows(tmp_path: Path, moment: tuple[int, int]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    os.utime(path, ns=(5, 5))
    seen = of(path)
    os.utime(path, ns=moment)
    with path.open("rb") as file, pytest.raises(TconvError, match="changed while it was read"):
        refuse_changed(file, seen)


def test_another_size_at_the_same_time_shows(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    os.utime(path, ns=(5, 5))
    seen = of(path)
    path.write_bytes(b"abcd")
    os.utime(path, ns=(5, 5))
    assert of(path) != seen


def test_another_file_in_its_place_shows(tmp_path: Path) -> None:
    path, other = tmp_path / "x", tmp_path / "y"
    for one in (path, other):
        one.write_bytes(b"abc")
        os.utime(one, ns=(5, 5))
    seen = of(path)
    other.replace(path)
    assert of(path) != seen
