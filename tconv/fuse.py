"""Runs of elementwise operations as one table (8-bit input) or one pass over cache-sized chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv import casts, opencv
from tconv.account import Account, CastKey
from tconv.dtypes import DTYPES, DType
from tconv.ops import CastTo, Elementwise, Op, Permute

if TYPE_CHECKING:
    from tconv.ops import Array, Pick

CHUNK = 1 << 17  # elements in one go: what a pass touches, float64 included, stays in a core's second-level cache
SMALL = 1 << 14  # below this many elements importing OpenCV costs more than it saves
FLOAT64 = DTYPES["float64"]


@dataclass(frozen=True)
class Segment:
    """Arithmetic in float64, then one rounding to ``dtype``."""

    arithmetic: tuple[Elementwise, ...]
    dtype: DType
    on_overflow: str
    step: str


@dataclass(frozen=True)
class Run:
    """Elementwise operations as segments with ``axis`` in the layout of the input, then a reordering of the axes."""

    source: DType
    segments: tuple[Segment, ...]
    axis: int | None
    perm: tuple[int, ...] | None

    @property
    def dtype(self) -> DType:
        return self.segments[-1].dtype if self.segments else self.source

    def __call__(self, x: Array, shape: tuple[int, ...], out: Array, first: int = 0) -> Account:
        """Elements [first, first + x.size) of an array of ``shape``, into ``out`` (flat, C order, after the perm).

        With a ``perm`` the whole array is needed: ``x.size`` is that of ``shape``.
        """
        if self.perm is None:
            return self._values(x, shape, out, first)
        if self.segments and (table := self._table(shape)) is not None:
            _look_up_permuted(x.reshape(shape), table, self.axis, self.perm, out)
            return Account()
        flat, lost = x, Account()
        if self.segments:
            flat = np.empty(x.size, self.dtype.numpy)
            lost = self._values(x, shape, flat, first)
        turned = flat.reshape(shape).transpose(self.perm)
        out.reshape(turned.shape)[...] = turned
        return lost

    def _values(self, x: Array, shape: tuple[int, ...], out: Array, first: int) -> Account:
        if not self.segments:
            np.copyto(out, x)
            return Account()
        if (table := self._table(shape)) is not None:
            return self._by_table(x, shape, out, first, table)
        lost = Account()
        limit = CHUNK if any(s.arithmetic for s in self.segments) else x.size
        for lo, hi, channel in cuts(first, first + x.size, shape, self.axis, limit):
            lost += self._pass(x[lo - first : hi - first], out[lo - first : hi - first], shape, channel)
        return lost

    def _pass(self, x: Array, out: Array, shape: tuple[int, ...], channel: int | None) -> Account:
        """One chunk through every segment; rounds after each, and counts what each lost."""
        lost, last = Account(), len(self.segments) - 1
        src = self.source
        for n, segment in enumerate(self.segments):
            values = x
            if segment.arithmetic:
                values, pick = _shaped(x.astype(np.float64), shape, self.axis, channel)
                for op in segment.arithmetic:
                    values = op.compute(values, pick)
                values, src = values.reshape(-1), FLOAT64
            x, more = casts.cast(
                values, segment.dtype, out if n == last else None, src=src, on_overflow=segment.on_overflow
            )
            if n == last and x is not out:
                np.copyto(out, x)
            lost.add(CastKey(segment.step, src, segment.dtype, segment.on_overflow), more)
            src = segment.dtype
        return lost

    def _by_table(self, x: Array, shape: tuple[int, ...], out: Array, first: int, table: Table) -> Account:
        if len(table.rows) == 1:
            look_up(x, table.rows[0], out)
        else:
            assert self.axis is not None
            for lo, hi, channel in cuts(first, first + x.size, shape, self.axis, 1 << 62):
                part, into = x[lo - first : hi - first], out[lo - first : hi - first]
                if channel is None:
                    _look_up_channels(part, table, prod(shape[self.axis + 1 :]), into)
                else:
                    look_up(part, table.rows[channel], into)
        return Account()

    def _table(self, shape: tuple[int, ...]) -> Table | None:
        """The table that does it all, if the input is bytes and no byte loses anything: a pass counts what is lost."""
        if self.source.bits != 8 or self.source.kind not in ("uint", "int", "bool"):
            return None
        channels = 1 if self.axis is None else shape[self.axis]
        table = _tabulate(self.source, self.segments, channels)
        return table if table.clean else None


@dataclass(frozen=True)
class Table:
    """256 entries a channel (one row if all are alike), indexed by the byte; ``clean``: no entry loses a value."""

    rows: tuple[Array, ...]
    clean: bool


@lru_cache(maxsize=256)
def _tabulate(source: DType, segments: tuple[Segment, ...], channels: int) -> Table:
    """Every byte through the segments, in the order of the bytes' unsigned values."""
    values = np.arange(256, dtype=np.uint8).view(source.numpy if source.kind != "bool" else np.uint8)
    if source.kind == "bool":
        values = (values != 0).astype(np.bool_)
    run = Run(source, segments, 1 if channels > 1 else None, None)
    x = np.repeat(values, channels)
    out = np.empty(x.size, run.dtype.numpy)
    lost = run._pass(x, out, (256, channels), None)
    rows = np.ascontiguousarray(out.reshape(256, channels).T)
    same = all(rows[0].tobytes() == row.tobytes() for row in rows[1:])
    return Table(tuple(rows[:1] if same else rows), clean=not lost)


