"""All operations on one block of values: what stands between fused runs, what a block costs, and reading it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tconv.account import Account
from tconv.fuse import Run, compile_run
from tconv.fuse.segments import Segment
from tconv.ops import MoveTo, Op, Whole
from tconv.scratch import buffer
from tconv.tensor import Spec

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.placed.carry import Making
    from tconv.placed.section import Section
    from tconv.tensor import Source

Stages: TypeAlias = "tuple[Run | Whole | Section, ...]"  # what is done to a block, one after the other


@lru_cache(maxsize=1024)
def stages_of(ops: tuple[Op, ...], dtype: DType, rank: int, detail: bool) -> Stages:
    """Runs of elementwise operations and permutations, what stands between them, and what is done on a device.

    Cached, since the thousands of images of one job share one chain.
    """
    stages: list[Run | Whole] = []
    run: list[Op] = []
    where: list[MoveTo] = []

    def close() -> None:
        nonlocal dtype
        stages.extend(compile_run(tuple(run), dtype, rank, detail))
        run[:] = where[-1:]
        dtype = next((s.dtype for s in reversed(stages) if isinstance(s, Run)), dtype)

    for op in ops:
        if isinstance(op, Whole):
            close()
            stages.append(op)
        else:
            run.append(op)
            where += [op] if isinstance(op, MoveTo) else []
    close()
    numbered = _numbered(stages)
    if not where:
        return numbered
    from tconv.placed.section import placed  # which most jobs do without

    return placed(numbered)


def _numbered(stages: list[Run | Whole]) -> tuple[Run | Whole, ...]:
    """The same with equal roundings told apart, so that each has an account of its own."""
    seen = Counter[Segment]()
    made = list[Run | Whole]()
    for stage in stages:
        if isinstance(stage, Run):
            segments = list[Segment]()
            for segment in stage.segments:
                segments.append(segment.numbered(seen[segment]))
                seen[segment] += 1
            stage = replace(stage, segments=tuple(segments))
        made.append(stage)
    return tuple(made)


def below(ops: tuple[Op, ...]) -> tuple[Op, ...] | None:
    """The operations on one slice along axis 0, or None if one of them needs more than a slice."""
    lowered = [op.below() for op in ops]
    return None if any(op is None for op in lowered) else tuple(op for op in lowered if op is not None)


def apply(stages: Stages, x: Array, shape: tuple[int, ...], out: Array, first: int, lost: Account) -> Account:
    """All operations on the flat ``x``, elements [first, first + x.size) of an array of ``shape``, into ``out``. Where
    one of them is not elementwise, ``x`` is all of the array. None is done on a device. ``lost``: before, and then in
    all.
    """
    x, _ = _through(stages, x, shape, out, first, lost)
    if x is not out:
        np.copyto(out, x)
    return lost


def applying(stages: Stages, x: Array, shape: tuple[int, ...], out: Array, first: int, lost: Account) -> Making:
    """The same where a part is done on a device."""
    from tconv.placed.carry import Crossing  # which most jobs do without

    number, section = next((n, s) for n, s in enumerate(stages) if not isinstance(s, (Run, Whole)))
    x, shape = _through(stages[:number], x, shape, None, first, lost)
    made, found = yield Crossing(section, x, shape, first)
    lost += found
    return apply(stages[number + 1 :], made, section.turned(shape), out, first, lost)


def _through(
    stages: Stages, x: Array, shape: tuple[int, ...], out: Array | None, first: int, lost: Account
) -> tuple[Array, tuple[int, ...]]:
    """What becomes of ``x``, in ``out`` if it is given and the last stage asks for memory; and its shape."""
    for n, stage in enumerate(stages, 1):
        into = out if n == len(stages) else None
        if not isinstance(stage, Run):
            assert isinstance(stage, Whole)
            whole = np.ascontiguousarray(stage.apply(x.reshape(shape)))
            x, shape = whole.reshape(-1), whole.shape
        elif into is None and stage.inert:
            lost += stage.check(x)
        else:
            into = np.empty(x.size, stage.dtype.numpy) if into is None else into
            lost += stage(x, shape, into, first)
            x, shape = into, stage.turned(shape)
    return x, shape


def read_block(source: Source, lo: int, hi: int, out: Array | None = None) -> Array:
    """Elements [lo, hi), flat, in ``out`` or in memory that the next block uses again."""
    out = buffer("source", source.dtype.numpy, hi - lo) if out is None else out
    got = source.read(lo, hi, out)
    if got is not out:
        np.copyto(out, got.reshape(-1))
    return out


def block_cost(stages: Stages, dtype: DType, shape: tuple[int, ...]) -> int:
    """Bytes of memory that making a block of ``shape``, read as ``dtype``, takes at its worst: what goes into and
    what comes out of the hungriest stage, beside the block as it was read.
    """
    spec = Spec("", dtype, shape)
    read = before = worst = spec.nbytes
    for stage in stages:
        extra = stage.scratch(spec)
        spec = stage.spec(spec)
        after = spec.nbytes
        worst = max(worst, before + after + extra)
        before = after
    return read + worst
