"""The words of ``--dry-run``: every tensor, what is done to it, the sizes, the memory."""

from __future__ import annotations

from collections.abc import Iterator

from tconv.cli.console import human
from tconv.cli.table import table
from tconv.planner import Plan
from tconv.tensor import Spec


def lines(plan: Plan) -> Iterator[str]:
    yield f"steps: {' | '.join(map(str, plan.steps)) or 'none, a change of format'}"
    for file in plan.files:
        yield ""
        yield f"{file.path} ({file.target.format.title}, {human(file.writer.size)})"
        rows = []
        for tensor in file.stream.tensors:
            source = tensor.source
            before = f"{source.dtype} {shape(source.shape)}"
            rows.append([tensor.spec.name, before, "->", described(tensor.spec), human(tensor.spec.nbytes)])
        yield from (f"  {line}" for line in table(["tensor", "from", "", "to", "bytes"], rows, right=[4]))
    yield ""
    count = len(plan.files)
    yield (
        f"total: {human(plan.size)} ({plan.size:,} bytes) in {count} file{'s' * (count != 1)}, "
        f"peak memory for values about {human(plan.peak_memory)} with {plan.workers} workers"
    )


def described(spec: Spec) -> str:
    """``float32 3x224x224 CHW in [0, 1]``."""
    text = f"{spec.dtype} {shape(spec.shape)}"
    if spec.axes:
        text += f" {spec.axes}"
    if spec.range:
        lo, hi = spec.range
        text += f" in [{lo:.6g}, {hi:.6g}]"
    return text


def shape(sizes: tuple[int, ...]) -> str:
    """``3x224x224``; a scalar has the shape ``()``."""
    return "x".join(map(str, sizes)) or "()"
