"""Everything a job will do, from headers alone: the specs after every step, the files, their sizes, the memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tconv import batches, pictures, registry, selection, targets
from tconv.errors import TconvError, UsageError, raise_all
from tconv.evaluate import program
from tconv.fold import Planned, names_of, plan_all, read_all, told
from tconv.inputs import Input, find
from tconv.pipeline import steps_from_text
from tconv.registry import Format
from tconv.request import Progress, Request
from tconv.runner import default_workers
from tconv.sharding import Companion, companions
from tconv.targets import Target
from tconv.tensor import Scan, Step

SKIP_REMEDY = "--on-bad skip leaves bad files out"


@dataclass(frozen=True)
class Plan:
    """What a job will do. ``skipped``: inputs that are of no use and left out, as asked. ``in_the_way``: what exists
    already where outputs go, and is not to be replaced.
    """

    request: Request
    steps: tuple[Step, ...]
    files: tuple[Planned, ...]
    companions: tuple[Companion, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[TconvError, ...] = ()
    in_the_way: tuple[TconvError, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all outputs together."""
        return sum(self.sizes().values())

    @property
    def workers(self) -> int:
        return workers_for(self.request)

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
        for companion in self.companions:
            sizes[companion.target.root] = sizes.get(companion.target.root, 0) + companion.size
        return sizes


def workers_for(request: Request) -> int:
    """How many threads it is done in."""
    return request.workers or default_workers()


def plan(request: Request, progress: Progress, bad: dict[Path, TconvError], scan: Scan | None = None) -> Plan:
    """Fold the steps over the specs of every input and plan the outputs.

    ``bad``: inputs already known to be of no use. ``scan``: reads the values that some steps depend on; without it
    what they decide is left open, and specs say so in ``attrs["undecided"]``. Raises ``TconvError`` for all that can be
    refused from headers.
    """
    form = pictures.form(request)
    batches.check_options(
        request.batch_size, request.drop_last, split=request.split, pack=request.shard_size is not None
    )
    if request.resume and request.report:
        raise UsageError("--resume does not know all that a --report tells", remedy="leave one of them out")
    chain = request.steps or tuple(steps_from_text(request.sugar.chain()))
    for step in chain:
        _with_exceptions(step, request)  # what is wrong in itself is told before any file is looked for
    _refuse_idle(request, chain)
    pictures.refuse_unheld(request, form, chain)
    found = find(request.inputs)
    known = {**bad, **{Path(e.file): e for e in found.failures}}
    inputs = [i for i in found.inputs if i.path not in known]
    streams, failures = read_all(inputs, replace(request, read=pictures.reading(request, form)), progress)
    known |= {Path(e.file): e for e in failures}
    skipped = tuple(known.values())
    if skipped and (request.on_bad == "error" or not streams):
        raise_all(skipped, remedy=SKIP_REMEDY if streams else "")
    if not streams:
        raise UsageError("there is nothing to convert")
    inputs = [i for i in inputs if i.path in streams]
    chosen = _choose(request, inputs, form)
    steps = _steps(request, inputs, chosen, form)
    _refuse_idle_padding(request, steps, chosen)
    files = plan_all(request, chosen, streams, steps, scan)
    if request.resume and not any(target.sharded for target in chosen):
        raise UsageError("--resume goes on with shards, and none are written here", remedy="leave it out")
    beside = _companions(request, files)
    outputs: list[Planned | Companion] = [*files, *beside]
    places = [(f.path, f.target.inputs) for f in outputs]
    existing = targets.check(places)
    earlier = batches.from_earlier(f.target for f in files)
    existing += earlier
    if request.report:
        read = [i.path for i in found.inputs] + [Path(e.file) for e in found.failures]
        existing += targets.check_report(Path(os.path.realpath(request.report)), read, [f.path for f in outputs])
    notes = [*found.notes, *(n for f in files for n in (*f.stream.notes, *told(f)))]
    notes += map(str, earlier) if request.force else ()
    kept = [pattern.partition("=")[0] for s in steps for pattern in getattr(s, "keep", ())]
    if request.skip or kept:
        names = names_of(request, chosen, streams)
        notes += selection.unmatched(names, request.skip)
        selection.refuse_unmatched("--keep", names, kept)
    in_the_way = () if request.force else tuple(existing)
    return Plan(request, tuple(steps), tuple(files), beside, tuple(dict.fromkeys(notes)), skipped, in_the_way)


def _companions(request: Request, files: Sequence[Planned]) -> tuple[Companion, ...]:
    """What is written beside the shards of each target that has some."""
    whole = not (request.only or request.skip)
    found: list[Companion] = []
    for target in dict.fromkeys(file.target for file in files if file.target.sharded):
        shards = {file.path.name: file.stream for file in files if file.target == target}
        found += companions(target, shards, whole=whole)
    return tuple(found)


