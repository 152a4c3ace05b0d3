"""Which part of a chain is done on the device that was asked for: one part, so that values cross the bus once each way.

Done there is what comes out as on the CPU: casts bit for bit, arithmetic as far as ``portable`` operations on float64
go; and what starts from bytes is a table, whatever is in it. Bytes that cross cost more than most work, so a cast to
something narrower that comes first, and one to something wider that comes last, are left to the CPU: integers go there,
and floats are made there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv.account import Account
from tconv.devices.pairs import computes, exact
from tconv.fuse import Run
from tconv.fuse.segments import Check, Rounding
from tconv.ops import Whole

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.fuse.segments import Segment
    from tconv.ops import Array
    from tconv.tensor import Spec

NO_FLOAT64 = ("mps",)
_TABLED = ("uint", "int", "bool")


@dataclass(frozen=True)
class Section:
    """Runs that are done on ``device``, one after the other, in between one transfer each way."""

    device: str
    runs: tuple[Run, ...]

    @property
    def source(self) -> DType:
        return self.runs[0].source

    @property
    def dtype(self) -> DType:
        return self.runs[-1].dtype

    @property
    def perm(self) -> tuple[int, ...] | None:
        """How the axes are reordered in all."""
        perms = [run.perm for run in self.runs if run.perm is not None]
        return reduce(lambda before, perm: tuple(before[p] for p in perm), perms) if perms else None

    def turned(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what it makes of an array of ``shape``."""
        return reduce(lambda before, run: run.turned(before), self.runs, shape)

    def spec(self, spec: Spec) -> Spec:
        """Dtype and shape of what comes out when ``spec`` goes in."""
        return reduce(lambda before, run: run.spec(before), self.runs, spec)

    def scratch(self, spec: Spec) -> int:
        """Bytes needed besides input and result: what is sent, and what comes back."""
        return spec.nbytes + self.spec(spec).nbytes

    def holds(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be done there for an array of ``shape``: bytes of very many channels have no table."""
        for run in self.runs:
            links = [_Link(run, n) for n in range(len(run.segments))]
            bound = self.device.startswith(NO_FLOAT64) or any(map(_hindrance, links))
            if links and bound and run.table(shape) is None:
                return False
            shape = run.turned(shape)
        return True

    def on_cpu(self, x: Array, shape: tuple[int, ...], first: int) -> tuple[Array, Account]:
        """What the runs make of the flat ``x``, elements [first, …) of an array of ``shape``, and the account of it."""
        lost = Account()
        for run in self.runs:
            made = np.empty(x.size, run.dtype.numpy)
            lost += run(x, shape, made, first)
            x, shape = made, run.turned(shape)
        return x, lost


class _Link(NamedTuple):
    """A segment of a run, by its number, or, with the number after the last, its reordering; or a whole stage."""

    stage: Run | Whole
    number: int = 0

    @property
    def segment(self) -> Segment | None:
        run = self.stage
        return run.segments[self.number] if isinstance(run, Run) and self.number < len(run.segments) else None

    @property
    def wanted(self) -> str:
        return self.stage.wanted[self.number] if isinstance(self.stage, Run) else ""

    @property
    def source(self) -> DType:
        """What goes into a link of a run."""
        assert isinstance(self.stage, Run)
        return self.stage.segments[self.number - 1].dtype if self.number else self.stage.source


def placed(stages: Sequence[Run | Whole]) -> tuple[Run | Whole | Section, ...]:
    """The same with a section in place of what is done on a device, if there is anything."""
    links = list(_links(stages))
    lo, hi = _longest([_home(link) for link in links])
    if all(isinstance(link.segment, Check) for link in links[lo:hi]):  # or nothing at all
        return tuple(stages)
    device = links[lo].wanted
    lo += _narrower(links[lo:hi])
    inner, after = _widened(links[lo:hi])
    runs = tuple(run for run in _joined(inner) if isinstance(run, Run))
    if runs[0].source != links[lo].source:  # it begins with a reordering from behind casts that are done afterwards
        runs = (replace(runs[0], source=links[lo].source), *runs[1:])
    return (*_joined(links[:lo]), Section(device, runs), *_joined([*after, *links[hi:]]))


def why_not(stage: Run | Whole, device: str) -> str:
    """Why what was asked for is not done on the device, or nothing if it could be."""
    if isinstance(stage, Whole):
        return "it needs the array as a whole"
    if _is_tabled(stage):
        return ""
    if device.startswith(NO_FLOAT64) and stage.segments:
        return "there is no float64 there"
    links = (_Link(stage, n) for n in range(len(stage.segments)))
    return next(filter(None, (_hindrance(link) for link in links)), "")


def _home(link: _Link) -> str:
    """The device on which it is to be done and can be."""
    stage = link.stage
    if not link.wanted or not isinstance(stage, Run):
        return ""
    if _is_tabled(stage) and set(stage.wanted[: len(stage.segments)]) == {link.wanted}:
        return link.wanted
    if link.segment is None:
        return link.wanted if link.source.kind != "complex" and link.source.bits >= 8 else ""
    return "" if link.wanted.startswith(NO_FLOAT64) or _hindrance(link) else link.wanted


def _is_tabled(run: Run) -> bool:
    """Whether the values are bytes for which a table has everything."""
    return bool(run.segments) and run.source.bits == 8 and run.source.kind in _TABLED and run.group is None


def _hindrance(link: _Link) -> str:
    """Why a segment is not done in arithmetic on a device."""
    segment = link.segment
    if isinstance(segment, Check):
        return "" if computes(link.source) else f"{link.source} is not computed with there"
    if not isinstance(segment, Rounding):
        return "quantization is done on the CPU"
    foreign = [op.step for op in segment.arithmetic if not op.portable]
    if foreign:
        return f"{foreign[0]} is NumPy's arithmetic"
    if not exact(link.source, segment.dtype):
        return f"{link.source} to {segment.dtype} is not exact there"
    return ""


def _links(stages: Sequence[Run | Whole]) -> Iterator[_Link]:
    for stage in stages:
        count = len(stage.segments) + (stage.perm is not None) if isinstance(stage, Run) else 1
        yield from (_Link(stage, n) for n in range(count))


def _longest(homes: Sequence[str]) -> tuple[int, int]:
    """The longest stretch of one device, of several equally long ones the last; empty if there is none."""
    best, lo = (0, 0), 0
    for n in range(1, len(homes) + 1):
        if n == len(homes) or homes[n] != homes[lo]:
            if homes[lo] and n - lo >= best[1] - best[0]:
                best = lo, n
            lo = n
    return best


def _plain(link: _Link) -> Rounding | None:
    """A cast without arithmetic."""
    segment = link.segment
    return segment if isinstance(segment, Rounding) and not segment.arithmetic else None


def _narrower(links: Sequence[_Link]) -> int:
    """How many links from the beginning on are better done before the transfer; one at least is left."""
    best, fewest = 0, links[0].source.itemsize
    for n, link in enumerate(links[:-1], 1):
        if _plain(link) is None and not isinstance(link.segment, Check):
            break
        if (segment := link.segment) is not None and segment.dtype.itemsize < fewest:
            best, fewest = n, segment.dtype.itemsize
    return best


def _widened(links: Sequence[_Link]) -> tuple[list[_Link], list[_Link]]:
    """What is done there, and the casts at the end that are better done after the transfer. A reordering does not mind
    which of the two comes first.
    """
    turn = [links[-1]] if links[-1].segment is None else []
    body = list(links[: len(links) - len(turn)])
    least = 0 if turn else 1
    after: list[_Link] = []
    while len(body) > least and (cast := _plain(body[-1])) and cast.dtype.itemsize > body[-1].source.itemsize:
        after.insert(0, body.pop())
    return [*body, *turn], after


def _joined(links: Sequence[_Link]) -> list[Run | Whole]:
    """Links that follow each other in one run as one run again."""
    made: list[Run | Whole] = []
    before: _Link | None = None
    dtype: DType | None = None
    for link in links:
        if not isinstance(link.stage, Run):
            made.append(link.stage)
            before, dtype = None, None
            continue
        run = made[-1] if made else None
        if not isinstance(run, Run) or before is None or before.stage is not link.stage or run.perm is not None:
            # Of a reordering that casts were taken from the front of, the run no longer tells the dtype.
            source = dtype if dtype is not None and link.segment is None else link.source
            run = replace(link.stage, source=source, segments=(), perm=None, wanted=())
            made.append(run)
        made[-1] = run = _longer(run, link)
        before, dtype = link, run.dtype
    return made


def _longer(run: Run, link: _Link) -> Run:
    wanted = (*run.wanted, link.wanted)
    if (segment := link.segment) is None:
        assert isinstance(link.stage, Run)
        return replace(run, perm=link.stage.perm, wanted=wanted)
    return replace(run, segments=(*run.segments, segment), wanted=wanted)
