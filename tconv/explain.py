"""How a plan is carried out: which steps go in one pass, which library decodes, how many bytes are read and moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.blocks import Stages, below, stages_of
from tconv.fuse import Run
from tconv.fuse.segments import Check
from tconv.ops import Op, Permute, Promise, Whole, place
from tconv.parts import Parts
from tconv.placed.section import Section
from tconv.tensor import Tensor

if TYPE_CHECKING:
    from tconv.planner import Plan
    from tconv.tensor import Spec

BY_ITSELF, ONE_PASS, LOOKED_AT, MOVED = "by itself", "one pass", "looked at as it stands", "as it is moved"


@dataclass(frozen=True)
class Pass:
    """One go through the values: the steps that are done in it, and how."""

    steps: tuple[str, ...]
    how: str


@dataclass(frozen=True)
class Costs:
    """Bytes: ``read`` from files, ``moved`` (what is decoded, and what each pass makes), ``written``."""

    read: int
    moved: int
    written: int


def passes(tensor: Tensor) -> tuple[Pass, ...]:
    """The passes through the values of a tensor; of a stack, those through the values of its first part."""
    if not isinstance(tensor.source, Parts):
        return tuple(_passes(tensor))
    of_part = passes(next(_lowered(tensor)))
    joined = Pass(("stack",), "each part at its offset")
    return (*of_part, joined) if below(tensor.ops) is not None else (*of_part, joined, *_passes(tensor))


def chains(plan: Plan) -> list[tuple[tuple[Pass, ...], int]]:
    """The different ways in which tensors are made, each with how many are made so; most first."""
    return Counter(map(passes, stored(plan))).most_common()


def decoders(plan: Plan) -> list[tuple[str, int]]:
    """The libraries that decode, each with for how many tensors; bytes that are read as they are need none."""
    names = (getattr(leaf.source, "decoder", "") for tensor in stored(plan) for leaf in leaves(tensor))
    return Counter(filter(None, names)).most_common()


def costs(plan: Plan) -> Costs:
    """What of files is read, whole if it has to be decoded; and what goes through memory."""
    read: dict[Path, int] = {}
    moved = 0
    for tensor in stored(plan):
        for leaf in leaves(tensor):
            size = leaf.source.dtype.nbytes(prod(leaf.source.shape))
            read[leaf.source.path] = read.get(leaf.source.path, 0) + size
            moved += size + _made(leaf)
        if isinstance(tensor.source, Parts) and below(tensor.ops) is None:
            moved += _made(tensor)
    return Costs(sum(min(size, path.stat().st_size) for path, size in read.items()), moved, plan.size)


def stages_for(leaf: Tensor) -> Stages:
    """What is done to a tensor that is no stack, one after the other."""
    return stages_of(leaf.ops, leaf.source.dtype, len(leaf.source.shape), False)


def stored(plan: Plan) -> Iterator[Tensor]:
    """The tensors that have bytes of their own to write."""
    for file in plan.files:
        yield from (t for i, t in enumerate(file.stream.tensors) if file.writer.stored(i))


def leaves(tensor: Tensor) -> Iterator[Tensor]:
    """The tensor itself, or of a stack its parts, with what is done to the stack done to each."""
    if not isinstance(tensor.source, Parts):
        yield tensor
        return
    for part in _lowered(tensor):
        yield from leaves(part)


def _lowered(stack: Tensor) -> Iterator[Tensor]:
    assert isinstance(stack.source, Parts)
    ops = below(stack.ops) or ()
    for part in stack.source.parts:
        yield reduce(Tensor.then, ops, part)


def _groups(tensor: Tensor) -> Iterator[tuple[Spec, tuple[Op, ...], Spec]]:
    """The operations that are done in one go, and the specs before and after."""
    spec = replace(tensor.spec, dtype=tensor.source.dtype, shape=tensor.source.shape, axes=None)
    for _, found in groupby(enumerate(tensor.ops), key=lambda item: item[0] if isinstance(item[1], Whole) else -1):
        ops = tuple(op for _, op in found)
        after = reduce(lambda before, op: op.spec(before), ops, spec)
        yield spec, ops, after
        spec = after


def _made(tensor: Tensor) -> int:
    """Bytes that the passes make."""
    return sum(after.nbytes for _, _, after in _groups(tensor))


def steps_of(run: Run, ops: tuple[Op, ...]) -> tuple[str, ...]:
    """The steps that a run does."""
    names: list[str] = []
    for segment in run.segments:
        names += [op.step for op in getattr(segment, "arithmetic", ())]
        names.append("--range" if isinstance(segment, Check) else segment.key(run.source).step)
    if run.perm is not None:
        names += [op.step for op in ops if isinstance(op, Permute)]
    return tuple(dict.fromkeys(names))


def _placed_passes(tensor: Tensor) -> Iterator[Pass]:
    """Of a tensor of which something is to be done on a device."""
    shape = tensor.source.shape
    for stage in stages_for(tensor):
        if isinstance(stage, Whole):
            yield Pass((stage.step,), BY_ITSELF)
            shape = stage.spec(replace(tensor.spec, shape=shape, axes=None)).shape
            continue
        runs = stage.runs if isinstance(stage, Section) else (stage,)
        steps = tuple(dict.fromkeys(step for run in runs for step in steps_of(run, tensor.ops)))
        how = _of_run(runs[0], shape) if len(runs) == 1 else f"{len(runs)} passes"
        yield Pass(steps, f"{how} on {stage.device}" if isinstance(stage, Section) else how)
        shape = stage.turned(shape)


def _passes(tensor: Tensor) -> Iterator[Pass]:
    if place(tensor.ops) is not None:
        yield from _placed_passes(tensor)
        return
    for before, ops, _ in _groups(tensor):
        steps = tuple(dict.fromkeys("--range" if isinstance(op, Promise) else op.step for op in ops))
        yield Pass(steps, BY_ITSELF if isinstance(ops[0], Whole) else _how(before, ops))


def _how(before: Spec, ops: tuple[Op, ...]) -> str:
    """How a run of elementwise operations and permutations is done."""
    runs = [stage for stage in stages_of(ops, before.dtype, len(before.shape), False) if isinstance(stage, Run)]
    if len(runs) != 1:
        return f"{len(runs)} passes"
    return _of_run(runs[0], before.shape)


def _of_run(run: Run, shape: tuple[int, ...]) -> str:
    if rows := run.rows(shape):
        return "a table of 256 entries" + " a channel" * (rows > 1)
    return LOOKED_AT if run.inert else ONE_PASS if run.segments else MOVED