def _choose(request: Request, inputs: Sequence[Input], form: Format | None) -> list[Target]:
    """The targets; a default name tells the dtype that it quantizes or casts to."""
    chain = request.steps or tuple(steps_from_text(request.sugar.chain()))
    rounding: list[Any] = [s for s in chain if s.name == "quantize"] or [s for s in chain if s.name == "cast"]
    wanted = rounding[-1].target if rounding else None
    return targets.choose(
        inputs,
        request.output,
        form.name if form is not None else None,
        tag=rounding[-1].dtype if rounding else "converted" if chain else "",
        extension_dtype=wanted is not None and wanted.is_extension,
        split=request.split,
        pack=request.shard_size is not None,
        batch=request.batch_size is not None,
    )


def _steps(request: Request, inputs: Sequence[Input], chosen: Sequence[Target], form: Format | None) -> list[Step]:
    """The chain, with what the target or the layout implies, a stack or pictures one by one, and the policy on
    overflow.
    """
    grouped = request.batch_size is not None or request.sugar.pad is not None
    stack = request.sugar.stack or grouped or _implies_stack(request, inputs, chosen)
    if request.steps:
        steps = list(request.steps)
        if stack and not any(s.name == "stack" for s in steps):
            steps += steps_from_text(["stack"])
    else:
        steps = steps_from_text(replace(request.sugar, stack=stack).chain())
    steps = pictures.one_by_one(steps, request, form, inputs)
    return [_with_exceptions(s, request) for s in steps]


def _implies_stack(request: Request, inputs: Sequence[Input], chosen: Sequence[Target]) -> bool:
    """A file that holds a single array takes a folder of images as one; so does a layout with an N in it."""
    images = [i for i in inputs if i.format.group == "image"]
    batched = "N" in (request.sugar.layout or "").upper()
    single = len(chosen) == 1 and chosen[0].format.group != "image" and registry.writer(chosen[0].format).single
    several = len(inputs) > 1 or any(i.root for i in images)
    return (bool(images) and batched) or (single and several and not request.split)


def _refuse_idle_padding(request: Request, steps: Sequence[Step], chosen: Sequence[Target]) -> None:
    """Refuse to make pictures as large as the largest where each goes by itself."""
    alone = len(chosen) > 1 and all(len(t.inputs) == 1 and t.inputs[0].format.group == "image" for t in chosen)
    if alone and any(getattr(step, "to_largest", False) for step in steps):
        raise UsageError(
            "pad makes the pictures of one file equal, and here each has a file of its own",
            remedy="--batch-size N puts several into each file, --step 'pad(HxW)' says the size",
        )


def _refuse_idle(request: Request, chain: Sequence[Step]) -> None:
    """Refuse what says how to cast where nothing is cast, and how to round where nothing is rounded."""
    casts, rounds = any(step.name == "cast" for step in chain), any(step.rounds for step in chain)
    quantizes = any(step.name == "quantize" for step in chain)
    asked = {
        "--keep": (request.keep, casts or quantizes),
        "--policy": (request.policy, casts),
        "--max-error": (request.max_error is not None, casts),
        "--min-sqnr": (request.min_sqnr is not None, quantizes),
        f"--on-overflow {request.on_overflow}": (
            request.on_overflow,
            casts if request.on_overflow == "keep" else rounds,
        ),
    }
    to_another = [text for text in request.keep if "=" in text]
    if to_another and not casts:
        raise UsageError(
            f"--keep {to_another[0]} says to which dtype, and nothing is cast here",
            remedy="without =DTYPE the tensors stay as they are; --to DTYPE casts all that is not quantized",
        )
    given = [option for option, (value, used) in asked.items() if value and not used]
    if given:
        raise UsageError(
            f"{' and '.join(given)} without a cast",
            remedy="say to which dtype: --half, --bf16, --to DTYPE, --quantize DTYPE",
        )


def _with_exceptions(step: Step, request: Request) -> Step:
    """Casts and quantization do what the options say, where their own text says nothing else."""
    if step.name == "quantize":
        quant: Any = step
        patterns = (*quant.keep, *(text.partition("=")[0] for text in request.keep))
        told: Step = replace(quant, keep=patterns, min_sqnr=quant.min_sqnr or request.min_sqnr)
        return told
    if step.name != "cast":
        return step
    cast: Any = step
    on_overflow = cast.on_overflow or request.on_overflow
    max_error = request.max_error if cast.max_error is None else cast.max_error
    keep, policy = (*cast.keep, *request.keep), cast.policy or request.policy
    changed: Step = replace(cast, on_overflow=on_overflow, keep=keep, policy=policy, max_error=max_error)
    return changed
