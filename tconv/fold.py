"""From the headers of inputs through every step to planned files: selected, merged, declared, folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tconv import batches, beside, registry, selection, sharding, targets
from tconv.errors import Problems, TconvError, raise_all
from tconv.inputs import Input
from tconv.ops import Elementwise, Op, Promise
from tconv.quant.op import Dequantize
from tconv.request import Progress, Request
from tconv.targets import Target
from tconv.tensor import Extra, Scan, Step, Stream, Tensor, Writer


@dataclass(frozen=True)
class Planned:
    """One file of the plan: where it goes, what it is made of, and the writer that has fixed every offset."""

    path: Path
    target: Target
    stream: Stream
    writer: Writer

    def sources(self) -> Iterator[Path]:
        """The files that it is made of: its inputs, and of a sharded one the shards that its tensors are in."""
        for one in self.target.inputs:
            yield one.path
            if one.format.name == "index":
                shards = (tensor.spec.attrs.get("shard") for tensor in self.stream.tensors)
                yield from (one.path.with_name(shard) for shard in dict.fromkeys(shards) if shard)


def read_all(
    inputs: Sequence[Input], request: Request, progress: Progress
) -> tuple[dict[Path, Stream], list[TconvError]]:
    """The headers of every input, and what is wrong with those that cannot be read."""
    streams: dict[Path, Stream] = {}
    failures: list[TconvError] = []
    progress.begin("reading headers", len(inputs), "files")
    for one in inputs:
        try:
            streams[one.path] = registry.reader(one.format)(one.path, one.name, request.read)
        except TconvError as problem:
            failures.append(problem.at(file=one.path))
        except OSError as problem:
            failures.append(TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path))
        progress.advance(1)
    return streams, failures


def plan_all(
    request: Request,
    chosen: Sequence[Target],
    streams: dict[Path, Stream],
    steps: Sequence[Step],
    scan: Scan | None,
) -> list[Planned]:
    files: list[Planned] = []
    problems = Problems()
    for target in chosen:
        alone = target.inputs[0].path if len(target.inputs) == 1 else ""
        try:
            files += _plan_target(request, target, streams, steps, scan)
        except TconvError as problem:
            problems.add(problem.at(file=alone))
    problems.raise_all()
    return files


def _plan_target(
    request: Request, target: Target, streams: dict[Path, Stream], steps: Sequence[Step], scan: Scan | None
) -> list[Planned]:
    """The stream of one target through every step, and the file (or, split, the files) that it fills."""
    kind = registry.writer(target.format)
    stream = _merge([(i, _select(request, streams[i.path], target)) for i in target.inputs])
    stream = _declared_by(request, stream)
    selection.refuse_doubles(stream)
    stem = target.inputs[0].path.stem if target.split else target.path.stem
    made = _chained(request, [_called(step, stem) for step in steps], stream, scan)
    owners = [target] if request.batch_size is None else batches.numbered(target, made)
    return [
        Planned(path, own, part, kind.planned([t.spec for t in part.tensors], part.extra, request.write))
        for own, whole in zip(owners, made, strict=True)
        for path, part in _parts(request, own, _finished(_rounding(whole, request), own))
    ]


def prepare(request: Request, inputs: Sequence[Input], streams: dict[Path, Stream], steps: Sequence[Step]) -> Stream:
    """The tensors of all inputs together through ``steps``, for who looks at their values and writes none."""
    stream = _declared_by(request, _merge([(one, streams[one.path]) for one in inputs]))
    (made,) = _chained(request, steps, stream, None)
    return _without_idle_promises(made)


def _declared_by(request: Request, stream: Stream) -> Stream:
    """The tensors that were asked for, with what the user says of them."""
    stream = selection.matching(stream, request.only, request.skip)
    raise_all(stream.others, remedy="--skip leaves out what is no tensor" if stream.others else "")
    if not stream.tensors:
        raise TconvError("there is no tensor in it")
    return _declare(replace(stream, extra=replace(stream.extra, whole=request.all, fields=request.fields)), request)


def _finished(stream: Stream, target: Target) -> Stream:
    """What is left to be done when the chain is through."""
    stream = registry.writer(target.format).arranged(selection.unshare(_without_idle_promises(stream)))
    stream = _with_tensors_beside(stream, target)
    selection.refuse_doubles(stream)
    return stream


def _parts(request: Request, target: Target, stream: Stream) -> Iterator[tuple[Path, Stream]]:
    """The files of a target, and the stream that each holds."""
    if target.sharded:
        for name, shard in sharding.divide(stream, target.format, request.shard_size).items():
            yield target.path / name, shard
    elif target.split:
        for tensor in stream.tensors:
            alone = Stream((tensor,), replace(stream.extra, tree=None), stream.notes)
            yield targets.below(target, tensor.spec.name), alone
    else:
        yield target.path, stream


def _called(step: Step, name: str) -> Step:
    """A stack that has no name of its own is called like the file it goes to."""
    if getattr(step, "into", None) != "stack":
        return step
    changed: Step = replace(step, into=name)  # type: ignore[type-var]  # every step is a dataclass
    return changed


def _chained(request: Request, steps: Sequence[Step], stream: Stream, scan: Scan | None) -> list[Stream]:
    """The stream through every step: one, or of those batches into which the first step that gathers divides it."""
    streams, size = [stream], request.batch_size
    for step in steps:
        if step.gathers and size is not None:
            streams, size = batches.cut(streams[0], size, drop_last=request.drop_last), None
        streams = _apply(step, streams, scan)
    return streams


def _apply(step: Step, streams: Sequence[Stream], scan: Scan | None) -> list[Stream]:
    """One step on each of several streams; what depends on values is settled for all of them together."""
    made, problems, notes = list[Stream](), Problems(), tuple[str, ...]()
    try:
        if step.needs_scan and scan is not None:
            step, notes = step.fit(_together(streams), scan)
    except TconvError as problem:
        raise problem.at(step=str(step)) from None
    for stream in streams:
        try:
            made.append(step.apply(stream))
        except TconvError as problem:
            problems.add(problem.at(step=str(step)))
    problems.raise_all()
    return [made[0].with_tensors(made[0].tensors, *notes), *made[1:]]


def _together(streams: Sequence[Stream]) -> Stream:
    return streams[0].with_tensors([tensor for stream in streams for tensor in stream.tensors])


def _select(request: Request, stream: Stream, target: Target) -> Stream:
    """What of one input goes on."""
    if request.select:
        stream = selection.select(stream, request.select)
    flat = target.split or target.sharded or not registry.writer(target.format).holds_tree
    if flat and not request.all and stream.extra.kind == "weights":
        stream = selection.only_model(stream)
    return selection.strip_prefixes(stream, request.strip_prefix)


def _merge(parts: Sequence[tuple[Input, Stream]]) -> Stream:
    """Several inputs for one file become one stream; their tensors are kept, their containers are not."""
    if len(parts) == 1:
        return parts[0][1]
    tensors = tuple(t for _, stream in parts for t in stream.tensors)
    notes = tuple(n for _, stream in parts for n in stream.notes)
    others = tuple(o for _, stream in parts for o in stream.others)
    kinds = {stream.extra.kind: one.path for one, stream in parts}
    if len(kinds) > 1:
        raise TconvError(
            f"{kinds['weights']} holds weights and {kinds['data']} data, of which different things are converted",
            remedy="convert each into a file of its own",
        )
    return Stream(tensors, Extra(parts[0][1].extra.kind), notes, others)


def _declare(stream: Stream, request: Request) -> Stream:
    """What the user says of the values that no header told: their range, and the axes of arrays."""
    if request.range is None and request.input_layout is None:
        return stream
    return stream.with_tensors([_declared(t, request) for t in stream.tensors])


def _declared(tensor: Tensor, request: Request) -> Tensor:
    spec, layout = tensor.spec, (request.input_layout or "").upper()
    if layout and len(layout) != len(spec.shape):
        raise TconvError(
            f"--input-layout {layout} names {len(layout)} axes, but the shape is {spec.shape}",
            tensor=spec.name,
            file=tensor.source.path,
        )
    tensor = replace(tensor, spec=replace(spec, axes=layout or spec.axes))
    if request.range is None or spec.dtype.kind == "complex":
        return tensor
    return tensor.then(Promise(range=request.range))


def _rounding(stream: Stream, request: Request) -> Stream:
    """What becomes of results that overflow where no cast says it: what the user says of all."""
    policy = request.on_overflow
    if policy in (None, "keep"):
        return stream

    def told(op: Op) -> Op:
        if isinstance(op, Elementwise | Dequantize) and (policy != "inf" or op.dtype.has_inf):
            return replace(op, on_overflow=str(policy))
        return op

    return stream.with_tensors([replace(t, ops=tuple(map(told, t.ops))) for t in stream.tensors])


def _without_idle_promises(stream: Stream) -> Stream:
    """A range was stated for what steps work on: of labels that they pass over nothing was said."""
    idle = [all(isinstance(op, Promise) for op in t.ops) for t in stream.tensors]
    if all(idle):
        return stream
    plain = [
        replace(t, ops=(), spec=replace(t.spec, range=None)) if alone and t.ops else t
        for t, alone in zip(stream.tensors, idle, strict=True)
    ]
    return stream.with_tensors(plain)


def _with_tensors_beside(stream: Stream, target: Target) -> Stream:
    """What steps tell of pictures goes with them, where there is a place for it."""
    if target.split or not registry.writer(target.format).single:
        return beside.with_tensors_beside(stream)
    suffix = target.format.suffixes[0]
    notes = [
        f"{name}: left out, as {suffix} holds one array; .npz or .safetensors hold both"
        for name in beside.names_beside(stream)
    ]
    return stream.with_tensors(stream.tensors, *notes)


def told(file: Planned) -> list[str]:
    """What the user should hear of a file: what it cannot hold, and what its writer says."""
    notes = list(file.writer.notes)
    if not file.writer.left_out:
        return notes
    return [*notes, f"{file.target.shown}: left out, as the format cannot hold it: {', '.join(file.writer.left_out)}"]


def names_of(request: Request, chosen: Sequence[Target], streams: dict[Path, Stream]) -> list[str]:
    """What everything is called that --only and --skip choose from."""
    names: list[str] = []
    for target in chosen:
        for one in target.inputs:
            stream = _select(request, streams[one.path], target)
            names += [t.spec.name for t in stream.tensors] + [o.tensor for o in stream.others]
    return names
