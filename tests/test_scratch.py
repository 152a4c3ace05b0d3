"""Buffers are of the thread that asks, and one for each use."""

from __future__ import annotations

import threading

import numpy as np

from tconv.scratch import buffer, release


def test_the_same_memory_comes_back_for_the_same_use() -> None:
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    first = buffer("tests", single, 1000)
    assert (first.dtype, first.shape, first.flags.writeable) == (single, (1000,), True)
    assert np.shares_memory(first, buffer("tests", double, 10))
    assert not np.shares_memory(first, buffer("other", single, 1000))
    larger = buffer("tests", double, 1 << 17)
    assert larger.size == 1 << 17
    assert np.shares_memory(larger, buffer("tests", single, 1))


def test_another_thread_has_another() -> None:
    kind, found = np.dtype(np.uint8), []
    mine = buffer("tests", kind, 10)
    thread = threading.Thread(target=lambda: found.append(buffer("tests", kind, 10)))
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, found[0])


def test_what_is_released_is_given_back() -> None:
    kind = np.dtype(np.uint8)
    held = buffer("tests", kind, 10)
    release()
    assert not np.shares_memory(held, buffer("tests", kind, 10))
    release()
    release()
