"""A stream on its way through the steps of a chain, whole or in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tconv import batches, twins
from tconv.dtypes import DType
from tconv.errors import Problems, TconvError
from tconv.request import Request
from tconv.step import Scan, Step
from tconv.tensor import Spec, Stream

_TRACED = 3  # tensors of a file


class Traces:
    """The specs of a few tensors, the first of each dtype, on their way through the steps."""

    def __init__(self) -> None:
        self._specs: list[list[Spec]] | None = None

    def follow(self, stream: Stream) -> None:
        """One step further. What a step made one of is that one from there on, what it dropped is followed no more."""
        if self._specs is None:
            first: dict[DType, Spec] = {}
            for tensor in stream.tensors:
                first.setdefault(tensor.spec.dtype, tensor.spec)
            self._specs = [[spec] for spec in list(first.values())[:_TRACED]]
            return
        names = {trace[-1].name for trace in self._specs}
        now = {t.spec.name: t.spec for t in stream.tensors if t.spec.name in names}
        if len(stream.tensors) == 1:
            self._specs = self._specs[:1]
            now = dict.fromkeys(names, stream.tensors[0].spec)
        self._specs = [[*trace, now[trace[-1].name]] for trace in self._specs if trace[-1].name in now]

    @property
    def found(self) -> tuple[tuple[Spec, ...], ...]:
        return tuple(tuple(trace) for trace in self._specs or ())


def called(step: Step, name: str) -> Step:
    """A stack that has no name of its own is called like the file it goes to."""
    if getattr(step, "into", None) != "stack":
        return step
    changed: Step = replace(step, into=name)  # type: ignore[type-var]  # every step is a dataclass
    return changed


def chained(
    request: Request, steps: Sequence[Step], stream: Stream, scan: Scan | None, follow: Callable[[Stream], None]
) -> list[Stream]:
    """The stream through every step: one, or of those batches into which the first step that gathers divides it.

    ``follow`` sees the first of them before the first step and after every one. At the end they say which tensors are
    the same.
    """
    streams, size = [stream], request.batch_size
    del stream  # of a hundred thousand images, what no step will see again takes as much memory as the plan
    follow(streams[0])
    for step in steps:
        if step.gathers and size is not None:
            streams, size = batches.cut(streams[0], size, drop_last=request.drop_last), None
        streams = apply_all(step, streams, scan)
        follow(streams[0])
    return [twins.settled(stream) for stream in streams]


def apply_all(step: Step, streams: Sequence[Stream], scan: Scan | None) -> list[Stream]:
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


def apply_step(step: Step, stream: Stream, scan: Scan | None) -> Stream:
    """One step, settled by the values if there is a ``scan``; its refusals name it."""
    (made,) = apply_all(step, [stream], scan)
    return made


def _together(streams: Sequence[Stream]) -> Stream:
    return streams[0].with_tensors([tensor for stream in streams for tensor in stream.tensors])
