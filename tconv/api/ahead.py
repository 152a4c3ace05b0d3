"""Values of tensors in order, the next ones being made meanwhile, in a few threads and bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from tconv.account import Account
from tconv.arrays.audit import judge
from tconv.arrays.dtype import native
from tconv.errors import TconvError
from tconv.evaluate import Piece, Program, program
from tconv.runner import default_workers
from tconv.scan import MAX_MEMORY

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Tensor

ALIGNED = 64  # bytes, at which arrays begin: TensorFlow and JAX share such memory
AHEAD = 2  # tensors a worker that may be waiting to be taken


def arrays(
    tensors: Iterable[Tensor], workers: int | None = None, max_memory: int | None = None
) -> Iterator[tuple[Tensor, Array]]:
    """Each tensor with its values, in its shape, an array that is the caller's own.

    Values that are made or under way take ``max_memory`` bytes at most, or those of one tensor if that is larger.
    Raises ``TconvError`` at the first tensor that cannot be read or loses what its steps do not allow; what else was
    lost is logged.
    """
    threads, limit = workers or default_workers(), max_memory or MAX_MEMORY
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tconv")
    begun: deque[_Making] = deque()
    coming = (_Making(tensor, threads) for tensor in tensors)
    try:
        following = next(coming, None)
        while following is not None or begun:
            while following is not None and _has_room(following, begun, threads, limit):
                following.begin(pool)
                begun.append(following)
                following = next(coming, None)
            yield begun.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _has_room(more: _Making, begun: deque[_Making], threads: int, limit: int) -> bool:
    if not begun:
        return True
    return len(begun) < AHEAD * threads and sum(m.cost for m in begun) + more.cost <= limit


class _Making:
    """A tensor whose pieces are being made, each into its place of one array."""

    def __init__(self, tensor: Tensor, threads: int) -> None:
        self._tensor = tensor
        self._program: Program = program(tensor)
        self._pieces = list(self._program.pieces())
        self._parts: list[Future[Account]] = []
        dearest = sorted((piece.cost for piece in self._pieces), reverse=True)[:threads]
        self.cost = tensor.spec.size * tensor.spec.dtype.itemsize + sum(dearest)

    def begin(self, pool: ThreadPoolExecutor) -> None:
        spec = self._tensor.spec
        self._out = _aligned(spec.size * spec.dtype.itemsize).view(native(spec.dtype))
        self._parts = [pool.submit(self._make, piece) for piece in self._pieces]

    def _make(self, piece: Piece) -> Account:
        try:
            return self._program.make(piece, self._out[piece.lo : piece.hi])
        except TconvError as problem:
            raise problem.at(file=piece.path, tensor=self._tensor.spec.name) from None
        except OSError as problem:
            reason = f"cannot be read: {problem.strerror or problem}"
            raise TconvError(reason, file=piece.path, tensor=self._tensor.spec.name) from problem

    def result(self) -> tuple[Tensor, Array]:
        lost = Account()
        for part in self._parts:
            lost += part.result()
        judge(lost, self._tensor.source.path, self._tensor.spec.name)
        return self._tensor, self._out.reshape(self._tensor.spec.shape)


def _aligned(nbytes: int) -> Array:
    """Uninitialized bytes that begin at a multiple of ``ALIGNED``."""
    room = np.empty(nbytes + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    return room[start : start + nbytes]
