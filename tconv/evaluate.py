"""From a lazy tensor to values: which pieces it can be made in, what each costs, and making one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.account import Account
from tconv.fuse import Run, compile_run
from tconv.ops import Op, Whole
from tconv.parts import Parts

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Source, Tensor

PIECE = 1 << 20  # elements made in one go where a tensor can be cut: a few MB, however large the tensor is


@dataclass(frozen=True)
class Piece:
    """Elements [lo, hi) of the result. ``path``: the file they come from; ``cost``: bytes of memory to make them."""

    lo: int
    hi: int
    path: Path
    cost: int


class Program(ABC):
    """How to make a tensor, piece by piece, in any order, from any thread."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]: ...

    @abstractmethod
    def make(self, piece: Piece, out: Array) -> Account:
        """The values of ``piece``, flat and in C order, into ``out``; what the casts lost of them."""


def program(tensor: Tensor) -> Program:
    """The cheapest way to make ``tensor``."""
    source, ops = tensor.source, tensor.ops
    if isinstance(source, Parts):
        lowered = _below(ops)
        return _Whole(tensor) if lowered is None else _Parts(source, lowered)
    stages = _stages(ops, source.dtype, len(source.shape))
    if source.seekable and all(isinstance(s, Run) and s.perm is None for s in stages):
        return _Flat(tensor, stages)
    if source.seekable and len(source.shape) > 1 and _below(ops) is not None:
        return _Rows(tensor)
    return _Whole(tensor)


def evaluate(tensor: Tensor) -> tuple[Array, Account]:
    """All of ``tensor`` at once, in its shape."""
    out = np.empty(tensor.spec.size, tensor.spec.dtype.numpy)
    made, lost = program(tensor), Account()
    for piece in made.pieces():
        lost += made.make(piece, out[piece.lo : piece.hi])
    return out.reshape(tensor.spec.shape), lost


class _Flat(Program):
    """Elementwise on a file that can be read anywhere: any range of elements by itself."""

    def __init__(self, tensor: Tensor, stages: tuple[Any, ...]) -> None:
        self._tensor, self._runs = tensor, stages

    def pieces(self) -> Iterator[Piece]:
        size, source = self._tensor.spec.size, self._tensor.source
        width = source.dtype.itemsize + self._tensor.spec.dtype.itemsize
        for lo in range(0, size, PIECE):
            hi = min(size, lo + PIECE)
            yield Piece(lo, hi, source.path, (hi - lo) * width)

    def make(self, piece: Piece, out: Array) -> Account:
        source, runs = self._tensor.source, self._runs
        if not runs:
            _read(source, piece.lo, piece.hi, out)
            return Account()
        x = _read(source, piece.lo, piece.hi, _scratch(source.dtype.numpy, piece.hi - piece.lo))
        lost = Account()
        for n, run in enumerate(runs):
            into = out if n == len(runs) - 1 else np.empty(x.size, run.dtype.numpy)
            lost += run(x, source.shape, into, piece.lo)
            x = into
        return lost


class _Rows(Program):
    """Slices along axis 0, each by itself."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._in = prod(tensor.source.shape[1:])
        self._out = prod(tensor.spec.shape[1:])

    def pieces(self) -> Iterator[Piece]:
        tensor = self._tensor
        rows = tensor.spec.shape[0]
        step = max(1, PIECE // max(self._in, self._out, 1))
        for lo in range(0, rows, step):
            count = min(rows, lo + step) - lo
            cost = _block_cost(tensor, (count, *tensor.source.shape[1:]))
            yield Piece(lo * self._out, (lo + count) * self._out, tensor.source.path, cost)

    def make(self, piece: Piece, out: Array) -> Account:
        if not self._out:
            return Account()
        source = self._tensor.source
        lo, hi = piece.lo // self._out, piece.hi // self._out
        return _make_block(self._tensor, lo * self._in, hi * self._in, (hi - lo, *source.shape[1:]), out)


class _Whole(Program):
    """All of it in one go: what decodes whole, or mixes what lies far apart."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def pieces(self) -> Iterator[Piece]:
        source = self._tensor.source
        yield Piece(0, self._tensor.spec.size, source.path, _block_cost(self._tensor, source.shape))

    def make(self, piece: Piece, out: Array) -> Account:
        source = self._tensor.source
        if isinstance(source, Parts):
            plain = replace(self._tensor.spec, dtype=source.dtype, shape=source.shape)
            x, lost = evaluate(replace(self._tensor, ops=(), spec=plain))
            lost += _apply(self._tensor, x, out)
            return lost
        return _make_block(self._tensor, 0, prod(source.shape), source.shape, out)


