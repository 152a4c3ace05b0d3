"""The order of events: plan, fill the outputs staged beside their targets, judge what was lost, publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tconv import targets
from tconv.errors import TconvError, raise_all
from tconv.planner import SKIP_REMEDY, Plan, plan
from tconv.request import Progress, Request
from tconv.runner import Outcome, Output, Place, Runner
from tconv.staging import Staging, check_space


@dataclass(frozen=True)
class Result:
    """What a job did. ``shown``: what stdout says, one line a target; ``skipped``: bad inputs left out, as asked."""

    shown: tuple[str, ...]
    skipped: tuple[TconvError, ...]


def convert(request: Request, progress: Progress, note: Callable[[str], None], tell: Callable[[Plan], None]) -> Result:
    """Do all of it; ``note`` hears one sentence at a time what the user should know, ``tell`` the plan.

    Raises ``TconvError``, and whatever it raises, nothing has been written.
    """
    bad: dict[Path, TconvError] = {}
    while True:
        planned = plan(request, progress, bad)
        for text in planned.notes if not bad else ():
            note(text)
        tell(planned)
        check_space(planned.sizes())
        with Staging({f.target.root for f in planned.files}) as staging:
            outcome = _fill(planned, staging, progress)
            if outcome.failures and request.on_bad == "error":
                raise_all(outcome.failures, remedy=SKIP_REMEDY if len(outcome.failures) > 1 else "")
            bad |= {Path(e.file): e for e in outcome.failures}
            if any(len(planned.files[n].target.inputs) > 1 for n in outcome.unfinished):
                continue  # a bad input among good ones of the same file: plan again without it
            _refuse_overflow(planned, outcome)
            _tell_losses(planned, outcome, note)
            done = [f for n, f in enumerate(planned.files) if n not in outcome.unfinished]
            if not done:
                raise_all(outcome.failures, remedy="no input was left, so nothing was written")
            targets.check([(f.path, f.target.inputs) for f in done], request.force)
            staging.publish([(f.target.root, f.path) for f in done])
        shown = tuple(dict.fromkeys(f.target.shown for f in done))
        return Result(shown, (*planned.skipped, *outcome.failures))


def _fill(planned: Plan, staging: Staging, progress: Progress) -> Outcome:
    outputs = [Output(f.writer, staging.path(f.target.root, f.path), f.path, f.stream.tensors) for f in planned.files]
    total = sum(t.spec.nbytes for o in outputs for i, t in enumerate(o.tensors) if o.writer.stored(i))
    progress.begin("converting", total, "bytes")
    return Runner(planned.workers, planned.request.max_memory, progress.advance).run(outputs)


def _refuse_overflow(planned: Plan, outcome: Outcome) -> None:
    """Refuse what did not fit, every tensor by its name, the one with the most values first."""
    found: list[tuple[int, TconvError]] = []
    for place, account in outcome.lost.items():
        file, name = _where(planned, place)
        for key, lost in account.refused():
            reason = lost.describe(key.src, key.dst)
            count = lost.overflow + lost.infinite + lost.nan
            found.append(
                (count, TconvError(reason, file=file, tensor=name, step=key.step, remedy=lost.remedy(key.dst)))
            )
    found.sort(key=lambda pair: -pair[0])
    raise_all([problem for _, problem in found])


def _tell_losses(planned: Plan, outcome: Outcome, note: Callable[[str], None]) -> None:
    """One line for each tensor that lost something and was allowed to."""
    for place, account in outcome.lost.items():
        file, name = _where(planned, place)
        for key, lost in account.by_cast.items():
            if lost:
                note(str(TconvError(lost.describe(key.src, key.dst), file=file, tensor=name, step=key.step)))


def _where(planned: Plan, place: Place) -> tuple[Path, str]:
    tensor = planned.files[place.output].stream.tensors[place.tensor]
    return (place.part, "") if place.part else (tensor.source.path, tensor.spec.name)
