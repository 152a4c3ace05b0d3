"""The text of a plan, as ``--dry-run`` prints it: every tensor, what is done to it, the sizes, the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.beside import MADE
from tconv.evaluate import shrink_of
from tconv.explain import leaves
from tconv.memory import ArraySource
from tconv.parts import Parts
from tconv.selection import first_few
from tconv.sizes import human
from tconv.table import table

if TYPE_CHECKING:
    from tconv import explain
    from tconv.fold import Planned
    from tconv.planner import Plan
    from tconv.sharding import Companion
    from tconv.tensor import Spec, Tensor

_CHAINS = 5  # ways of making tensors that are spelled out


def lines(plan: Plan) -> Iterator[str]:
    yield f"steps: {' | '.join(map(str, plan.steps)) or 'none, a change of format'}"
    yield from _batches(plan)
    for file in plan.files:
        yield ""
        most = "at most " if file.writer.compresses else ""
        yield f"{_shown(file)} ({file.target.format.title}, {most}{human(file.writer.size)})"
        yield from (f"  {line}" for line in _tensors(file))
    yield from _companions(plan)
    yield ""
    yield from _how(plan)
    most = "at most " if any(file.writer.compresses for file in plan.files) else ""
    exact = f" ({plan.size:,} bytes)" if plan.size >= 1000 and not most else ""
    count = len(plan.files) + len(plan.companions)
    yield (
        f"total: {most}{human(plan.size)}{exact} in {count} file{'s' * (count != 1)}, "
        f"peak memory for values about {human(plan.peak_memory)} with {plan.workers} workers"
    )
    if plan.beyond:
        name, nbytes = plan.beyond
        yield f"--max-memory {human(plan.request.max_memory)} cannot be kept: {name} takes {human(nbytes)} at once"


def _batches(plan: Plan) -> Iterator[str]:
    """How many there are, and which are smaller."""
    size = plan.request.batch_size
    if size is not None:
        counts = [(file, file.stream.tensors[0].spec.shape[0]) for file in plan.files]
        smaller = [f"{_shown(file)} has {count}" for file, count in counts if count < size]
        yield f"batches of {size:,}: {', '.join([f'{len(counts):,} in all', *smaller])}"


def _how(plan: Plan) -> Iterator[str]:
    """How it is done: what becomes of a tensor step by step, which steps go in one pass, what is read and moved."""
    from tconv import crossings, explain

    for trace in plan.files[0].traces if len(plan.steps) > 1 else ():
        rows = [[str(step), described(spec)] for step, spec in zip(("as read", *plan.steps), trace, strict=True)]
        yield f"{trace[0].name}, step by step"
        yield from (f"  {line}" for line in list(table(["", ""], rows))[1:])
    chains = explain.chains(plan)
    for passes, count in chains[:_CHAINS]:
        yield f"passes: {' '.join(map(_pass, passes)) or '[as it is]'}{f' ({count:,} tensors)' * (count > 1)}"
    if len(chains) > _CHAINS:
        yield f"… and {len(chains) - _CHAINS} other ways"
    for one in crossings.transfers(plan):
        yield (
            f"{one.device}: {one.tensors:,} tensor{'s' * (one.tensors != 1)}, one transfer each way, "
            f"{human(one.bytes_there)} as {one.there} there and {human(one.bytes_back)} as {one.back} back"
        )
    if rest := crossings.left(plan):
        yield f"on the CPU all the same: {', '.join(f'{step} ({why})' for step, why in rest)}"
    yield from crossings.idle_devices(plan)
    if found := explain.decoders(plan):
        yield f"decoded by {', '.join(f'{name} ({count:,})' for name, count in found)}"
    costs = explain.costs(plan)
    yield f"reads {human(costs.read)}, moves {human(costs.moved)}, writes {human(costs.written)}"


def _pass(one: explain.Pass) -> str:
    from tconv.explain import BY_ITSELF

    steps = " + ".join(one.steps)
    return f"[{steps}]" if one.how == BY_ITSELF else f"[{steps}: {one.how}]"


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
    """A table of the tensors; under one that is a stack, which file each of its slices comes from. Then the lists of
    texts that the format holds.
    """
    rows = [
        [t.spec.name, _before(t), "->", described(t.spec), human(t.spec.nbytes) if file.writer.stored(i) else "shared"]
        for i, t in enumerate(file.stream.tensors)
    ]
    texts = {name: text for name, text in file.stream.extra.texts.items() if name not in file.writer.left_out}
    rows += [[name, "", "->", f"{len(text):,} texts: {first_few(text, 3)}", ""] for name, text in texts.items()]
    header, *body = table(["tensor", "from", "", "to", "bytes"], rows, right=[4])
    yield header
    yield from _with_parts(file.stream.tensors, body)
    yield from body[len(file.stream.tensors) :]


def _with_parts(tensors: Sequence[Tensor], body: Sequence[str]) -> Iterator[str]:
    for tensor, line in zip(tensors, body, strict=False):
        yield line
        if isinstance(tensor.source, Parts):
            parts = [[f"[{n}]", _place(part), _before(part)] for n, part in enumerate(leaves(tensor))]
            yield from (f"    {row}" for row in list(table(["", "", ""], parts))[1:])


def _before(tensor: Tensor) -> str:
    """What a tensor is in its file; a stack is in several, and some are in none."""
    source = tensor.source
    if MADE in tensor.spec.attrs:
        return f"made by {tensor.spec.attrs[MADE]}"
    if isinstance(source, ArraySource):
        return str(source.path)
    if isinstance(source, Parts):
        return f"{len(source.parts):,} stacked"
    shrink = shrink_of(tensor)
    return f"{source.dtype} {shape(source.shape)}" + (f" at 1/{shrink}" if shrink > 1 else "")


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
