"""What of a plan is done on a device: what crosses the bus for it, and what stays on the CPU all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tconv.explain import leaves, stages_for, steps_of, stored
from tconv.fuse import Run
from tconv.ops import MoveTo, Whole
from tconv.placed.section import Section, why_not

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.planner import Plan
    from tconv.tensor import Tensor


@dataclass(frozen=True)
class Transfer:
    """What goes to a device and comes back, ``there`` and ``back`` each as a dtype, for so many tensors and bytes."""

    device: str
    there: DType
    back: DType
    tensors: int
    bytes_there: int
    bytes_back: int


def transfers(plan: Plan) -> list[Transfer]:
    """What crosses the bus, by devices and dtypes."""
    found: dict[tuple[str, DType, DType], list[int]] = {}
    for leaf in _placed(plan):
        for stage in stages_for(leaf):
            if isinstance(stage, Section):
                key = (stage.device, stage.source, stage.dtype)
                found.setdefault(key, []).append(leaf.spec.size)
    return [
        Transfer(*key, len(sizes), key[1].nbytes(sum(sizes)), key[2].nbytes(sum(sizes))) for key, sizes in found.items()
    ]


def left(plan: Plan) -> list[tuple[str, str]]:
    """The steps that are done on the CPU although a device was asked for, each with why."""
    return list(dict.fromkeys(one for leaf in _placed(plan) for one in _left(leaf)))


def idle_devices(plan: Plan) -> list[str]:
    """What the user should hear if nothing is done on a device that was asked for."""
    moves = (op.device for leaf in _placed(plan) for op in leaf.ops if isinstance(op, MoveTo))
    device = next((device for device in moves if device != "cpu"), "")
    if not device or transfers(plan):
        return []
    why = "; ".join(f"{step} ({reason})" for step, reason in left(plan)) or "there is nothing to do"
    return [f"nothing is done on {device}: {why}"]


def _placed(plan: Plan) -> Iterator[Tensor]:
    for tensor in stored(plan):
        yield from (leaf for leaf in leaves(tensor) if any(isinstance(op, MoveTo) for op in leaf.ops))


def _left(leaf: Tensor) -> Iterator[tuple[str, str]]:
    device = ""
    for op in leaf.ops:
        device = (op.device if op.device != "cpu" else "") if isinstance(op, MoveTo) else device
        if device and isinstance(op, Whole):
            yield op.step, why_not(op, device)
    stages = stages_for(leaf)
    for n, stage in enumerate(stages):
        device = next(filter(None, stage.wanted), "") if isinstance(stage, Run) else ""
        if device and isinstance(stage, Run):
            beside = any(isinstance(other, Section) for other in stages[max(n - 1, 0) : n + 2])
            why = "fewer bytes cross so" if beside else "one part of a chain goes there"
            yield " + ".join(steps_of(stage, leaf.ops)), why_not(stage, device) or why
