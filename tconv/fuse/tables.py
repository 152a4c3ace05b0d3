"""8-bit input through a run by a table of 256 entries a channel, and the account of what went through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv import opencv
from tconv.account import Account, CastKey, RangeKey
from tconv.casts.extent import extent
from tconv.channels import Window
from tconv.fuse.segments import Segment, Values
from tconv.lost import Detail, Lost, Number

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

SMALL = 1 << 14  # below this many elements importing OpenCV costs more than it saves
MOST_ENTRIES = 1 << 12  # of a table whose entries are accounted for one by one
_APART = 1 << 22  # elements of a picture whose channels are held all at once
_COUNTED = 1 << 24  # bytes that OpenCV counts exactly in one go


@dataclass(frozen=True)
class Table:
    """``rows`` has 256 results a channel, indexed by the byte; one row if all are alike. ``stages``: what becomes of
    the entries on the way. ``counted``: it has to be known how often which byte occurs, not just which is the least.
    """

    source: DType
    rows: tuple[Array, ...]
    stages: tuple[Stage, ...]
    counted: bool


@dataclass(frozen=True)
class Stage:
    """The entries (by row and byte) as they enter one segment, and what each loses there if that has to be known."""

    key: CastKey | RangeKey
    dtype: DType
    entries: Array
    losses: Losses | None

    def spanned(self, count: int, ends: Iterable[tuple[int, int]]) -> Lost:
        """Of ``count`` values that nothing is lost of, which lie between the entries at ``ends``: (row, byte)."""
        found = [self._numbers[row][byte] for row, byte in ends]
        return Lost(count, minimum=min(found, default=None), maximum=max(found, default=None))

    @cached_property
    def _numbers(self) -> list[list[Number]]:
        """The entries as Python's numbers, which for a few of them is a tenth of the work that arrays make."""
        plain = np.float64 if self.dtype.is_float else np.uint8 if self.dtype.kind == "bool" else self.entries.dtype
        numbers: list[list[Number]] = self.entries.astype(plain, copy=False).tolist()
        return numbers

    def account(self, occurring: Array, counts: Array) -> Lost:
        """Of values of which ``counts`` are as the entries that are ``occurring``, both by row and byte."""
        found = extent(self.entries[occurring], self.dtype)
        lost = Lost(int(counts.sum()), minimum=found.low, maximum=found.high)
        if self.losses is not None:
            self.losses.add(occurring, counts, lost)
        return lost


_COUNTS = ("overflow", "infinite", "nan", "underflow", "inexact")
_SUMS = ("nan", "inf", "inexact", "subnormal")
_WORST = ("max_abs_error", "max_rel_error")


class Losses:
    """What each of the entries loses, as columns of numbers that can be added up by how often the entries occur."""

    def __init__(self, each: Sequence[Lost]) -> None:
        self._each = each
        self._counts = _columns(each, _COUNTS)
        self._details = [one.detail for one in each if one.detail is not None]
        self._sums, self._worst = _columns(self._details, _SUMS), _columns(self._details, _WORST)
        self._signal, self._noise = Powers([d.signal for d in self._details]), Powers([d.noise for d in self._details])

    def add(self, occurring: Array, counts: Array, lost: Lost) -> None:
        at = np.flatnonzero(occurring)
        often = counts.reshape(-1)[at].astype(np.float64)
        for name, total in zip(_COUNTS, often @ self._counts[at], strict=True):
            setattr(lost, name, int(total))
        for one in (self._each[n] for n in at[self._counts[at, 0] > 0]):
            if one.lowest is not None and one.highest is not None:
                lost.saw(one.lowest, one.highest)
        if self._details:
            nan, inf, inexact, subnormal = map(int, (often @ self._sums[at]).tolist())
            most, share = self._worst[at].max(axis=0, initial=0).tolist()
            signal, noise = self._signal.total(at, often), self._noise.total(at, often)
            lost.detail = Detail(nan, inf, inexact, subnormal, most, share, signal, noise)


class Powers:
    """Sums of squares, one for each entry: as float64 and a power of two that all have in common."""

    def __init__(self, each: Sequence[Fraction]) -> None:
        most = max(each, default=Fraction(0))
        self._unit = Fraction(2) ** (most.numerator.bit_length() - most.denominator.bit_length())
        self._each = np.array([float(power / self._unit) for power in each], np.float64)

    def total(self, at: Array, often: Array) -> Fraction:
        """Of the entries ``at``, each of which is there so ``often``."""
        return Fraction(float(often @ self._each[at])) * self._unit


def _columns(each: Sequence[object], names: Sequence[str]) -> Array:
    return np.array([[getattr(one, name) for name in names] for one in each], np.float64).reshape(-1, len(names))


