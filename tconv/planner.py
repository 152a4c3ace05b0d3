"""Everything a job will do, from headers alone: the specs after every step, the files, their sizes, the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tconv import registry, selection, targets
from tconv.errors import TconvError, TconvErrors, UsageError, raise_all
from tconv.evaluate import program
from tconv.inputs import Input, find
from tconv.pipeline import steps_from_text
from tconv.request import Progress, Request
from tconv.runner import default_workers
from tconv.targets import Target
from tconv.tensor import Extra, Step, Stream, Tensor, Writer

SKIP_REMEDY = "--on-bad skip leaves bad files out"


@dataclass(frozen=True)
class Planned:
    """One file of the plan: where it goes, what it is made of, and the writer that has fixed every offset."""

    path: Path
    target: Target
    stream: Stream
    writer: Writer


@dataclass(frozen=True)
class Plan:
    """What a job will do. ``skipped``: inputs that are of no use and left out, as asked."""

    request: Request
    steps: tuple[Step, ...]
    files: tuple[Planned, ...]
    notes: tuple[str, ...] = ()
    skipped: tuple[TconvError, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all outputs together."""
        return sum(f.writer.size for f in self.files)

    @property
    def workers(self) -> int:
        return self.request.workers or default_workers()

    @cached_property
    def peak_memory(self) -> int:
        """Bytes that the values being converted take at most: the largest pieces, one a worker, within the limit."""
        costs: list[int] = []
        for file in self.files:
            for i, tensor in enumerate(file.stream.tensors):
                if file.writer.stored(i):
                    item = tensor.spec.dtype.itemsize
                    costs += [p.cost + (p.hi - p.lo) * item for p in program(tensor).pieces()]
                    costs = sorted(costs, reverse=True)[: self.workers]
        return max(costs[0], min(sum(costs), self.request.max_memory)) if costs else 0

    def sizes(self) -> dict[Path, int]:
        """Bytes that each output folder gets."""
        sizes: dict[Path, int] = {}
        for file in self.files:
            sizes[file.target.root] = sizes.get(file.target.root, 0) + file.writer.size
        return sizes


def plan(request: Request, progress: Progress, bad: dict[Path, TconvError]) -> Plan:
    """Fold the steps over the specs of every input and plan the outputs.

    ``bad``: inputs already known to be of no use. Raises ``TconvError`` for all that can be refused from headers.
    """
    found = find(request.inputs)
    known = {**bad, **{Path(e.file): e for e in found.failures}}
    inputs = [i for i in found.inputs if i.path not in known]
    streams, failures = _read_all(inputs, request, progress)
    known |= {Path(e.file): e for e in failures}
    skipped = tuple(known.values())
    if skipped and (request.on_bad == "error" or not streams):
        raise_all(skipped, remedy=SKIP_REMEDY if streams else "")
    if not streams:
        raise UsageError("there is nothing to convert")
    inputs = [i for i in inputs if i.path in streams]
    chosen = _choose(request, inputs)
    steps = _steps(request, inputs, chosen)
    files = _plan_all(request, chosen, streams, steps)
    targets.check([(f.path, f.target.inputs) for f in files], request.force)
    notes = [*found.notes, *(n for f in files for n in (*f.stream.notes, *_left_out(f)))]
    return Plan(request, tuple(steps), tuple(files), tuple(dict.fromkeys(notes)), skipped)


