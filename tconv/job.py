"""The order of events: plan, fill the outputs staged beside their targets, judge what was lost, publish."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tconv import clearance
from tconv.errors import TconvError, raise_all
from tconv.fold import Planned
from tconv.interrupted import completed, completed_later_if_interrupted, kept_if_interrupted
from tconv.losses import beyond, losses, refusals
from tconv.outcome import Outcome, Output, Place
from tconv.placed.batching import BATCH
from tconv.planner import SKIP_REMEDY, Plan, draft, in_order, refuse_bad, workers_for
from tconv.request import Progress, Request
from tconv.resume import Done, Ledger, complete
from tconv.runner import Runner
from tconv.scan import Scanner, Unreadable, undecodable
from tconv.sharding import Companion
from tconv.staging import Staging, check_space

if TYPE_CHECKING:
    from tconv.account import Account
    from tconv.writer import Writer


@dataclass(frozen=True)
class Result:
    """What a job did. ``shown``: what stdout says, one line a target; ``skipped``: bad inputs left out, as asked."""

    shown: tuple[str, ...]
    skipped: tuple[TconvError, ...]


def convert(request: Request, progress: Progress, note: Callable[[str], None], tell: Callable[[Plan], None]) -> Result:
    """Do all of it; ``note`` hears one sentence at a time what the user should know, ``tell`` the plan.

    Raises ``TconvError``, and whatever it raises, nothing has been written.
    """
    if completed(request, note):
        return Result((str(request.output),), ())
    bad: dict[Path, TconvError] = {}
    told: list[str] = []
    while True:
        try:
            result = _attempt(request, progress, note, tell, bad, told)
        except Unreadable as found:
            fresh = {Path(e.file): e for e in found.failures}
            if request.on_bad == "error":
                refuse_bad(found.failures, SKIP_REMEDY if len(found.failures) > 1 else "")
            if fresh.keys() <= bad.keys():  # a shard is no input of its own that could be left out
                raise_all(found.failures)
            bad |= fresh
            continue  # a bad input among good ones of the same file: plan again without it
        return result


def _attempt(
    request: Request,
    progress: Progress,
    note: Callable[[str], None],
    tell: Callable[[Plan], None],
    bad: dict[Path, TconvError],
    told: list[str],
) -> Result:
    """One plan and its execution, without the inputs that are ``bad``; raises ``Unreadable`` if it finds more.

    ``told``: the notes of the attempt before.
    """
    workers = workers_for(request)
    planned = draft(request, progress, bad, Scanner(workers, request.max_memory, progress))
    if planned.skipped and request.on_bad == "error":
        unread = not all(problem.by_itself for problem in planned.skipped)
        tensors = [t for f in planned.files for t in f.stream.tensors] if unread else []
        refuse_bad([*planned.skipped, *undecodable(tensors, workers, request.max_memory, progress)])
    said = (*planned.notes, *_idle_devices(planned))
    for text in _changed(told, said, bad):
        note(text)
    told[:] = said
    raise_all(complete(planned) or planned.in_the_way)
    tell(planned)
    report = Path(os.path.realpath(request.report)) if request.report else None
    roots = {f.target.root for f in planned.files} | ({report.parent} if report else set())
    resumable = {f.target.root for f in planned.files if f.target.sharded}
    with Staging(roots, resumable, resume=request.resume) as staging:
        with kept_if_interrupted(staging, resumable, note):
            ledgers = _ledgers(planned, staging, resumable, note)
            check_space(_missing(planned, ledgers))
            outcome = _fill(planned, staging, ledgers, progress)
        shared = any(t.batched or len(t.inputs) > 1 for t in (planned.files[n].target for n in outcome.unfinished))
        if outcome.failures and (shared or request.on_bad == "error"):
            raise Unreadable(outcome.failures)
        raise_all(refusals(planned, outcome.lost))
        done = _done(planned, outcome)
        skipped = tuple(in_order((*planned.skipped, *outcome.failures)))
        if not done:
            raise_all(skipped, remedy="no input was left, so nothing was written")
        if request.verify:
            _verify(planned, done, staging, progress)
        for text in (
            *outcome.notes,
            *_exactly(planned),
            *beyond(planned, outcome),
            *(t for ledger in ledgers.values() for t in ledger.earlier),
            *losses(planned, outcome.lost),
        ):
            note(text)
        beside = [c for c in planned.companions if any(c.target == f.target for f in done)]
        for companion in beside:
            companion.write(staging.path(companion.target.root, companion.path))
        whole: list[Planned | Companion] = [*done, *beside]
        published = [(f.target.root, f.path) for f in whole]
        if report:
            _stage_report(planned, outcome, skipped, staging.path(report.parent, report))
            published.append((report.parent, report))
        existing = clearance.check([(f.path, f.target.inputs) for f in whole])
        raise_all([] if request.force else existing)
        old = [one for one in planned.superseded if any(one.target == file.target for file in done)]
        with completed_later_if_interrupted(staging, resumable, published, old, note):
            staging.publish(published)
            for one in old:
                one.remove()
    return Result(tuple(dict.fromkeys(f.target.shown for f in done)), skipped)


def _changed(told: Sequence[str], said: Sequence[str], bad: Iterable[Path]) -> Iterator[str]:
    """Of what a plan says that which was not told of an earlier one, and what is not so any more without bad inputs."""
    of_bad = tuple(f"{path}: " for path in bad)
    for text in told:
        if text not in said and not text.startswith(of_bad):
            yield f"not so, as bad inputs are left out: {text}"
    yield from (text for text in said if text not in told)


def _idle_devices(planned: Plan) -> list[str]:
    if not any(one.name == "device" for step in planned.steps for one in step.flat()):
        return []
    from tconv.crossings import idle_devices

    return idle_devices(planned)


def _exactly(planned: Plan) -> list[str]:
    """That pictures which were for a GPU to decode were not all for it."""
    if not planned.request.gpu_jpeg:
        return []
    from tconv.devices import nvjpeg
    from tconv.explain import leaves, stored

    paths = {leaf.source.path for tensor in stored(planned) for leaf in leaves(tensor)}
    count = nvjpeg.left(paths)
    return [f"{count:,} of the JPEGs were decoded exactly, on the CPU, as the GPU did not take them"] if count else []


def _done(planned: Plan, outcome: Outcome) -> list[Planned]:
    """The files that came out whole; of shards all or none."""
    broken = {planned.files[n].target for n in outcome.unfinished if planned.files[n].target.sharded}
    return [f for n, f in enumerate(planned.files) if n not in outcome.unfinished and f.target not in broken]


def _ledgers(
    planned: Plan, staging: Staging, resumable: Iterable[Path], note: Callable[[str], None]
) -> dict[Path, Ledger]:
    """What is done of the shards below each root: nothing, unless a run is resumed."""
    ledgers = {}
    for root in resumable:
        files = [f for f in planned.files if f.target.root == root]
        ledgers[root] = ledger = Ledger(staging.folder(root), planned, files)
        for text in ledger.resume() if planned.request.resume else ():
            note(text)
    return ledgers


def _missing(planned: Plan, ledgers: Mapping[Path, Ledger]) -> dict[Path, int]:
    """Bytes that each output folder still gets."""
    return {
        root: size - sum(f.writer.size for f in planned.files if f.target.root == root and _is_done(f, ledgers))
        for root, size in planned.sizes().items()
    }


def _is_done(file: Planned, ledgers: Mapping[Path, Ledger]) -> bool:
    return file.target.root in ledgers and ledgers[file.target.root].has(file)


def _fill(planned: Plan, staging: Staging, ledgers: Mapping[Path, Ledger], progress: Progress) -> Outcome:
    """Make every output but those that are done, and enter in the ledgers those that lost nothing that is refused."""

    def finished(number: int, lost: Mapping[Place, Account]) -> None:
        file = planned.files[number]
        if file.target.root in ledgers and not _is_done(file, ledgers) and not refusals(planned, lost):
            ledgers[file.target.root].add(file, losses(planned, lost))

    outputs = [
        replace(o, writer=Done(), tensors=()) if _is_done(f, ledgers) else o
        for f, o in ((f, _output(f, f.writer, staging)) for f in planned.files)
    ]
    total = sum(t.spec.nbytes for o in outputs for i, t in enumerate(o.tensors) if o.writer.stored(i))
    progress.begin("converting", total, "bytes")
    detail = planned.request.report is not None
    runner = Runner(
        planned.workers,
        planned.request.max_memory,
        progress.advance,
        detail=detail,
        device_batch=planned.request.device_batch or BATCH,
        finished=finished,
    )
    return runner.run(outputs)


def _output(file: Planned, writer: Writer, staging: Staging) -> Output:
    return Output(writer, staging.path(file.target.root, file.path), file.path, file.stream.tensors)


def _verify(planned: Plan, done: Sequence[Planned], staging: Staging, progress: Progress) -> None:
    """Make everything once more and compare it with what is in the staged files."""
    from tconv.verify import Comparison

    again = [
        Comparison([t.spec for t in f.stream.tensors], f.stream.extra, f.target.format, f.path, f.writer.rereading)
        for f in done
    ]
    outputs = [_output(f, comparison, staging) for f, comparison in zip(done, again, strict=True)]
    progress.begin("verifying", sum(t.spec.nbytes for o in outputs for t in o.tensors), "bytes")
    raise_all(Runner(planned.workers, planned.request.max_memory, progress.advance).run(outputs).failures)


def _stage_report(planned: Plan, outcome: Outcome, skipped: Sequence[TconvError], path: Path) -> None:
    from tconv.report import render

    path.write_text(render(planned, outcome, skipped), encoding="utf8", errors="backslashreplace")