class _Parts(Program):
    """A stack: each part at its offset, with the operations on the stack done to the part."""

    def __init__(self, source: Parts, ops: tuple[Op, ...]) -> None:
        self._source, self._ops = source, ops
        self._stride = self._part(0).spec.size

    def _part(self, n: int) -> Tensor:
        part = self._source.parts[n]
        for op in self._ops:
            part = part.then(op)
        return part

    def pieces(self) -> Iterator[Piece]:
        for n in range(len(self._source.parts)):
            at = n * self._stride
            for piece in program(self._part(n)).pieces():
                yield replace(piece, lo=at + piece.lo, hi=at + piece.hi)

    def make(self, piece: Piece, out: Array) -> Account:
        if not self._stride:
            return Account()
        n = piece.lo // self._stride
        at = n * self._stride
        return program(self._part(n)).make(replace(piece, lo=piece.lo - at, hi=piece.hi - at), out)


def _make_block(tensor: Tensor, lo: int, hi: int, shape: tuple[int, ...], out: Array) -> Account:
    x = _read(tensor.source, lo, hi, _scratch(tensor.source.dtype.numpy, hi - lo))
    return _apply(tensor, x.reshape(shape), out)


def _apply(tensor: Tensor, x: Array, out: Array) -> Account:
    """All operations of ``tensor`` on one block."""
    stages, lost = _stages(tensor.ops, tensor.source.dtype, x.ndim), Account()
    if not stages:
        np.copyto(out, x.reshape(-1))
    for n, stage in enumerate(stages):
        last = n == len(stages) - 1
        if isinstance(stage, Run):
            shape = x.shape if stage.perm is None else tuple(x.shape[p] for p in stage.perm)
            into = out if last else np.empty(x.size, stage.dtype.numpy)
            lost += stage(x.reshape(-1), x.shape, into)
            x = into.reshape(shape)
        else:
            x = np.ascontiguousarray(stage.apply(x))
            if last:
                np.copyto(out, x.reshape(-1))
    return lost


@lru_cache(maxsize=1024)
def _stages(ops: tuple[Op, ...], dtype: DType, rank: int) -> tuple[Run | Whole, ...]:
    """Runs of elementwise operations and permutations, and what stands between them.

    Cached, since the thousands of images of one job share one chain.
    """
    stages: list[Run | Whole] = []
    run: list[Op] = []

    def close() -> None:
        nonlocal dtype
        stages.extend(compile_run(tuple(run), dtype, rank))
        run.clear()
        dtype = next((s.dtype for s in reversed(stages) if isinstance(s, Run)), dtype)

    for op in ops:
        if isinstance(op, Whole):
            close()
            stages.append(op)
        else:
            run.append(op)
    close()
    return tuple(stages)


def _below(ops: tuple[Op, ...]) -> tuple[Op, ...] | None:
    """The operations on one slice along axis 0, or None if one of them needs more than a slice."""
    lowered = [op.below() for op in ops]
    return None if any(op is None for op in lowered) else tuple(op for op in lowered if op is not None)


def _block_cost(tensor: Tensor, shape: tuple[int, ...]) -> int:
    """Bytes of memory that making a block of ``shape`` takes at its worst moment: what goes into and what comes out of
    the hungriest operation, beside the block as it was read.
    """
    spec = replace(tensor.spec, dtype=tensor.source.dtype, shape=shape, axes=None)
    read = before = worst = spec.nbytes
    for op in tensor.ops:
        extra = op.scratch(spec) if isinstance(op, Whole) else 0
        spec = op.spec(spec)
        worst = max(worst, before + spec.nbytes + extra)
        before = spec.nbytes
    return read + worst


_local = threading.local()


def _scratch(dtype: np.dtype[Any], count: int) -> Array:
    """A buffer of this thread's own, the same one each time; what it holds is gone at the next call."""
    need = dtype.itemsize * count
    held: Array | None = getattr(_local, "buffer", None)
    if held is None or held.size < need:
        held = _local.buffer = np.empty(max(need, 1 << 16), np.uint8)
    return held[:need].view(dtype)


def _read(source: Source, lo: int, hi: int, out: Array) -> Array:
    """Elements [lo, hi), where the source put them: in ``out``, always."""
    got = source.read(lo, hi, out)
    if got is not out:
        np.copyto(out, got.reshape(-1))
    return out