def _read_all(
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


def _choose(request: Request, inputs: Sequence[Input]) -> list[Target]:
    """The targets; a default name tells the dtype of the last cast."""
    chain = request.steps or tuple(steps_from_text(request.sugar.chain()))
    casts: list[Any] = [s for s in chain if s.name == "cast"]
    wanted = casts[-1].target if casts else None
    return targets.choose(
        inputs,
        request.output,
        request.format,
        tag=str(wanted) if wanted else "converted" if chain else "",
        extension_dtype=wanted is not None and wanted.is_extension,
        split=request.split,
    )


def _steps(request: Request, inputs: Sequence[Input], chosen: Sequence[Target]) -> list[Step]:
    """The chain, with the stack that the target or the layout implies, and the policy on overflow."""
    stack = request.sugar.stack or _implies_stack(request, inputs, chosen)
    if request.steps:
        steps = list(request.steps)
        if stack and not any(s.name == "stack" for s in steps):
            steps += steps_from_text(["stack"])
    else:
        steps = steps_from_text(replace(request.sugar, stack=stack).chain())
    return [_with_policy(s, request.on_overflow) for s in steps]


def _implies_stack(request: Request, inputs: Sequence[Input], chosen: Sequence[Target]) -> bool:
    """A file that holds a single array takes a folder of images as one; so does a layout with an N in it."""
    images = [i for i in inputs if i.format.group == "image"]
    batched = "N" in (request.sugar.layout or "").upper()
    single = len(chosen) == 1 and registry.writer(chosen[0].format).single
    several = len(inputs) > 1 or any(i.root for i in images)
    return (bool(images) and batched) or (single and several and not request.split)


def _with_policy(step: Step, on_overflow: str) -> Step:
    if getattr(step, "on_overflow", None) != "error":
        return step
    changed: Step = replace(step, on_overflow=on_overflow)  # type: ignore[type-var]  # every step is a dataclass
    return changed


def _plan_all(
    request: Request, chosen: Sequence[Target], streams: dict[Path, Stream], steps: Sequence[Step]
) -> list[Planned]:
    files: list[Planned] = []
    problems: list[TconvError] = []
    remedies: list[str] = []
    for target in chosen:
        alone = target.inputs[0].path if len(target.inputs) == 1 else ""
        try:
            files += _plan_target(request, target, streams, steps)
        except TconvErrors as several:
            problems += several.at(file=alone).problems
            remedies.append(several.remedy)
        except TconvError as problem:
            problems.append(problem.at(file=alone))
    raise_all(problems, remedy="; ".join(dict.fromkeys(filter(None, remedies))))
    return files


def _plan_target(request: Request, target: Target, streams: dict[Path, Stream], steps: Sequence[Step]) -> list[Planned]:
    """The stream of one target through every step, and the file (or, split, the files) that it fills."""
    kind = registry.writer(target.format)
    stream = _merge([(i, _select(request, streams[i.path], kind)) for i in target.inputs])
    stream = selection.matching(stream, request.only, request.skip)
    stream = _declare(replace(stream, extra=replace(stream.extra, whole=request.all)), request)
    stem = target.inputs[0].path.stem if target.split else target.path.stem
    for step in steps:
        stream = _apply(_called(step, stem), stream)
    stream = selection.unshare(stream)
    selection.refuse_doubles(stream)
    if not target.split:
        return [Planned(target.path, target, stream, kind([t.spec for t in stream.tensors], stream.extra))]
    files = []
    for tensor in stream.tensors:
        alone = Stream((tensor,), replace(stream.extra, tree=None), stream.notes)
        files.append(Planned(targets.below(target, tensor.spec.name), target, alone, kind([tensor.spec], alone.extra)))
    return files


def _called(step: Step, name: str) -> Step:
    """A stack that has no name of its own is called like the file it goes to."""
    if getattr(step, "into", None) != "stack":
        return step
    changed: Step = replace(step, into=name)  # type: ignore[type-var]  # every step is a dataclass
    return changed


def _apply(step: Step, stream: Stream) -> Stream:
    try:
        return step.apply(stream)
    except TconvError as problem:
        raise problem.at(step=str(step)) from None


def _select(request: Request, stream: Stream, kind: type[Writer]) -> Stream:
    """What of one input goes on."""
    if request.select:
        stream = selection.select(stream, request.select)
    flat = not kind.holds_tree or request.split
    if flat and not request.all and stream.extra.kind == "weights":
        stream = selection.only_model(stream)
    return selection.strip_prefixes(stream, request.strip_prefix)


def _merge(parts: Sequence[tuple[Input, Stream]]) -> Stream:
    """Several inputs for one file become one stream; their tensors are kept, their containers are not."""
    if len(parts) == 1:
        return parts[0][1]
    tensors = tuple(t for _, stream in parts for t in stream.tensors)
    notes = tuple(n for _, stream in parts for n in stream.notes)
    weights = any(stream.extra.kind == "weights" for _, stream in parts)
    return Stream(tensors, Extra("weights" if weights else "data"), notes)


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
    spec = replace(spec, range=request.range or spec.range, axes=layout or spec.axes)
    return replace(tensor, spec=spec)


def _left_out(file: Planned) -> list[str]:
    if not file.writer.left_out:
        return []
    return [f"{file.target.shown}: left out, as the format cannot hold it: {', '.join(file.writer.left_out)}"]
