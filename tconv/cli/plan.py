"""The words of ``--dry-run``: every tensor, what is done to it, the sizes, the memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.cli.console import human
from tconv.cli.table import table
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.fold import Planned
    from tconv.planner import Plan
    from tconv.sharding import Companion
    from tconv.tensor import Spec, Tensor


def lines(plan: Plan) -> Iterator[str]:
    yield f"steps: {' | '.join(map(str, plan.steps)) or 'none, a change of format'}"
    for file in plan.files:
        yield ""
        yield f"{_shown(file)} ({file.target.format.title}, {human(file.writer.size)})"
        yield from (f"  {line}" for line in _tensors(file))
    yield from _companions(plan)
    yield ""
    exact = f" ({plan.size:,} bytes)" if plan.size >= 1000 else ""
    count = len(plan.files) + len(plan.companions)
    yield (
        f"total: {human(plan.size)}{exact} in {count} file{'s' * (count != 1)}, "
        f"peak memory for values about {human(plan.peak_memory)} with {plan.workers} workers"
    )
    if plan.beyond:
        name, nbytes = plan.beyond
        yield f"--max-memory {human(plan.request.max_memory)} cannot be kept: {name} takes {human(nbytes)} at once"


def _companions(plan: Plan) -> Iterator[str]:
    """What is written beside shards: copies, and indexes."""
    rows = []
    for one in plan.companions:
        what = f"a copy of {one.content}" if isinstance(one.content, Path) else "the index"
        rows.append([_shown(one), what, human(one.size)])
    if rows:
        yield ""
        yield from table(["beside", "", "bytes"], rows, right=[2])


def _shown(file: Planned | Companion) -> str:
    """The path as stdout will say it; in a folder, that of the file below what stdout says."""
    target = file.target
    if Path(target.shown).resolve() != target.root:
        return target.shown
    return str(Path(target.shown) / file.path.relative_to(target.root))


def _tensors(file: Planned) -> Iterator[str]:
    """A table of the tensors; under one that is a stack, which file each of its slices comes from."""
    rows = [
        [t.spec.name, _before(t), "->", described(t.spec), human(t.spec.nbytes) if file.writer.stored(i) else "shared"]
        for i, t in enumerate(file.stream.tensors)
    ]
    header, *body = table(["tensor", "from", "", "to", "bytes"], rows, right=[4])
    yield header
    for tensor, line in zip(file.stream.tensors, body, strict=True):
        yield line
        if isinstance(tensor.source, Parts):
            parts = [[f"[{n}]", _place(part), _before(part)] for n, part in enumerate(tensor.source.parts)]
            yield from (f"    {row}" for row in list(table(["", "", ""], parts))[1:])


def _before(tensor: Tensor) -> str:
    """What a tensor is in its file; a stack is in several."""
    source = tensor.source
    if isinstance(source, Parts):
        return f"{len(source.parts):,} stacked"
    return f"{source.dtype} {shape(source.shape)}"


def _place(part: Tensor) -> str:
    """The file of a part of a stack, and its name in there if it is not called by the file."""
    path, name = str(part.source.path), part.spec.name
    return path if path.endswith(name) or Path(path).stem == name else f"{path}: {name}"


def described(spec: Spec) -> str:
    """``float32 3x224x224 CHW in [0, 1]``; ``float16 or float32 4x4 (decided by scan)``."""
    undecided = spec.attrs.get("undecided")
    text = f"{spec.dtype}{f' or {undecided}' if undecided else ''} {shape(spec.shape)}"
    if spec.axes:
        text += f" {spec.axes}"
    if spec.range:
        lo, hi = spec.range
        text += f" in [{lo:.6g}, {hi:.6g}]"
    return f"{text} (decided by scan)" if undecided else text


def shape(sizes: tuple[int, ...]) -> str:
    """``3x224x224``; a scalar has the shape ``()``."""
    return "x".join(map(str, sizes)) or "()"