@lru_cache(maxsize=256)
def tabulate(source: DType, segments: tuple[Segment, ...], channels: int, detail: bool) -> Table | None:
    """Every byte through the segments; None where accounting for the entries one by one would take too long."""
    every = _all_bytes(source)
    window = Window((channels, 256), 0 if channels > 1 else None)
    x, dtype, stages = np.tile(every, channels), source, []
    for segment in segments:
        values = segment.enter(x, dtype, window)
        made, lost = segment.leave(values, window, detail=detail)
        losses = None
        if lost or detail:
            if x.size > MOST_ENTRIES:
                return None
            losses = Losses([_alone(segment, values, n, window, detail) for n in range(x.size)])
        stages.append(Stage(segment.key(values.dtype), values.dtype, values.x.reshape(channels, 256), losses))
        x, dtype = made, segment.dtype
    rows = x.reshape(channels, 256)
    if all(_alike(entries) for entries in (rows, *(stage.entries for stage in stages))):
        rows = rows[:1]
        stages = [replace(stage, entries=stage.entries[:1]) for stage in stages]
    order = np.argsort(every, kind="stable")
    counted = not all(stage.losses is None and _sorted(stage.entries[:, order]) for stage in stages)
    return Table(source, tuple(rows), tuple(stages), counted)


def _alone(segment: Segment, values: Values, n: int, window: Window, detail: bool) -> Lost:
    """What entry ``n`` loses by itself."""
    if window.axis is not None:
        window = window._replace(channels=(n // 256, n // 256 + 1))
    return segment.leave(values.alone(n), window, detail=detail)[1]


def _all_bytes(source: DType) -> Array:
    """What each byte means, in the order of the bytes' unsigned values."""
    plain = np.arange(256, dtype=np.uint8)
    return plain != 0 if source.kind == "bool" else plain.view(source.numpy)


def _alike(rows: Array) -> bool:
    return all(row.tobytes() == rows[0].tobytes() for row in rows[1:])


def _sorted(rows: Array) -> bool:
    """Whether each row is finite, and rises or falls all along."""
    if not np.isfinite(wide := rows.astype(np.float64)).all():
        return False
    steps = np.diff(wide)
    return bool(((steps >= 0).all(axis=1) | (steps <= 0).all(axis=1)).all())


class Tally:
    """Looks bytes up in a table, and keeps the account of them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._count = 0
        self._counts = np.zeros((len(table.rows), 256), np.int64) if table.counted else None
        self._ends: list[tuple[int, int]] = []  # (row, byte) of the least and of the greatest of what was seen

    def look_up(self, row: int, x: Array, out: Array) -> None:
        """``out`` is what the bytes ``x`` are in that row; both flat or of one shape."""
        look_up(x, self.table.rows[row], out)
        self.see(row, x.reshape(-1))

    def see(self, row: int, x: Array) -> None:
        """Account for the flat ``x`` without looking it up."""
        self._count += x.size
        if self._counts is not None:
            self._counts[row] += histogram(x)
        else:
            self._see_ends(row, x)

    def add(self, counts: Array) -> None:
        """Account for bytes that were counted elsewhere, by row and byte."""
        if self._counts is not None:
            self._counts += counts
            return
        self._count += int(counts.sum())
        for row, occurring in enumerate(counts):
            self._see_ends(row, np.flatnonzero(occurring).astype(np.uint8))

    def _see_ends(self, row: int, x: Array) -> None:
        """Where nothing is lost, the two ends may stand for all: what is between them is between their entries."""
        if x.size:
            signed = x.view(np.int8 if self.table.source.kind == "int" else np.uint8)
            self._ends += [(row, int(end.reduce(signed)) % 256) for end in (np.minimum, np.maximum)]

    def account(self) -> Account:
        account, counts = Account(), self._counts
        occurring = None if counts is None else counts > 0
        for stage in self.table.stages:
            if counts is None or occurring is None:
                account.add(stage.key, stage.spanned(self._count, self._ends))
            else:
                account.add(stage.key, stage.account(occurring, counts))
        return account


def histogram(x: Array) -> Array:
    """How often each byte occurs in the flat ``x``."""
    bytes_ = x.view(np.uint8)
    if x.size < SMALL:
        return np.bincount(bytes_, minlength=256)
    total = np.zeros(256, np.int64)
    for lo in range(0, x.size, _COUNTED):
        found = opencv.load().calcHist([_plane(bytes_[lo : lo + _COUNTED])], [0], None, [256], [0, 256])
        total += found.reshape(-1).astype(np.int64)
    return total


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


def planes(x: Array, axis: int) -> Iterable[Array]:
    """The slices of ``x`` along an axis; OpenCV takes the channels of a picture of bytes apart in one pass."""
    if axis == x.ndim - 1 == 2 and x.shape[2] <= 4 and x.dtype.itemsize == 1 and SMALL <= x.size <= _APART:
        apart: Sequence[Array] = opencv.load().split(x.view(np.uint8))
        return [plane.view(x.dtype) for plane in apart]
    return (plane(x, axis, n) for n in range(x.shape[axis]))


def plane(x: Array, axis: int, n: int) -> Array:
    """A view of slice ``n`` along an axis."""
    where: tuple[Any, ...] = (*(slice(None),) * axis, n)
    view: Array = x[where]
    return view


_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64}  # how OpenCV is told to move bits


def _plane(x: Array) -> Array:
    """A flat array as rows, since OpenCV takes a long vector for a column of single elements."""
    if x.ndim == 2:
        return x
    width = next((w for w in (4096, 1024, 256, 64, 3, 2) if x.size % w == 0), x.size)
    return x.reshape(-1, width)
