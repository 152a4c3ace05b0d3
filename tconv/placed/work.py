"""A batch of equal tensors through a section on its device, and the account of each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tconv.account import Account
from tconv.casts.extent import bounds
from tconv.devices.bits import carrier, moved, numbers
from tconv.devices.lookup import look_up
from tconv.devices.rounding import outside, rounded
from tconv.fuse.segments import FLOAT64, Check, Rounding
from tconv.fuse.tables import Tally
from tconv.lost import Detail, Lost

if TYPE_CHECKING:
    from torch import Tensor

    from tconv.account import CastKey, RangeKey
    from tconv.devices.lane import Lane, Load
    from tconv.devices.rounding import Columns
    from tconv.dtypes import DType
    from tconv.fuse import Run
    from tconv.fuse.segments import Segment
    from tconv.fuse.tables import Table
    from tconv.ops import Array, Elementwise
    from tconv.placed.carry import Crossing

    # What the numbers that came back say of each tensor.
    Reading = Callable[[Array, Sequence[Account]], None]

_COUNTED = ("overflow", "infinite", "nan", "underflow", "inexact")


def worked(like: Crossing, load: Load, slots: Sequence[Tensor]) -> list[tuple[Array, Account]]:
    """What becomes of the values in ``slots``, all of which cross ``like`` one of them: until the load is done."""
    section, shape = like.section, like.shape
    x = load.sent(slots, carrier(section.source))
    found: list[tuple[Tensor, Reading]] = []
    with load.working():
        for run in section.runs:
            x, more = _Work(run, shape, like.first, load.way).through(x)
            found += more
            shape = run.turned(shape)
        x = x.view(moved(section.dtype))
    made, *told = load.back([x, *(tensor for tensor, _ in found)])
    accounts = [Account() for _ in slots]
    for (_, reading), numbers_ in zip(found, told, strict=True):
        reading(numbers_, accounts)
    return list(zip(made.view(section.dtype.numpy), accounts, strict=True))


class _Work:
    """A run on rows that are each elements [first, …) of an array of ``shape``."""

    def __init__(self, run: Run, shape: tuple[int, ...], first: int, way: Lane) -> None:
        self._run, self._shape, self._first, self._way = run, shape, first, way

    def through(self, x: Tensor) -> tuple[Tensor, list[tuple[Tensor, Reading]]]:
        run = self._run
        found: list[tuple[Tensor, Reading]] = []
        table = run.table(self._shape) if run.segments else None
        if table is not None:
            x, counts = self._looked_up(x, table)
            found.append((counts, _counts(table)))
        else:
            src = run.source
            for segment in run.segments:
                x, src, one = self._segment(segment, x, src)
                found.append(one)
        if run.perm is not None:
            order = [0, *(p + 1 for p in run.perm)]
            x = x.view(len(x), *self._shape).permute(order).reshape(len(x), -1)
        return x, found

    def _looked_up(self, x: Tensor, table: Table) -> tuple[Tensor, Tensor]:
        run, bits = self._run, moved(self._run.dtype)
        rows = self._way.kept(np.stack(table.rows).view(_BITS[bits.itemsize]))
        channel = self._channel(x) if len(table.rows) > 1 else None
        made, counts = look_up(x.view(torch.uint8), rows, channel)
        return made.view(carrier(run.dtype)), counts

    def _segment(self, segment: Segment, x: Tensor, src: DType) -> tuple[Tensor, DType, tuple[Tensor, Reading]]:
        """One link, what it makes and the dtype of that, and its account."""
        if isinstance(segment, Check):
            low, high = segment.range
            stated = bounds(src, (low - segment.slack, high + segment.slack))
            return x, src, self._told(segment.key(src), src, outside(x, src, *stated), x, detail=False)
        assert isinstance(segment, Rounding)
        dst = segment.dtype
        beyond = None
        if segment.arithmetic:
            x, beyond = self._computed(segment.arithmetic, x, src)
            src = FLOAT64
        made, lost = rounded(x, src, dst, segment.on_overflow, beyond=beyond, detail=self._run.detail)
        return made, dst, self._told(segment.key(src), src, lost, x, detail=self._run.detail)

    def _computed(self, arithmetic: Sequence[Elementwise], x: Tensor, src: DType) -> tuple[Tensor, Tensor]:
        """As ``fuse.segments.computed``: the values, and which of them left the range of float64."""
        before = numbers(x, src).double()
        values: Any = before.clone()
        pick: Callable[[Sequence[float]], Any] = lambda v: float(v[0])  # noqa: E731  # one of three
        axis = self._run.axis
        if axis is not None and x.shape[1] == prod(self._shape):
            values = values.view(len(x), -1, self._shape[axis], prod(self._shape[axis + 1 :]))
            pick = lambda v: float(v[0]) if len(v) == 1 else self._numbers(v)[:, None]  # noqa: E731  # as above
        elif axis is not None:
            channel = self._channel(x)
            pick = lambda v: float(v[0]) if len(v) == 1 else self._numbers(v)[channel]  # noqa: E731  # as above
        for op in arithmetic:
            values = op.compute(values, pick)
        values = values.reshape(x.shape)
        return values, torch.isinf(values) & torch.isfinite(before)

    def _numbers(self, values: Sequence[float]) -> Tensor:
        return self._way.kept(np.asarray(values, np.float64))

    def _channel(self, x: Tensor) -> Tensor:
        """The channel of each element of a row."""
        axis = self._run.axis
        assert axis is not None
        place = torch.arange(self._first, self._first + x.shape[1], device=x.device)
        return (place // prod(self._shape[axis + 1 :]) % self._shape[axis]).to(torch.int32)

    @staticmethod
    def _told(key: CastKey | RangeKey, src: DType, lost: Columns, x: Tensor, *, detail: bool) -> tuple[Tensor, Reading]:
        """The columns as one tensor, to come back in one go, and what becomes of it then."""
        names, count = list(lost), x.shape[1]

        def read(found: Array, accounts: Sequence[Account]) -> None:
            for row, account in zip(found.tolist(), accounts, strict=True):
                account.add(key, _lost(dict(zip(names, row, strict=True)), count, src, detail=detail))

        return torch.stack([column.double() for column in lost.values()], 1), read


_BITS: dict[int, Any] = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def _counts(table: Table) -> Reading:
    def read(found: Array, accounts: Sequence[Account]) -> None:
        for counts, account in zip(found, accounts, strict=True):
            tally = Tally(table)
            tally.add(counts)
            account += tally.account()

    return read


def _lost(told: dict[str, float], count: int, src: DType, *, detail: bool) -> Lost:
    """The account of ``count`` values, of columns by name."""
    number: type[float] = float if src.is_float else int
    counts = {name: int(told.get(name, 0)) for name in _COUNTED}
    lost = Lost(count, **counts)  # type: ignore[arg-type]  # fields of several types, and these are counts
    if told["minimum"] <= told["maximum"]:
        lost.spans(number(told["minimum"]), number(told["maximum"]))
    if lost.overflow and "lowest" in told:
        lost.saw(number(told["lowest"]), number(told["highest"]))
    if detail:
        nan, inf, changed, subnormal = (
            int(told.get(n, 0)) for n in ("source_nan", "source_inf", "changed", "subnormal")
        )
        worst, share = told.get("max_abs_error", 0.0), told.get("max_rel_error", 0.0)
        signal, noise = _squares(told, "signal", "max_abs_source"), _squares(told, "noise", "max_abs_error")
        lost.detail = Detail(nan, inf, changed, subnormal, worst, share, signal, noise)
    return lost


def _squares(told: dict[str, float], name: str, unit: str) -> Fraction:
    """A sum of squares, which came in units of the greatest of them."""
    return Fraction(told.get(name, 0)) * Fraction(told.get(unit, 0)) ** 2
