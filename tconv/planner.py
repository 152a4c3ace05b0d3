"""Everything a job will do, from headers alone: the specs after every step, the files, their sizes, the memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from tconv import batches, chain, clearance, journal, labelling, pictures, selection, sharding, targets, tying
from tconv.errors import TconvError, TconvErrors, UsageError, raise_all
from tconv.evaluate import program
from tconv.fold import Planned, plan_all, told
from tconv.inputs import Found, Input, find, natural
from tconv.intake import names_of, read_all
from tconv.labels import Labelling
from tconv.placed.batching import BATCH
from tconv.registry import Format
from tconv.request import Progress, Request
from tconv.runner import default_workers
from tconv.sharding import Companion
from tconv.step import Scan, Step
from tconv.superseded import Superseded, superseded
from tconv.targets import Target
from tconv.tensor import Stream

SKIP_REMEDY = "--on-bad skip leaves bad files out"


@dataclass(frozen=True)
class Plan:
    """What a job will do. ``skipped``: inputs that are of no use and left out, as asked. ``in_the_way``: what exists
    already where outputs go, and is not to be replaced. ``superseded``: checkpoints that the
    new ones take the place of.
    """

    request: Request
    steps: tuple[Step, ...]
    files: tuple[Planned, ...]
    companions: tuple[Companion, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[TconvError, ...] = ()
    in_the_way: tuple[TconvError, ...] = ()
    superseded: tuple[Superseded, ...] = ()

    def __repr__(self) -> str:
        return f"<Plan: {', '.join(self._shown)}; {self.size:,} bytes>"

    @property
    def _shown(self) -> list[str]:
        return list(dict.fromkeys(file.target.shown for file in self.files))

    @property
    def size(self) -> int:
        """Bytes of all outputs together."""
        return sum(self.sizes().values())

    @property
    def workers(self) -> int:
        return workers_for(self.request)

    @property
    def peak_memory(self) -> int:
        """Bytes that the values being converted take at most: the largest pieces, one a worker, or as many as go to a
        device at once, within the limit.
        """
        return self._peak[0]

    @property
    def beyond(self) -> tuple[str, int] | None:
        """The tensor that takes more than ``max_memory`` at once, the worst of them, and how many bytes that is."""
        name, cost = self._peak[1]
        return (name, cost) if cost > self.request.max_memory else None

    @cached_property
    def _peak(self) -> tuple[int, tuple[str, int]]:
        costs, largest, crosses = list[int](), ("", 0), False
        batch = self.request.device_batch or BATCH
        for file in self.files:
            for i, tensor in enumerate(file.stream.tensors):
                if file.writer.stored(i):
                    item = tensor.spec.dtype.itemsize
                    made = program(tensor)
                    crosses = crosses or made.crosses
                    pieces = list(made.costly(self.workers * (batch if crosses else 1)))
                    largest = max([largest, *((tensor.spec.name, p.cost) for p in pieces)], key=lambda found: found[1])
                    costs += [p.cost + (p.hi - p.lo) * item for p in pieces]
                    costs = sorted(costs, reverse=True)[: self.workers * (batch if crosses else 1)]
        return max(costs[0], min(sum(costs), self.request.max_memory)) if costs else 0, largest

    def sizes(self) -> dict[Path, int]:
        """Bytes that each output folder gets."""
        sizes: dict[Path, int] = {}
        for file in self.files:
            sizes[file.target.root] = sizes.get(file.target.root, 0) + file.writer.size
        for companion in self.companions:
            sizes[companion.target.root] = sizes.get(companion.target.root, 0) + companion.size
        return sizes


def workers_for(request: Request) -> int:
    """How many threads it is done in."""
    return request.workers or default_workers()


def refuse_bad(problems: Sequence[TconvError], remedy: str = SKIP_REMEDY) -> None:
    """Raise what is wrong with bad inputs, if there are any: each by its name, in the order of the inputs."""
    remedies = dict.fromkeys([p.remedy for p in problems if isinstance(p, TconvErrors)] + [remedy])
    every = [one for problem in in_order(problems) for one in problem.each()]
    raise_all(every, remedy="; ".join(filter(None, remedies)), every=True)


def in_order(problems: Iterable[TconvError]) -> list[TconvError]:
    """Problems in the natural order of their files: they were found in that of threads and phases."""
    return sorted(problems, key=lambda problem: natural(Path(problem.file)))


def plan(request: Request, progress: Progress, bad: dict[Path, TconvError], scan: Scan | None = None) -> Plan:
    """Fold the steps over the specs of every input and plan the outputs.

    ``bad``: inputs already known to be of no use. ``scan``: reads the values that some steps depend on; without it
    what they decide is left open, and specs say so in ``attrs["undecided"]``. Raises ``TconvError`` for all that can be
    refused from headers.
    """
    drafted = draft(request, progress, bad, scan)
    if request.on_bad == "error":
        refuse_bad(drafted.skipped)
    return drafted


def draft(request: Request, progress: Progress, bad: dict[Path, TconvError], scan: Scan | None = None) -> Plan:
    """``plan``, but for the judgement on bad inputs: they are left out, asked or not, for the caller to refuse."""
    form = pictures.form(request)
    batches.check_options(
        request.batch_size, request.drop_last, split=request.split, pack=request.shard_size is not None
    )
    if request.resume and request.report:
        raise UsageError("--resume does not know all that a --report tells", remedy="leave one of them out")
    asked = chain.asked(request)
    heard = chain.devices_heard(request, asked)
    decoder = chain.jpeg_device(request, asked)
    heard += chain.decoder_heard(decoder)
    pictures.refuse_unheld(request, form, asked)
    apart = request.labels if isinstance(request.labels, Path) else None
    found = find(request.inputs, apart=apart, wanted=request.wanted)
    _refuse_mixed(found.inputs)
    known = {**bad, **{Path(e.file): e for e in found.failures}}
    inputs = [i for i in found.inputs if i.path not in known]
    streams, failures = read_all(inputs, _reading(request, form, decoder), progress)
    known |= {Path(e.file): e for e in failures}
    if not streams:
        refuse_bad(list(known.values()), remedy="")
        raise UsageError("there is nothing to convert")
    labels = labelling.asked(request, found)
    if labels is not None and labels.stray is not None:
        known[labels.origin] = labels.stray
    try:
        drafted = _drafted(request, found, streams, known, labels, scan, form)
        return replace(drafted, notes=(*heard, *drafted.notes)) if heard else drafted
    except TconvError as problem:
        told = {id(one) for bad_input in known.values() for one in bad_input.each()}
        alone = not told or told.issuperset(map(id, problem.each()))
        if alone or (request.on_bad == "skip" and not isinstance(problem, selection.NothingLeft)):
            raise
        refuse_bad([*known.values(), problem], SKIP_REMEDY if request.on_bad == "error" else "")
        raise


def _refuse_mixed(inputs: Sequence[Input]) -> None:
    """Refuse folders in which an interrupted run has put some of its shards: what is there is of two checkpoints."""
    for one in inputs:
        folder = Path(os.path.realpath(one.path.parent))
        if one.format.name == "index" and journal.pending(folder):
            raise TconvError(
                "some of its shards are those of a run that was interrupted while it put them in place",
                remedy=f"--resume -o {one.path.parent}/ completes that",
                file=one.path,
            )


def _reading(request: Request, form: Format | None, decoder: str) -> Request:
    read = pictures.reading(request, form)
    return replace(request, read=replace(read, jpeg_device=decoder) if decoder else read)


def _drafted(
    request: Request,
    found: Found,
    streams: dict[Path, Stream],
    bad: dict[Path, TconvError],
    labels: Labelling | None,
    scan: Scan | None,
    form: Format | None,
) -> Plan:
    """The plan for the inputs that can be read; ``bad`` gets those that steps refuse, unless nothing else is bad and
    that is an error.
    """
    refused = dict[Path, TconvError]()
    while True:
        bad |= refused
        inputs = [i for i in found.inputs if i.path in streams and i.path not in bad]
        if not inputs:
            refuse_bad(list(bad.values()), remedy="")
        chosen = _choose(request, labelling.arranged(request, labels, inputs), form)
        if request.tie:
            tying.refuse_unable(chosen)
        steps = chain.steps_for(request, found, chosen, form)
        chain.refuse_idle_padding(request, steps, chosen)
        beside, heard = labelling.fitting(request, labels, chosen)
        kept = [pattern.partition("=")[0] for s in steps for one in s.flat() for pattern in getattr(one, "keep", ())]
        ruled = list(takewhile(lambda step: step.name != "stack", steps))  # which has another name
        ruling = bool(request.skip or kept or any(step.name == "match" for step in ruled))
        names = [*names_of(request, chosen, streams), *(one.name for one in found.unwanted)] if ruling else []
        blame = request.on_bad == "skip" or bool(bad)
        files, refused = plan_all(request, chosen, streams, steps, scan, beside, blame=blame)
        if not refused:
            break
    skipped = tuple(in_order(bad.values()))
    if request.resume and not any(target.sharded for target in chosen):
        raise UsageError("--resume goes on with shards, and none are written here", remedy="leave it out")
    companions = _companions(request, files)
    outputs: list[Planned | Companion] = [*files, *companions]
    places = [(f.path, f.target.inputs) for f in outputs]
    existing = clearance.check(places)
    earlier = batches.from_earlier(f.target for f in files)
    existing += earlier
    old = superseded((f.target for f in files), [f.path for f in outputs], [p for f in files for p in f.sources()])
    existing += [one.refusal() for one in old if not one.replaced]
    if request.report:
        read = [i.path for i in (*found.inputs, *found.unwanted)] + [Path(e.file) for e in found.failures]
        read += [request.labels] if isinstance(request.labels, Path) else []
        existing += clearance.check_report(Path(os.path.realpath(request.report)), read, [f.path for f in outputs])
    notes = [*found.notes, *heard, *(n for f in files for n in (*f.stream.notes, *told(f)))]
    notes += [*map(str, earlier), *(one.note() for one in old)] if request.force else ()
    if ruling:
        chain.refuse_idle_rules(ruled, names)
        notes += selection.unmatched(names, request.skip)
        selection.refuse_unmatched("--keep", names, kept)
    in_the_way = () if request.force else tuple(existing)
    told_once = tuple(dict.fromkeys(notes))
    return Plan(request, tuple(steps), tuple(files), companions, told_once, skipped, in_the_way, tuple(old))


def _companions(request: Request, files: Sequence[Planned]) -> tuple[Companion, ...]:
    """What is written beside the shards of each target that has some."""
    whole = not (request.only or request.skip)
    found: list[Companion] = []
    for target in dict.fromkeys(file.target for file in files if file.target.sharded):
        shards = {file.path.name: file.stream for file in files if file.target == target}
        found += sharding.companions(target, shards, whole=whole)
    return tuple(found)


def _choose(request: Request, inputs: Sequence[Input], form: Format | None) -> list[Target]:
    """The targets; a default name tells the dtype that it quantizes or casts to."""
    rounding = chain.rounding(request)
    wanted = rounding.target if rounding else None
    return targets.choose(
        inputs,
        request.output,
        form.name if form is not None else None,
        tag=rounding.dtype if rounding else "converted" if request.steps or request.sugar.chain() else "",
        beyond_npy=wanted is not None and (wanted.is_extension or rounding.name == "quantize"),
        split=request.split,
        pack=request.shard_size is not None,
        batch=request.batch_size is not None,
    )