def compile_run(ops: tuple[Op, ...], source: DType, rank: int) -> list[Run]:
    """Elementwise operations and permutations as few runs as possible: one, unless numbers vary along several axes.

    An elementwise operation does the same before a permutation as after it, with its axis renamed: so within a run
    all permutations move to the end.
    """
    runs: list[Run] = []
    segments: list[Segment] = []
    pending: list[Elementwise] = []
    axis: int | None = None
    same = tuple(range(rank))
    perm = same
    src = source

    def close() -> None:
        nonlocal segments, pending, axis, perm, src
        if pending:
            segments.append(Segment(tuple(pending), pending[-1].dtype, "error", pending[-1].step))
        order = perm if perm != same else None
        if segments or order:
            runs.append(Run(src, tuple(segments), axis, order))
            src = runs[-1].dtype
        segments, pending, axis, perm = [], [], None, same

    for op in ops:
        if isinstance(op, Permute):
            perm = tuple(perm[p] for p in op.perm)
        elif isinstance(op, CastTo):
            segments.append(Segment(tuple(pending), op.dtype, op.on_overflow, op.step))
            pending = []
        elif isinstance(op, Elementwise):
            moved = None if op.axis is None else perm[op.axis]
            if moved is not None and axis is not None and moved != axis:
                close()
                moved = op.axis
            axis = moved if axis is None else axis
            pending.append(replace(op, axis=moved))
        else:
            raise TypeError(f"{op} is not elementwise")
    close()
    return runs


def cuts(
    lo: int, hi: int, shape: tuple[int, ...], axis: int | None, limit: int
) -> Iterator[tuple[int, int, int | None]]:
    """Cut [lo, hi) of a C-order array into pieces of at most ``limit`` elements, each within one channel of ``axis``
    (its number is given) or made of whole groups of all channels (None).
    """
    inner = 1 if axis is None else prod(shape[axis + 1 :])
    channels = 1 if axis is None else shape[axis]
    group = inner * channels
    while lo < hi:
        if axis is None:
            end, channel = min(hi, lo + limit), None
        elif group <= limit and lo % group == 0 and hi - lo >= group:
            end, channel = lo + min(limit // group, (hi - lo) // group) * group, None
        else:
            end, channel = min(hi, (lo // inner + 1) * inner, lo + limit), lo // inner % channels
        yield lo, end, channel
        lo = end


def _shaped(x: Array, shape: tuple[int, ...], axis: int | None, channel: int | None) -> tuple[Array, Pick]:
    """A flat piece from ``cuts`` in the shape in which numbers for each channel broadcast, and how they do."""
    if axis is None:
        return x, lambda values: float(values[0])
    if channel is not None:
        return x, lambda values: float(values[channel if len(values) > 1 else 0])
    inner = prod(shape[axis + 1 :])
    return x.reshape(-1, shape[axis], inner), lambda values: np.asarray(values, np.float64)[:, None]


def look_up(x: Array, row: Array, out: Array) -> None:
    """``out = row[x]`` for bytes ``x``; all flat or all of one shape. OpenCV's table is ten times NumPy's take."""
    index = x.view(np.uint8)
    if x.size < SMALL:
        np.take(row, index, out=out, mode="clip")
        return
    word = _WORDS[row.dtype.itemsize]
    into = out.view(word)
    done = opencv.load().LUT(_plane(index), row.view(word).reshape(1, 256), dst=_plane(into))
    if not np.shares_memory(done, into):  # OpenCV allocates anew when it does not like the destination
        into[...] = done.reshape(into.shape)


_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64}  # how OpenCV is told to move bits


def _plane(x: Array) -> Array:
    """A flat array as rows, since OpenCV takes a long vector for a column of single elements."""
    if x.ndim == 2:
        return x
    width = next((w for w in (4096, 1024, 256, 64, 3, 2) if x.size % w == 0), x.size)
    return x.reshape(-1, width)


def _look_up_channels(x: Array, table: Table, inner: int, out: Array) -> None:
    """Whole groups of all channels, flat: (outer, channels, inner)."""
    channels = len(table.rows)
    a, b = x.reshape(-1, channels, inner), out.reshape(-1, channels, inner)
    for c, row in enumerate(table.rows):
        if inner >= 256:
            for n in range(len(a)):
                look_up(a[n, c], row, b[n, c])
        else:
            plane = np.empty(a[:, c].shape, row.dtype)
            look_up(np.ascontiguousarray(a[:, c]), row, plane)
            b[:, c] = plane


def _look_up_permuted(x: Array, table: Table, axis: int | None, perm: tuple[int, ...], out: Array) -> None:
    """A table and a permutation in one: each channel goes to its place in the result."""
    channel = axis if axis is not None and len(table.rows) > 1 else (x.ndim - 1)
    rows = table.rows if len(table.rows) > 1 else table.rows * x.shape[channel]
    turned = out.reshape([x.shape[p] for p in perm])
    place = perm.index(channel)
    for c, row in enumerate(rows):
        source = np.moveaxis(x, channel, 0)[c]
        rest = [p - (p > channel) for p in perm if p != channel]
        plane = np.ascontiguousarray(source.transpose(rest))
        target = np.moveaxis(turned, place, 0)[c]
        if target.flags.c_contiguous:
            look_up(plane, row, target)
        else:
            target[...] = row[plane.view(np.uint8)]
