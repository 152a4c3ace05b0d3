"""The way of one thread to a device and back: pinned memory, streams of its own, and events where they must wait.

Tensors are put side by side into memory that the device reads by itself; one copy takes those of a batch there while
others compute. Copies go on a stream of their own. An event lets the work wait for what it works on, another lets the
copy back wait for the work, and the host waits for a third before it reads what came back: without that one it would
now and then read what was there before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tconv.devices.bits import moved
from tconv.devices.names import BY_TORCH

if TYPE_CHECKING:
    from torch import Tensor

    from tconv.dtypes import DType
    from tconv.ops import Array

_ALIGNED = 8  # bytes, of the largest element
_MOST = 64  # small things that are kept on the device
_local = threading.local()


class Lane:
    """Of one thread to one device: its streams, the memory for its loads, and small things that it keeps there."""

    def __init__(self, device: str) -> None:
        self.device = torch.device("cpu" if device == BY_TORCH else device)
        self.cuda = self.device.type == "cuda"
        self.copies = _stream(self.device) if self.cuda else None
        self.work = _stream(self.device) if self.cuda else None
        self.idle: list[tuple[_Arena, _Arena]] = []
        self._kept: dict[tuple[object, ...], Tensor] = {}

    def load(self) -> Load:
        """What is sent and comes back together; its memory is used again when it is closed."""
        return Load(self, *(self.idle.pop() if self.idle else (_Arena(pinned=self.cuda), _Arena(pinned=self.cuda))))

    def kept(self, array: Array) -> Tensor:
        """A small array that is used again and again, there; of this thread, and so never given up while in use. Those
        of the same bits are the same one: 0 and -0 are equal, and not the same number.
        """
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._kept:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            self._kept[key] = torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
        return self._kept[key]


class Load:
    """``slot`` hands out memory for what is to be sent, ``sent`` and ``back`` move it. Also a context, left closed."""

    def __init__(self, way: Lane, there: _Arena, back: _Arena) -> None:
        self.way, self._there, self._back = way, there, back

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """All that was handed out and came back may be overwritten."""
        self._there.used = self._back.used = 0
        self.way.idle.append((self._there, self._back))

    def slot(self, count: int, dtype: DType) -> Tensor:
        """Memory for ``count`` elements."""
        kind = moved(dtype)
        self._there.reserve(count * kind.itemsize)
        return self._there.take(count, kind)

    def sent(self, slots: Sequence[Tensor], kind: torch.dtype) -> Tensor:
        """What is in ``slots``, of equal size, as the rows of one tensor there, which ``working`` waits for."""
        way = self.way
        with on(way.copies):
            rows = torch.empty((len(slots), slots[0].numel()), dtype=slots[0].dtype, device=way.device)
            if (whole := _adjacent(slots)) is not None:
                rows.copy_(whole, non_blocking=way.cuda)
            else:
                for row, slot in zip(rows, slots, strict=True):
                    row.copy_(slot, non_blocking=way.cuda)
        _after(way.copies, way.work, [rows])
        return rows.view(kind)

    def working(self) -> AbstractContextManager[Any]:
        """The context in which the device works on what was sent."""
        return on(self.way.work)

    def back(self, results: Sequence[Tensor]) -> list[Array]:
        """What was made in ``working``, on the host and complete, until the load is done with."""
        way = self.way
        _after(way.work, way.copies, results)
        self._back.reserve(sum((made.numel() + 1) * made.itemsize for made in results))
        with on(way.copies):
            home = [self._back.take(made.numel(), made.dtype).view(made.shape) for made in results]
            for here, made in zip(home, results, strict=True):
                here.copy_(made, non_blocking=way.cuda)
        if way.copies is not None:
            _recorded(way.copies).synchronize()
        return [here.numpy() for here in home]


def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch leaves it without types


def _recorded(stream: torch.cuda.Stream) -> torch.cuda.Event:
    """An event that has come when all is done that the stream has been told."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # as above
    event.record(stream)
    return event


def on(stream: torch.cuda.Stream | None) -> AbstractContextManager[Any]:
    """The context in which what is to be done is told to the stream, if there are any."""
    return torch.cuda.stream(stream) if stream is not None else nullcontext()


def _after(first: torch.cuda.Stream | None, then: torch.cuda.Stream | None, tensors: Sequence[Tensor]) -> None:
    """Let the stream ``then`` wait for what ``first`` has been told to do, and have ``tensors`` as long as it works."""
    if first is None or then is None:
        return
    then.wait_event(_recorded(first))
    for tensor in tensors:
        tensor.record_stream(then)


class _Arena:
    """Memory of the host that is used again and again, handed out from its beginning on."""

    def __init__(self, *, pinned: bool) -> None:
        self._pinned = pinned
        self._memory = torch.empty(0, dtype=torch.uint8)
        self.used = 0

    def reserve(self, nbytes: int) -> None:
        """See that there is room for ``nbytes``, and where that takes new memory, for twice what there was at least."""
        if self._memory.numel() < self.used + nbytes + _ALIGNED:  # what was handed out lives on by itself
            room = max(nbytes + _ALIGNED, 2 * self._memory.numel())
            self._memory = torch.empty(room, dtype=torch.uint8, pin_memory=self._pinned)
            self.used = 0

    def take(self, count: int, kind: torch.dtype) -> Tensor:
        """Room for so many elements, which was reserved."""
        start = -(-self.used // kind.itemsize) * kind.itemsize
        self.used = start + count * kind.itemsize
        return self._memory[start : self.used].view(kind)


def _adjacent(slots: Sequence[Tensor]) -> Tensor | None:
    """The slots as the rows of one tensor, if they lie one after the other."""
    first, size = slots[0], slots[0].numel()
    memory, begin = first.untyped_storage().data_ptr(), first.data_ptr()
    for n, slot in enumerate(slots):
        if slot.untyped_storage().data_ptr() != memory or slot.data_ptr() != begin + n * size * first.itemsize:
            return None
    return first.as_strided((len(slots), size), (size, 1))


def lane(device: str) -> Lane:
    """That of this thread to the device."""
    lanes: dict[str, Lane] = _local.__dict__
    if device not in lanes:
        lanes[device] = Lane(device)
    return lanes[device]


def release() -> None:
    """Give up the memory of the host that this thread has for loads, all of which are closed."""
    for one in vars(_local).values():
        one.idle.clear()
