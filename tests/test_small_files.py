"""Small files that a command names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tconv.errors import UsageError
from tconv.small_files import read_small


def test_all_of_a_small_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert read_small(tmp_path / "x", "pipeline") == b"abc"


def test_what_would_never_end_is_not_begun(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(UsageError, match="is no file, so no stats file"):
            read_small(path, "stats file")
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(UsageError, match="is larger than 1,048,576 bytes, so it is no stats file"):
        read_small(tmp_path / "large", "stats file")


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        read_small(tmp_path / "gone", "pipeline")
