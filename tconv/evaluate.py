"""From a lazy tensor to values: which pieces it can be made in, what each costs, and making one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tconv.account import Account
from tconv.blocks import Stages, apply, applying, below, block_cost, read_block, stages_of
from tconv.fuse import Run
from tconv.ops import Elementwise, Op, Permute, Resizing, Whole, anywhere
from tconv.parts import Parts
from tconv.tensor import Permutable, Scalable, Sequential, Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.ops import Array
    from tconv.placed.carry import Making
    from tconv.tensor import Raster, Source

Block: TypeAlias = "tuple[Array, tuple[int, ...], Array, int, Account]"  # as ``apply`` takes it

PIECE = 1 << 20  # elements made in one go where a tensor can be cut: a few MB, however large the tensor is
LARGE = 1 << 25  # bytes of a row or a tensor beyond which axes are reordered as it is read, and of a piece in that case


class Piece(NamedTuple):
    """Elements [lo, hi) of the result. ``path``: the file they come from; ``cost``: bytes of memory to make them.
    ``of``: of a stack, how to make the part, and the piece of it that this is.
    """

    lo: int
    hi: int
    path: Path
    cost: int
    of: tuple[Program, Piece] | None = None


class Program(ABC):
    """How to make a tensor, piece by piece, in any order, from any thread. ``crosses``: some of it on a device."""

    crosses: bool

    @abstractmethod
    def pieces(self) -> Iterator[Piece]: ...

    def costly(self, count: int) -> Iterator[Piece]:
        """Up to ``count`` pieces, or more, than which no others cost more: of what is cut only the last is smaller."""
        return islice(self.pieces(), count)

    @abstractmethod
    def make(self, piece: Piece, out: Array) -> Account:
        """The values of ``piece``, flat and in C order, into ``out``; what the casts lost of them."""

    @abstractmethod
    def making(self, piece: Piece, out: Array) -> Making:
        """The same, for who has others beside it to take to a device (``placed.carry.together``)."""


def program(tensor: Tensor, detail: bool = False) -> Program:
    """The cheapest way to make ``tensor``; ``detail`` asks for accounts that tell how large the errors are."""
    source, ops = tensor.source, tensor.ops
    if isinstance(source, Parts):
        lowered = below(ops)
        return _Gathered(tensor, detail) if lowered is None else _Parts(source, lowered, detail)
    stages = stages_of(ops, source.dtype, len(source.shape), detail)
    if source.seekable and all((isinstance(s, Run) or not isinstance(s, Whole)) and s.perm is None for s in stages):
        return _Flat(tensor, stages)
    if (raster := raster_of(tensor)) is not None:
        resize: Any = stages[0]
        return _Whole(Tensor(tensor.spec, raster.source, ops), (resize.of(raster), *stages[1:]))
    rows = source.seekable and len(source.shape) > 1 and below(ops) is not None
    block = source.dtype.nbytes(prod(source.shape[1 if rows else 0 :]))
    if block > LARGE and (turned := _turned(tensor)) is not None:
        return program(turned, detail)
    return _Rows(tensor, stages) if rows else _Whole(tensor, stages)


def raster_of(tensor: Tensor) -> Raster | None:
    """How its picture is decoded for the resize that comes first; None if none does, or none of the kind."""
    first = next(iter(anywhere(tensor.ops)), None)
    if not isinstance(first, Resizing) or first.axis or not first.smooth or not isinstance(tensor.source, Scalable):
        return None
    return tensor.source.raster(first.height, first.width)


def shrink_of(tensor: Tensor) -> int:
    """Its picture is decoded at one such-th of its size: 1 unless the user wants it fast."""
    raster = raster_of(tensor)
    return 1 if raster is None else raster.shrink


def evaluate(tensor: Tensor, detail: bool = False) -> tuple[Array, Account]:
    """All of ``tensor`` at once, in its shape."""
    out = np.empty(tensor.spec.size, tensor.spec.dtype.numpy)
    made, lost = program(tensor, detail), Account()
    for piece in made.pieces():
        lost += made.make(piece, out[piece.lo : piece.hi])
    return out.reshape(tensor.spec.shape), lost


class _Chain(Program):
    """Blocks of one source through all stages."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self.crosses = any(not isinstance(stage, (Run, Whole)) for stage in stages)

    @abstractmethod
    def _block(self, piece: Piece, out: Array) -> Block:
        """The values of which a piece is made, and what ``apply`` is to be told of them."""

    def make(self, piece: Piece, out: Array) -> Account:
        if self.crosses:
            from tconv.placed.carry import alone  # which most jobs do without

            return alone(self.making(piece, out))
        if piece.lo == piece.hi:
            return Account()
        return apply(self._stages, *self._block(piece, out))

    def making(self, piece: Piece, out: Array) -> Making:
        if piece.lo == piece.hi:
            return Account()
        if not self.crosses:
            return self.make(piece, out)
        return (yield from applying(self._stages, *self._block(piece, out)))


