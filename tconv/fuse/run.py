"""Runs of elementwise operations as one table (8-bit input) or one pass over cache-sized chunks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tconv.account import Account
from tconv.channels import Window, cuts
from tconv.fuse.segments import Check, Segment, Values
from tconv.fuse.tables import Tally, plane, planes, tabulate
from tconv.tensor import Spec

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.fuse.tables import Table
    from tconv.ops import Array

MOST_CHANNELS = 256  # for which a table is worth making
CHUNK = 1 << 17  # elements in one go: what a pass touches, float64 included, stays in a core's second-level cache


@dataclass(frozen=True)
class Run:
    """Elementwise operations as segments with ``axis`` in the layout of the input, then a reordering of the axes.

    ``detail``: the account tells how large the errors are. ``group``: numbers differ by so many elements in a row.
    ``wanted``: the device on which each segment, and in the end the reordering, was asked to be done, or "".
    """

    source: DType
    segments: tuple[Segment, ...]
    axis: int | None
    perm: tuple[int, ...] | None
    detail: bool = False
    group: int | None = None
    wanted: tuple[str, ...] = ()

    @property
    def dtype(self) -> DType:
        return self.segments[-1].dtype if self.segments else self.source

    @property
    def inert(self) -> bool:
        """Whether all values stay as and where they are."""
        return self.perm is None and all(isinstance(segment, Check) for segment in self.segments)

    def __call__(self, x: Array, shape: tuple[int, ...], out: Array, first: int = 0) -> Account:
        """Elements [first, first + x.size) of an array of ``shape``, into ``out`` (flat, C order, after the perm).

        With a ``perm`` the whole array is needed: ``x.size`` is that of ``shape``.
        """
        if not x.size:
            return Account()
        if self.inert:
            np.copyto(out, x)
            return self.check(x)
        if self.group is not None:
            return self._values(x, (prod(shape) // self.group, self.group), out, first)
        if self.perm is None:
            return self._values(x, shape, out, first)
        if self.segments and (table := self.table(shape)) is not None:
            tally = Tally(table)
            _look_up_permuted(x.reshape(shape), tally, self.axis, self.perm, out)
            return tally.account()
        flat, lost = x, Account()
        if self.segments:
            flat = np.empty(x.size, self.dtype.numpy)
            lost = self._values(x, shape, flat, first)
        turned = flat.reshape(shape).transpose(self.perm)
        out.reshape(turned.shape)[...] = turned
        return lost

    def spec(self, spec: Spec) -> Spec:
        """Dtype and shape of what comes out when ``spec`` goes in."""
        return Spec(spec.name, self.dtype, self.turned(spec.shape))

    def scratch(self, spec: Spec) -> int:
        """Bytes needed besides input and result: what is computed, and not by a table, is reordered when it is made."""
        return 0 if self.perm is None or not self.segments else self.dtype.nbytes(spec.size)

    def turned(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what it makes of an array of ``shape``."""
        return shape if self.perm is None else tuple(shape[p] for p in self.perm)

    def rows(self, shape: tuple[int, ...]) -> int:
        """How many rows of 256 entries the table has that does it all for an array of ``shape``; 0 if none does."""
        table = self.table(shape) if self.segments else None
        return len(table.rows) if table else 0

    def check(self, x: Array) -> Account:
        """The account of an inert run of the flat ``x``."""
        account = Account()
        for segment in self.segments:
            account.add(segment.key(self.source), segment.leave(Values(x, self.source), Window(x.shape, None))[1])
        return account

    def _values(self, x: Array, shape: tuple[int, ...], out: Array, first: int) -> Account:
        if (table := self.table(shape)) is not None:
            return self._by_table(x, shape, out, first, table)
        lost = Account()
        alone = len(self.segments) == 1 and not getattr(self.segments[0], "arithmetic", ())
        limit = x.size if alone else CHUNK  # a cast by itself goes in blocks of its own
        for lo, hi, channels in cuts(first, first + x.size, shape, self.axis, limit):
            window = Window(shape, self.axis, channels)
            lost += self._pass(x[lo - first : hi - first], out[lo - first : hi - first], window)
        return lost

    def _pass(self, x: Array, out: Array, window: Window) -> Account:
        """One chunk through every segment; rounds after each, and counts what each lost."""
        account, last, src = Account(), len(self.segments) - 1, self.source
        for n, segment in enumerate(self.segments):
            values = segment.enter(x, src, window)
            x, lost = segment.leave(values, window, out if n == last else None, detail=self.detail)
            account.add(segment.key(values.dtype), lost)
            src = segment.dtype
        if x is not out:
            np.copyto(out, x)
        return account

    def _by_table(self, x: Array, shape: tuple[int, ...], out: Array, first: int, table: Table) -> Account:
        tally = Tally(table)
        if len(table.rows) == 1:
            tally.look_up(0, x, out)
            return tally.account()
        assert self.axis is not None
        for lo, hi, channels in cuts(first, first + x.size, shape, self.axis, 1 << 62):
            part, into = x[lo - first : hi - first], out[lo - first : hi - first]
            if channels is None:
                _look_up_channels(part, tally, prod(shape[self.axis + 1 :]), into)
                continue
            several = channels[1] - channels[0]
            for channel, x_one, into_one in zip(
                range(*channels), part.reshape(several, -1), into.reshape(several, -1), strict=True
            ):
                tally.look_up(channel, x_one, into_one)
        return tally.account()

    def table(self, shape: tuple[int, ...]) -> Table | None:
        """The table that does it all, if the input is bytes."""
        if self.source.bits != 8 or self.source.kind not in ("uint", "int", "bool") or self.group is not None:
            return None
        channels = 1 if self.axis is None else shape[self.axis]
        if channels > MOST_CHANNELS:
            return None
        if channels not in self._tables:
            self._tables[channels] = tabulate(self.source, self.segments, channels, self.detail)
        return self._tables[channels]

    @cached_property
    def _tables(self) -> dict[int, Table | None]:
        """By the number of channels; to look at all segments for each of many pictures takes longer than one would
        think.
        """
        return {}


def _look_up_channels(x: Array, tally: Tally, inner: int, out: Array) -> None:
    """Whole groups of all channels, flat: (outer, channels, inner)."""
    rows = tally.table.rows
    a, b = x.reshape(-1, len(rows), inner), out.reshape(-1, len(rows), inner)
    for c, row in enumerate(rows):
        if inner >= 256:
            for n in range(len(a)):
                tally.look_up(c, a[n, c], b[n, c])
        else:
            plane = np.empty(a[:, c].shape, row.dtype)
            tally.look_up(c, np.ascontiguousarray(a[:, c]), plane)
            b[:, c] = plane


def _look_up_permuted(x: Array, tally: Tally, axis: int | None, perm: tuple[int, ...], out: Array) -> None:
    """A table and a permutation in one: each channel goes to its place in the result."""
    several = axis is not None and len(tally.table.rows) > 1
    channel = axis if axis is not None and several else x.ndim - 1
    turned = out.reshape([x.shape[p] for p in perm])
    place = perm.index(channel)
    rest = [p - (p > channel) for p in perm if p != channel]
    for c, part in enumerate(planes(x, channel)):
        ordered = np.ascontiguousarray(part.transpose(rest))
        target = plane(turned, place, c)
        if target.flags.c_contiguous:
            tally.look_up(c if several else 0, ordered, target)
        else:
            made = np.empty(ordered.shape, target.dtype)
            tally.look_up(c if several else 0, ordered, made)
            target[...] = made
