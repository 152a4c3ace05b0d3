"""From operations to runs: as few as possible, each with its permutation at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tconv.fuse.linear import FLOAT32, Dequantizing, Quantizing
from tconv.fuse.run import Run
from tconv.fuse.segments import Check, Rounding, Segment
from tconv.ops import CastTo, Elementwise, MoveTo, Op, Permute, Promise
from tconv.quant.op import Dequantize, Linear, Quantize

if TYPE_CHECKING:
    from tconv.dtypes import DType


def compile_run(ops: tuple[Op, ...], source: DType, rank: int, detail: bool = False) -> list[Run]:
    """Elementwise operations and permutations as few runs as possible: one, unless numbers vary along several axes.

    An elementwise operation does the same before a permutation as after it, with its axis renamed: so within a run
    all permutations move to the end.
    """
    runs: list[Run] = []
    segments: list[Segment] = []
    wanted: list[str] = []
    pending: list[Elementwise] = []
    device = asked = turning = ""  # where what comes next, what is pending, and the reordering, is to be done
    axis: int | None = None
    same = tuple(range(rank))
    perm = same
    src = source

    def add(segment: Segment) -> None:
        nonlocal asked
        segments.append(segment)
        wanted.append(asked)
        asked = ""

    def round_to(dtype: DType, on_overflow: str, step: str) -> None:
        add(Rounding(tuple(pending), dtype, on_overflow, step))
        pending.clear()

    def settle() -> None:
        """What no cast follows is rounded to the dtype of its last operation."""
        if pending:
            round_to(pending[-1].dtype, pending[-1].on_overflow, pending[-1].step)

    def close(group: int | None = None) -> None:
        nonlocal axis, perm, src, turning
        settle()
        order = perm if perm != same else None
        if segments or order:
            runs.append(Run(src, tuple(segments), axis, order, detail, group, (*wanted, turning)))
            src = runs[-1].dtype
        segments.clear()
        wanted.clear()
        axis, perm, turning = None, same, ""

    def along(where: int | None) -> int | None:
        """The axis in the layout of the input; numbers of one run vary along one axis only."""
        nonlocal axis
        moved = None if where is None else perm[where]
        if moved is not None and axis is not None and moved != axis:
            close()
            moved = where
        axis = moved if axis is None else axis
        return moved

    def link(op: Linear) -> None:
        nonlocal asked
        if isinstance(op, Quantize):
            if pending:
                round_to(FLOAT32, pending[-1].on_overflow, pending[-1].step)
            asked = device
            add(Quantizing(op))
        elif isinstance(op, Dequantize):
            settle()
            asked = device
            add(Dequantizing(op))

    for op in ops:
        if isinstance(op, MoveTo):
            device = "" if op.device == "cpu" else op.device
        elif isinstance(op, Permute):
            perm, turning = tuple(perm[p] for p in op.perm), device or turning
        elif isinstance(op, CastTo):
            asked = device or asked
            round_to(op.dtype, op.on_overflow, op.step)
        elif isinstance(op, Promise):
            settle()
            asked = device
            add(Check(op.range, segments[-1].dtype if segments else src, op.slack, op.step, op.by_file))
        elif isinstance(op, Elementwise):
            moved = along(op.axis)
            pending.append(replace(op, axis=moved))
            asked = device or asked
        elif isinstance(op, Linear):
            if op.group is not None and (perm != same or axis is not None):
                close()
            moved = 0 if op.group is not None else along(op.axis)
            link(replace(op, axis=moved))
            if op.group is not None:
                axis = moved
                close(op.group)
        else:
            raise TypeError(f"{op} is not elementwise")
    close()
    return runs
