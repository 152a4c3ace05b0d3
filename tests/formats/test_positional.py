"""Writing at offsets: any order of pieces from any thread, space that is there beforehand, a disk that is kept busy."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tconv.dtypes import dtype
from tconv.formats import positional
from tconv.formats.npy import NpyWriter
from tconv.formats.positional import reserve
from tconv.tensor import Extra, Spec

X = np.random.default_rng(0).integers(0, 256, 3000, np.uint8)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets space aside")


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "x", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_a_file_has_its_size_and_nothing_in_it(descriptor: int, size: int) -> None:
    reserve(descriptor, size)
    assert os.fstat(descriptor).st_size == size
    assert os.pread(descriptor, size, 0) == bytes(size)


@LINUX
def test_its_space_is_taken(descriptor: int) -> None:
    reserve(descriptor, 1 << 20)
    assert os.fstat(descriptor).st_blocks * 512 >= 1 << 20


class FullDisk:
    """The C library on a disk that fills up: what it could take for the file is taken then."""

    def __init__(self, problem: int) -> None:
        self.problem = problem

    def fallocate(self, fd: int, _mode: int, _offset: object, _length: object) -> int:
        os.pwrite(fd, b"taken", 0)
        ctypes.set_errno(self.problem)
        return -1


@LINUX
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_too_small_is_told_and_given_back(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: FullDisk(problem))
    with pytest.raises(OSError, match=os.strerror(problem)):
        reserve(descriptor, 1000)
    assert os.fstat(descriptor).st_size == 0


@LINUX
def test_a_file_system_that_cannot_set_space_aside_goes_without(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: FullDisk(errno.EOPNOTSUPP))
    reserve(descriptor, 1000)
    assert os.fstat(descriptor).st_size == 1000


@pytest.mark.parametrize("write_back", [1, 700, 1 << 24])
def test_pieces_in_any_order_from_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_back: int
) -> None:
    monkeypatch.setattr(positional, "WRITE_BACK", write_back)
    writer = NpyWriter([Spec("x", dtype("uint8"), X.shape)], Extra("data"))
    writer.open(tmp_path / "x.npy")

    def write(start: int) -> None:
        for lo in range(start, X.size, 200):
            writer.write(0, lo, X[lo : lo + 100])

    threads = [threading.Thread(target=write, args=(start,)) for start in (100, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.commit()
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no such advice")
def test_everything_is_sent_to_the_disk_once_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positional, "WRITE_BACK", 250)
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _fd, offset, length, _advice: sent.append((offset, length)))
    writer = NpyWriter([Spec("x", dtype("uint8"), (1000,))], Extra("data"))
    writer.open(tmp_path / "x.npy")
    start = writer.offsets[0]
    for lo in (0, 200, 100, 300, 500, 400, 700, 600, 900, 800):
        writer.write(0, lo, X[lo : lo + 100])
    writer.commit()
    assert sent == [(start, 300), (start + 300, 300), (start + 600, 400)]
