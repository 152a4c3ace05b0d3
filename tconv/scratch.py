"""Buffers of a thread's own, used again and again: the pages of a fresh array often cost more than the work on it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tconv.ops import Array

_local = threading.local()


def buffer(use: str, dtype: np.dtype[Any], count: int) -> Array:
    """``count`` elements to write into, in the memory that this thread has for ``use``: what is there from the last
    time is overwritten.
    """
    need = dtype.itemsize * count
    held: Array | None = getattr(_local, use, None)
    if held is None or held.size < need:
        held = np.empty(max(need, 1 << 16), np.uint8)
        setattr(_local, use, held)
    return held[:need].view(dtype)


def release() -> None:
    """Give up all buffers of this thread, which holds none of them any more."""
    vars(_local).clear()