class _Flat(_Chain):
    """Elementwise on a file that can be read anywhere: any range of elements by itself."""

    def __init__(self, tensor: Tensor, stages: Stages) -> None:
        super().__init__(stages)
        self._tensor = tensor

    def pieces(self) -> Iterator[Piece]:
        size, source = self._tensor.spec.size, self._tensor.source
        read, made = source.dtype.itemsize, self._tensor.spec.dtype.itemsize
        width = (1 + _overtaken(source)) * read + made
        width += (read + made) * self.crosses  # to the device and back
        scattered = isinstance(source, Permutable) and source.scattered
        step = max(PIECE, LARGE // max(read, made)) if scattered else PIECE
        for lo in range(0, size, step):
            hi = min(size, lo + step)
            yield Piece(lo, hi, source.path, (hi - lo) * width)

    def _block(self, piece: Piece, out: Array) -> Block:
        source = self._tensor.source
        read = read_block(source, piece.lo, piece.hi, None if self._stages else out)
        return read, source.shape, out, piece.lo, Account()


class _Rows(_Chain):
    """Slices along axis 0, each by itself."""

    def __init__(self, tensor: Tensor, stages: Stages) -> None:
        super().__init__(stages)
        self._tensor = tensor
        self._in = prod(tensor.source.shape[1:])
        self._out = prod(tensor.spec.shape[1:])

    def pieces(self) -> Iterator[Piece]:
        source, rows = self._tensor.source, self._tensor.spec.shape[0]
        step = max(1, PIECE // max(self._in, self._out, 1))
        for lo in range(0, rows, step):
            count = min(rows, lo + step) - lo
            cost = block_cost(self._stages, source.dtype, (count, *source.shape[1:]))
            cost += _overtaken(source) * source.dtype.nbytes(count * self._in)
            yield Piece(lo * self._out, (lo + count) * self._out, source.path, cost)

    def _block(self, piece: Piece, out: Array) -> Block:
        source = self._tensor.source
        lo, hi = piece.lo // self._out, piece.hi // self._out
        return read_block(source, lo * self._in, hi * self._in), (hi - lo, *source.shape[1:]), out, 0, Account()


class _Whole(_Chain):
    """All of it in one go: what decodes whole, or mixes what lies far apart."""

    def __init__(self, tensor: Tensor, stages: Stages) -> None:
        super().__init__(stages)
        self._tensor = tensor

    def pieces(self) -> Iterator[Piece]:
        source = self._tensor.source
        yield Piece(0, self._tensor.spec.size, source.path, block_cost(self._stages, source.dtype, source.shape))

    def _block(self, piece: Piece, out: Array) -> Block:
        source = self._tensor.source
        return read_block(source, 0, prod(source.shape)), source.shape, out, 0, Account()


class _Gathered(_Chain):
    """A stack made as a whole, for operations that mix its parts."""

    def __init__(self, tensor: Tensor, detail: bool) -> None:
        super().__init__(stages_of(tensor.ops, tensor.source.dtype, len(tensor.source.shape), detail))
        self._tensor, self._detail = tensor, detail

    def pieces(self) -> Iterator[Piece]:
        source = self._tensor.source
        yield Piece(0, self._tensor.spec.size, source.path, block_cost(self._stages, source.dtype, source.shape))

    def _block(self, piece: Piece, out: Array) -> Block:
        source = self._tensor.source
        plain = replace(self._tensor.spec, dtype=source.dtype, shape=source.shape)
        x, lost = evaluate(replace(self._tensor, ops=(), spec=plain), self._detail)
        return x.reshape(-1), source.shape, out, 0, lost


class _Parts(Program):
    """A stack: each part at its offset, with the operations on the stack done to the part."""

    def __init__(self, source: Parts, ops: tuple[Op, ...], detail: bool) -> None:
        self._source, self._ops, self._detail = source, ops, detail
        first = self._part(0)
        self._stride, self.crosses = first.spec.size, program(first).crosses

    def _part(self, n: int) -> Tensor:
        part = self._source.parts[n]
        for op in self._ops:
            part = part.then(op)
        return part

    def pieces(self) -> Iterator[Piece]:
        for n in range(len(self._source.parts)):
            at = n * self._stride
            made = program(self._part(n), self._detail)
            for piece in made.pieces():
                yield Piece(at + piece.lo, at + piece.hi, piece.path, piece.cost, (made, piece))

    def costly(self, count: int) -> Iterator[Piece]:
        for n in range(len(self._source.parts)):
            yield from program(self._part(n), self._detail).costly(count)

    def make(self, piece: Piece, out: Array) -> Account:
        assert piece.of is not None
        made, inner = piece.of
        return made.make(inner, out)

    def making(self, piece: Piece, out: Array) -> Making:
        assert piece.of is not None
        made, inner = piece.of
        return made.making(inner, out)


def _turned(tensor: Tensor) -> Tensor | None:
    """The same tensor from a source with its axes in their final order, or None if that cannot be read so."""
    source = tensor.source
    if not isinstance(source, Permutable) or any(isinstance(op, Whole) for op in tensor.ops):
        return None
    perm, ops = tuple(range(len(source.shape))), list[Op]()
    for op in reversed(tensor.ops):
        if isinstance(op, Permute):
            perm = tuple(op.perm[p] for p in perm)
        elif isinstance(op, Elementwise) and op.axis is not None:
            ops.append(replace(op, axis=perm.index(op.axis)))
        else:
            ops.append(op)
    return replace(tensor, source=source.permuted(perm), ops=tuple(reversed(ops)))


def _overtaken(source: Source) -> bool:
    """Whether what a piece is made of may have to be held until its turn comes."""
    return isinstance(source, Sequential) and source.sequential
