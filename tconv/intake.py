"""From files to the stream that steps see: read, selected, merged, with what the user says of the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tconv import beside, registry, selection
from tconv.errors import TconvError, raise_all
from tconv.formats.flat import left_out
from tconv.inputs import Input, is_skipped
from tconv.ops import Promise
from tconv.quant import noted
from tconv.request import Progress, Request
from tconv.steps.touch import labels
from tconv.targets import Target
from tconv.tensor import Extra, Ref, Stream, Tensor
from tconv.training import refs


def read_all(
    inputs: Sequence[Input], request: Request, progress: Progress
) -> tuple[dict[Path, Stream], list[TconvError]]:
    """The headers of every input, and what is wrong with those that cannot be read and are not named to be skipped."""
    streams: dict[Path, Stream] = {}
    failures: list[TconvError] = []
    progress.begin("reading headers", len(inputs), "files")
    for one in inputs:
        try:
            streams[one.path] = beside.recognized(registry.reader(one.format)(one.path, one.name, request.read))
        except (TconvError, OSError) as problem:
            failures += [] if is_skipped(one.path, one.root, request.wanted) else [_unreadable(one, problem)]
        progress.advance(1)
    return streams, failures


def _unreadable(one: Input, problem: TconvError | OSError) -> TconvError:
    if isinstance(problem, TconvError):
        return problem.at(file=one.path)
    return TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path)


def names_of(request: Request, chosen: Sequence[Target], streams: dict[Path, Stream]) -> list[str]:
    """What everything is called that --only and --skip choose from."""
    names: list[str] = []
    for target in chosen:
        for one in target.inputs:
            stream = select(request, streams[one.path], target)
            names += [t.spec.name for t in stream.tensors] + [o.tensor for o in stream.others] + [*stream.extra.texts]
    return names


def select(request: Request, stream: Stream, target: Target) -> Stream:
    """What of one input goes on."""
    if request.select:
        stream = selection.select(stream, request.select)
    flat = target.split or target.sharded or not registry.writer(target.format).holds_tree
    if flat and not request.all and stream.extra.kind == "weights":
        stream = selection.only_model(stream)
    return selection.strip_prefixes(stream, request.strip_prefix)


def concerned(request: Request, parts: Sequence[tuple[Input, Stream]]) -> Sequence[tuple[Input, Stream]]:
    """The inputs of one file of which --only and --skip leave something: what is odd about others is of no concern."""
    if not (request.only or request.skip):
        return parts
    kept = []
    for one, stream in parts:
        with suppress(selection.NothingLeft):
            kept.append((one, selection.matching(stream, request.only, request.skip)))
    return kept or parts


def merge(parts: Sequence[tuple[Input, Stream]]) -> Stream:
    """Several inputs for one file become one stream; their tensors are kept, and metadata that do not contradict each
    other; their containers are not. Notes tell what is lost.
    """
    if len(parts) == 1:
        return parts[0][1]
    tensors = tuple(t for _, stream in parts for t in stream.tensors)
    notes = tuple(n for _, stream in parts for n in stream.notes)
    notes += tuple(f"{one.path}: left out: {name}" for one, stream in parts for name in stream.extra.texts)
    notes += tuple(note for one, stream in parts for note in _containers_lost(one, stream))
    others = tuple(o for _, stream in parts for o in stream.others)
    kinds = {stream.extra.kind: one.path for one, stream in parts}
    if len(kinds) > 1:
        raise TconvError(
            f"{kinds['weights']} holds weights and {kinds['data']} data, of which different things are converted",
            remedy="convert each into a file of its own",
        )
    metadata, lost = _metadata(parts)
    return Stream(tensors, Extra(parts[0][1].extra.kind, metadata=metadata), (*notes, *lost), others)


def _containers_lost(one: Input, stream: Stream) -> Iterator[str]:
    """What becomes of a checkpoint's structure: its tensors are called as before, by their keys."""
    tree = stream.extra.tree
    if tree is None:
        return
    plain = left_out(replace(stream.extra, metadata={}), texts=True)
    if plain:
        yield f"{one.path}: left out, as tensors of several files are merged: {selection.first_few(plain)}"
    if isinstance(tree, Mapping) and not all(isinstance(value, Ref) for value in tree.values() if refs(value)):
        yield f"{one.path}: its containers are left out, and its tensors called by all their keys"


def _metadata(parts: Sequence[tuple[Input, Stream]]) -> tuple[dict[str, str], list[str]]:
    """Those of all inputs, the first where they differ, and a note on each that is not kept. What is said of quantized
    tensors is said of each by its name.
    """
    made: dict[str, str] = {}
    quantized: dict[str, Any] = {}
    notes = []
    for one, stream in parts:
        for key, value in stream.extra.metadata.items():
            if key == noted.KEY:
                quantized |= noted.told(stream.extra.metadata)
            elif made.setdefault(key, value) != value:
                notes.append(f"{one.path}: left out: its metadata {key!r}, which differs from that of an earlier file")
    return noted.noting(made, quantized), notes


def declared_by(request: Request, stream: Stream) -> Stream:
    """The tensors that were asked for, with what the user says of them."""
    stream = selection.matching(stream, request.only, request.skip)
    raise_all(stream.others, remedy="--skip leaves out what is no tensor" if stream.others else "")
    if not stream.tensors:
        raise TconvError("there is no tensor in it")
    stream = beside.told_of(replace(stream, extra=replace(stream.extra, whole=request.all, fields=request.fields)))
    return _declare(stream, request)


def _declare(stream: Stream, request: Request) -> Stream:
    """What the user says of the values that no header told: their range, and the axes of arrays."""
    if request.range is None and request.input_layout is None:
        return stream
    made, problems = list[Tensor](), list[TconvError]()
    told = labels(stream)
    for tensor in stream.tensors:
        try:
            made.append(tensor if tensor.spec.name in told else _declared(tensor, request))
        except TconvError as problem:
            problems.append(problem.at(file=tensor.source.path, tensor=tensor.spec.name, by_itself=True))
    raise_all(problems)
    return stream.with_tensors(made)


def _declared(tensor: Tensor, request: Request) -> Tensor:
    spec, layout = tensor.spec, (request.input_layout or "").upper()
    if layout and len(layout) != len(spec.shape):
        raise TconvError(f"--input-layout {layout} names {len(layout)} axes, but the shape is {spec.shape}")
    tensor = replace(tensor, spec=replace(spec, axes=layout or spec.axes))
    if request.range is None or spec.dtype.kind == "complex":
        return tensor
    return tensor.then(Promise(range=request.range))
