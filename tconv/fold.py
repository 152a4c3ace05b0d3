"""The streams of inputs through every step to planned files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tconv import batches, beside, intake, registry, selection, sharding, targets, tying, walk
from tconv.errors import Problems, TconvError, UsageError, raise_all
from tconv.inputs import ROWS, Input
from tconv.labels import Labelling
from tconv.memory import ArraySource
from tconv.ops import Elementwise, MoveTo, Op, Promise, is_stated, place
from tconv.quant.op import Dequantize
from tconv.request import Request
from tconv.step import Scan, Step
from tconv.targets import Target
from tconv.tensor import Spec, Stream, Tensor
from tconv.writer import Writer


@dataclass(frozen=True)
class Planned:
    """One file of the plan: where it goes, what it is made of, and the writer that has fixed every offset.

    ``traces``: of some tensors, each of another dtype, the specs as read and after every step.
    """

    path: Path
    target: Target
    stream: Stream
    writer: Writer
    traces: tuple[tuple[Spec, ...], ...] = ()

    def sources(self) -> Iterator[Path]:
        """The files that it is made of: its inputs, the shards that its tensors are in, the file of its labels."""
        for one in self.target.inputs:
            yield one.path
            if one.format.name == "index":
                shards = (tensor.spec.attrs.get("shard") for tensor in self.stream.tensors)
                yield from (one.path.with_name(shard) for shard in dict.fromkeys(shards) if shard)
        made_of = [t.source.path for t in self.stream.tensors if isinstance(t.source, ArraySource)]
        yield from (path for path in made_of if path.is_file())


def plan_all(
    request: Request,
    chosen: Sequence[Target],
    streams: dict[Path, Stream],
    steps: Sequence[Step],
    scan: Scan | None,
    labelling: Labelling | None,
    *,
    blame: bool,
) -> tuple[list[Planned], dict[Path, TconvError]]:
    """The files of all targets, and, if there is to be ``blame``, the inputs without which the others could be made;
    else nobody plans again, and ``streams`` are taken out as they are used, for they take as much memory as the plan.

    Raises ``TconvError`` for everything else that is refused, all of it together. A target of which the patterns leave
    nothing is left out, if any other is there.
    """
    files: list[Planned] = []
    problems = Problems()
    refused: dict[Path, TconvError] = {}
    empty: list[TconvError] = []
    take = streams.__getitem__ if blame else partial(_taken_out, streams)
    for target in chosen:
        alone = target.inputs[0].path if len(target.inputs) == 1 else ""
        try:
            files += _plan_target(request, target, take, steps, scan, labelling)
        except selection.NothingLeft as nothing:
            if target.format.group == "image" and any(one.format.group != "image" for one in target.inputs):
                nothing.remedy += f"; {ROWS}"
            empty.append(nothing.at(file=alone))
        except TconvError as problem:
            problem.at(file=alone)
            if blame and (blamed := _blamed(problem, target)):
                refused |= blamed
            else:
                problems.add(problem)
    problems.raise_all()
    raise_all(empty if not (files or refused) else [])
    return files, refused


def _taken_out(streams: dict[Path, Stream], path: Path) -> Stream:
    stream = streams.pop(path)
    if not streams:
        streams.clear()  # gives back the memory, too
    return stream


def _blamed(problem: TconvError, target: Target) -> dict[Path, TconvError]:
    """The inputs without which the target could be made; none if it is nobody's fault, or that of the command.

    Pictures of unequal shapes, say, do not go into one array: no one of them is bad for that.
    """
    each = problem.each()
    if any(isinstance(one, UsageError) for one in each):
        return {}
    if len(target.inputs) == 1:
        return {target.inputs[0].path: problem}
    inputs = {one.path for one in target.inputs}
    if not all(one.by_itself and Path(one.file) in inputs for one in each):
        return {}
    return {Path(one.file): one for one in reversed(each)}


def _plan_target(
    request: Request,
    target: Target,
    take: Callable[[Path], Stream],
    steps: Sequence[Step],
    scan: Scan | None,
    labelling: Labelling | None,
) -> list[Planned]:
    """The stream of one target through every step, and the file (or, split, the files) that it fills.

    Labels come after the steps, which never see them, and of each file by what is in it.
    """
    kind = registry.writer(target.format)
    stem = target.inputs[0].path.stem if target.split else target.path.stem
    called, traces = [walk.called(step, stem) for step in steps], walk.Traces()
    made = walk.chained(request, called, _merged(request, target, take), scan, traces.follow)
    owners = [target] if request.batch_size is None else batches.numbered(target, made)
    return [
        Planned(path, own, part, _writer(kind, part, request), traces.found)
        for own, whole in zip(owners, made, strict=True)
        for path, part in _labelled(
            labelling,
            _parts(request, own, _finished(_rounding(_tagged(whole, request, own), request), own, tie=request.tie)),
        )
    ]


def _writer(kind: type[Writer], stream: Stream, request: Request) -> Writer:
    """What writes the stream. Of what is wrong with one tensor by itself (its name) the file is told."""
    try:
        return kind.planned([t.spec for t in stream.tensors], stream.extra, request.write)
    except TconvError as problem:
        alone = {one.tensor: one for one in problem.each() if one.by_itself}
        for tensor in stream.tensors if alone else ():
            if tensor.spec.name in alone:
                alone[tensor.spec.name].at(file=tensor.source.path)
        raise


def _merged(request: Request, target: Target, take: Callable[[Path], Stream]) -> Stream:
    """What goes into one target."""
    chosen = [(i, intake.select(request, take(i.path), target)) for i in target.inputs]
    stream = intake.merge(intake.concerned(request, chosen))
    stream = beside.pictures_alone(stream) if target.format.group == "image" else stream
    del chosen  # the streams of single inputs
    stream = intake.declared_by(request, stream)
    selection.refuse_doubles(stream)
    return stream


def _labelled(labelling: Labelling | None, parts: Iterator[tuple[Path, Stream]]) -> Iterator[tuple[Path, Stream]]:
    for path, part in parts:
        yield path, labelling.beside(part) if labelling else part


def prepare(request: Request, inputs: Sequence[Input], streams: dict[Path, Stream], steps: Sequence[Step]) -> Stream:
    """The tensors of all inputs together through ``steps``, for who looks at their values and writes none."""
    stream = intake.declared_by(
        request, intake.merge(intake.concerned(request, [(i, streams[i.path]) for i in inputs]))
    )
    (made,) = walk.chained(request, steps, stream, None, lambda _: None)
    return _without_idle_promises(made)


def _finished(stream: Stream, target: Target, *, tie: bool) -> Stream:
    """What is left to be done when the chain is through."""
    stream = registry.writer(target.format).arranged(_without_idle_promises(stream))
    stream = _with_tensors_beside(stream, target)
    selection.refuse_doubles(stream)
    return tying.settle(stream, target, wanted=tie)


def _parts(request: Request, target: Target, stream: Stream) -> Iterator[tuple[Path, Stream]]:
    """The files of a target, and the stream that each holds."""
    if target.sharded:
        for name, shard in sharding.divide(stream, target.format, request.shard_size).items():
            yield target.path / name, shard
    elif target.split:
        for tensor in stream.tensors:
            alone = Stream((tensor,), replace(stream.extra, tree=None, texts={}), stream.notes)
            yield targets.below(target, tensor.spec.name), alone
    else:
        yield target.path, stream


def _rounding(stream: Stream, request: Request) -> Stream:
    """What becomes of results that overflow where no cast says it: what the user says of all."""
    policy = request.on_overflow
    if policy in (None, "keep"):
        return stream

    def told(op: Op) -> Op:
        if isinstance(op, Elementwise | Dequantize) and (policy != "inf" or op.dtype.has_inf):
            return replace(op, on_overflow=str(policy))
        return op

    once = {ops: tuple(map(told, ops)) for ops in {t.ops for t in stream.tensors}}  # what is alike shares operations
    return stream.with_tensors([replace(t, ops=once[t.ops]) for t in stream.tensors])


def _tagged(stream: Stream, request: Request, target: Target) -> Stream:
    """With the devices on which tensors are to come up when they are loaded, if that is wanted."""
    if not request.save_device:
        return stream
    if target.format.name != "pt":
        raise UsageError(
            f"--save-device: {target.format.suffixes[0]} says of no tensor on which device it is",
            remedy="-o x.pt does, or leave it out",
        )
    moved = [(tensor, place(tensor.ops)) for tensor in stream.tensors]
    return stream.with_tensors([_with_attr(t, "saved_on", move.device) if move else t for t, move in moved])


def _with_attr(tensor: Tensor, name: str, value: str) -> Tensor:
    return replace(tensor, spec=replace(tensor.spec, attrs={**tensor.spec.attrs, name: value}))


def _without_idle_promises(stream: Stream) -> Stream:
    """A range was stated for what steps work on: of labels that they pass over nothing was said."""
    idle = [all(isinstance(op, (Promise, MoveTo)) for op in t.ops) for t in stream.tensors]
    if all(idle):
        return stream
    plain = [
        replace(t, ops=(), spec=replace(t.spec, range=None)) if alone and is_stated(t.ops) else t
        for t, alone in zip(stream.tensors, idle, strict=True)
    ]
    return stream.with_tensors(plain)


def _with_tensors_beside(stream: Stream, target: Target) -> Stream:
    """What steps tell of pictures goes with them, where there is a place for it."""
    picture = target.format.group == "image"
    if not picture and (target.split or not registry.writer(target.format).single):
        return beside.with_tensors_beside(stream)
    one = "picture" if picture else "array"
    notes = [
        f"{name}: left out, as {target.format.suffixes[0]} holds one {one}; .npz or .safetensors hold both"
        for name in beside.names_beside(stream)
    ]
    return stream.with_tensors(stream.tensors, *notes)


def told(file: Planned) -> list[str]:
    """What the user should hear of a file: what it cannot hold, and what its writer says."""
    notes = list(file.writer.notes)
    if not file.writer.left_out:
        return notes
    return [*notes, f"{file.target.shown}: left out, as the format cannot hold it: {', '.join(file.writer.left_out)}"]
