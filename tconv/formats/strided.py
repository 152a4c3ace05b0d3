"""Elements that do not lie one after the other: ranges of a strided array as boxes, and how a file of them is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.ops import Array

WINDOW = 1 << 22  # bytes of a file that are read at a time, however far apart the elements are
GAP = 1 << 16  # bytes between elements that are read as quickly as a further request is made

Index = tuple[slice, ...]
Fill: TypeAlias = Callable[[int, "Array"], None]


def boxes(shape: Sequence[int], lo: int, hi: int, outer: Index = ()) -> Iterator[tuple[int, Index]]:
    """The boxes of an array that its elements [lo, hi) in C order make up, and which element each begins with."""
    if lo == hi:
        return
    if len(shape) < 2:
        yield lo, (*outer, *(slice(lo, hi) for _ in shape))
        return
    row = math.prod(shape[1:])
    first, last = -(-lo // row), hi // row  # the rows in [lo, hi) that are whole
    if first > last:
        yield from _row(shape, last, lo, hi, outer)
        return
    if lo < first * row:
        yield from _row(shape, first - 1, lo, first * row, outer)
    if first < last:
        yield first * row, (*outer, slice(first, last), *(slice(0, n) for n in shape[1:]))
    if last * row < hi:
        yield from _row(shape, last, last * row, hi, outer)


def _row(shape: Sequence[int], n: int, lo: int, hi: int, outer: Index) -> Iterator[tuple[int, Index]]:
    """The same of [lo, hi) within row ``n``."""
    start = n * math.prod(shape[1:])
    for at, index in boxes(shape[1:], lo - start, hi - start, (*outer, slice(n, n + 1))):
        yield start + at, index


def scatter(values: Array, view: Array, lo: int) -> None:
    """Flat ``values`` into the elements from ``lo`` on, in C order, of an array of any strides."""
    for at, index in boxes(view.shape, lo, lo + values.size):
        part = _box(view, index)
        part[...] = values[at - lo : at - lo + part.size].reshape(part.shape)


def _box(view: Array, index: Index) -> Array:
    dotted: tuple[Any, ...] = (*index, ...)  # without the dots, that of an array of no axes would be a copy
    box: Array = view[dotted]
    return box


def read(fill: Fill, offset: int, strides: Sequence[int], shape: Sequence[int], lo: int, out: Array) -> None:
    """The elements from ``lo`` on, in C order, of an array at byte ``offset`` of a file into all of ``out``.

    ``strides`` count elements. ``fill`` reads the bytes from an offset on into all of an array, and refuses what the
    file does not have: of a mapped file that would be a SIGBUS.
    """
    steps = [stride * out.itemsize for stride in strides]
    for at, index in boxes(shape, lo, lo + out.size):
        first = offset + sum(part.start * step for part, step in zip(index, steps, strict=True))
        counts = [part.stop - part.start for part in index]
        _copy(fill, first, steps, out[at - lo : at - lo + math.prod(counts)].reshape(counts))


def _copy(fill: Fill, first: int, steps: Sequence[int], target: Array) -> None:
    """Elements ``steps`` bytes apart along each axis, from byte ``first`` on, a window of the file at a time; what lies
    between them is read too unless it is more than ``GAP``.
    """
    extent = target.itemsize + sum((n - 1) * step for n, step in zip(target.shape, steps, strict=True))
    axis = max(range(target.ndim), key=lambda axis: (target.shape[axis] > 1, steps[axis]), default=0)
    count, step = (target.shape[axis], steps[axis]) if target.ndim else (1, 0)
    apart = count > 1 and count * step - extent > GAP  # from the last element of an index to the first of the next
    if extent <= WINDOW and not apart:
        window = buffer("window", np.dtype(np.uint8), extent)
        fill(first, window)
        view: np.ndarray[Any, Any] = np.ndarray(target.shape, target.dtype, window, 0, steps)
        target[...] = view
        return
    most = 1 if apart else max(1, min(WINDOW // step, (count + 1) // 2))
    for lo in range(0, count, most):
        part = target[(slice(None),) * axis + (slice(lo, lo + most),)]
        _copy(fill, first + lo * step, steps, part)
