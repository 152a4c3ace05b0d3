"""What threads have to do: pieces of outputs, alone or in groups that go to a device together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv import scratch
from tconv.evaluate import Piece, Program
from tconv.outcome import Output
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Tensor

_ALIGNED = 16  # bytes, of the largest element


@dataclass
class Filling:
    """An output being filled. ``left``: pieces under way, and one more until all have been handed out."""

    number: int
    output: Output
    left: int = 1


@dataclass(frozen=True)
class Task:
    filling: Filling
    index: int
    program: Program
    piece: Piece

    @property
    def tensor(self) -> Tensor:
        return self.filling.output.tensors[self.index]

    @property
    def size(self) -> int:
        """Bytes of the result."""
        return (self.piece.hi - self.piece.lo) * self.tensor.spec.dtype.itemsize


class Group(NamedTuple):
    """What one thread makes in one go: a piece, or several that go to a device together; and what that costs."""

    tasks: tuple[Task, ...]
    cost: int


def grouped(tasks: Iterable[Task], most: Callable[[], int], fits: Callable[[int], bool]) -> Iterator[Group]:
    """The tasks in their order, those in a row that go to a device in groups: of ``most`` tasks, as that is by then,
    and of no more than a cost that ``fits``.
    """
    held, cost = list[Task](), 0
    for task in tasks:
        if held and (not task.program.crosses or len(held) >= most() or not fits(cost + task.piece.cost)):
            yield Group(tuple(held), cost)
            held, cost = [], 0
        if task.program.crosses:
            held.append(task)
            cost += task.piece.cost
        else:
            yield Group((task,), task.piece.cost)
    if held:
        yield Group(tuple(held), cost)


def count(output: Output) -> int:
    """How many tensors there are in it, or of stacks parts."""
    return sum(len(t.source.parts) if isinstance(t.source, Parts) else 1 for t in output.tensors)


def buffers(tasks: Sequence[Task]) -> list[Array]:
    """For the result of each piece a place in the memory of this thread."""
    sizes = [-(-task.size // _ALIGNED) * _ALIGNED for task in tasks]
    memory, ends = scratch.buffer("out", np.dtype(np.uint8), sum(sizes)), accumulate(sizes)
    found = zip(tasks, sizes, ends, strict=True)
    return [memory[e - s : e - s + t.size].view(t.tensor.spec.dtype.numpy) for t, s, e in found]


def part_of(tensor: Tensor, piece: Piece) -> tuple[int | None, bool]:
    """Which part of a stack a piece is of, and whether it is all of it."""
    if not isinstance(tensor.source, Parts):
        return None, False
    stride = tensor.spec.size // len(tensor.source.parts)
    if not stride or piece.hi - piece.lo > stride:
        return None, False
    return piece.lo // stride, piece.hi - piece.lo == stride
