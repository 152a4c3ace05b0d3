"""The order of events: samples, what the model takes, its quantizer staged beside the target, the comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import __version__
from tconv.errors import TconvError, UsageError
from tconv.models.agreement import Comparison
from tconv.models.route import How, route_for
from tconv.models.samples import Batches, Drawn, Wish, draw
from tconv.models.wanted import Wanted, check
from tconv.planner import workers_for
from tconv.pooled import where
from tconv.quant.enough import advice
from tconv.staging import Staging

if TYPE_CHECKING:
    from tconv.models.route import Route, Run
    from tconv.request import Progress, Request
    from tconv.tensor import Tensor


@dataclass(frozen=True)
class Asked:
    """What is to be done with the model at ``model``. ``request``: what the samples are made of, and all of where and
    how; its ``output`` may be None, for a file beside the model.
    """

    model: Path
    request: Request
    wish: Wish = field(default_factory=Wish)
    how: How = field(default_factory=How)
    min_agreement: float | None = None
    min_sqnr: float | None = None


@dataclass(frozen=True)
class Result:
    """What was done. ``shown``: what stdout says of it; ``bytes``: of the model before and after."""

    asked: Asked
    shown: str
    bytes: tuple[int, int]
    drawn: Drawn
    comparison: Comparison

    def as_json(self) -> dict[str, Any]:
        """What the help of ``tconv quantize-model`` says."""
        how, request = self.asked.how, self.asked.request
        return {
            "model": str(self.asked.model),
            "output": self.shown,
            "bytes": {"before": self.bytes[0], "after": self.bytes[1]},
            "outputs": {name: output.as_json() for name, output in self.comparison.outputs.items()},
            "method": how.method,
            "percentile": how.percentile,
            "per_channel": how.per_channel,
            "activations": how.activations,
            "io": how.io,
            "steps": " | ".join(request.sugar.chain() or map(str, request.steps)),
            "seed": self.asked.wish.seed,
            "of": self.drawn.of,
            "calibrated_on": [_named(t) for t in self.drawn.calibration],
            "compared_on": [_named(t) for t in self.drawn.held_back],
            "skipped": [{"path": problem.file, "reason": problem.reason} for problem in self.drawn.skipped],
            "tconv": __version__,
        }


def quantize_model(asked: Asked, progress: Progress, note: Callable[[str], None]) -> Result:
    """Do all of it; ``note`` hears what the user should know. Raises ``TconvError``, and then nothing is written."""
    request = asked.request
    route = route_for(asked.model, workers_for(request))
    route.check(asked.how)
    shown = request.output or str(asked.model.with_name(f"{asked.model.stem}.int8{route.suffix}"))
    if not shown.endswith(route.suffix):
        raise UsageError(f"-o {shown}: what is written is {route.suffix}", remedy=f"for example -o model{route.suffix}")
    target = where(Path(shown), route.files, request.force)
    report = request.report and where(request.report, route.files, request.force)
    if report == target:
        raise UsageError(f"--report {request.report} is where the model goes", remedy="give it another name")
    wanted = route.wanted
    drawn = draw(request, asked.wish, progress)
    for text in dict.fromkeys(drawn.notes):
        note(text)
    check(wanted, [*drawn.calibration, *drawn.held_back])
    drawn, size = _in_batches(drawn, wanted, route)
    workers = workers_for(request)
    calibration, held_back = (
        Batches(some, size, workers, progress.advance) for some in (drawn.calibration, drawn.held_back)
    )
    for text in (*route.advice(), *advice(len(drawn.calibration))):
        note(text)
    with _about(asked.model):  # before what takes long
        _with_itself(route, held_back).refuse_unmeasured(asked.min_agreement, asked.min_sqnr)
    before = sum(part.stat().st_size for part in route.files)  # what is made may come to lie among them
    with Staging({target.parent} | ({report.parent} if report else set())) as staging:
        path = staging.path(target.parent, target)
        progress.begin("calibrating", len(drawn.calibration), "files")
        route.quantize(calibration, asked.how, path)
        with _about(asked.model):
            comparison = _compared(route, route.reopened(path), held_back, progress)
            comparison.check(asked.min_agreement, asked.min_sqnr)
        result = Result(asked, shown, (before, path.stat().st_size), drawn, comparison)
        published = [(target.parent, target)]
        if report:
            text = json.dumps(result.as_json(), indent=1, ensure_ascii=False) + "\n"
            staging.path(report.parent, report).write_text(text, encoding="utf8", errors="backslashreplace")
            published.append((report.parent, report))
        where(Path(shown), route.files, request.force)  # what came to be there meanwhile is not replaced
        staging.publish(published)
    return result


def _in_batches(drawn: Drawn, wanted: Wanted, route: Route) -> tuple[Drawn, int]:
    """The samples that are used, and how many at once: where the model says of how many, all batches are whole."""
    size = min(wanted.batch, route.largest or wanted.batch)
    if not wanted.whole:
        return drawn, size
    calibration, held_back = (some[: len(some) // size * size] for some in (drawn.calibration, drawn.held_back))
    if not calibration or not held_back:
        have = f"{len(drawn.calibration)} and {len(drawn.held_back)}"
        raise TconvError(
            f"the model takes {size} samples at once, and there are {have} to calibrate and to compare on",
            remedy="give it more",
        )
    return replace(drawn, calibration=calibration, held_back=held_back), size


@contextmanager
def _about(model: Path) -> Iterator[None]:
    """Errors that name no file are about the model."""
    try:
        yield
    except TconvError as problem:
        raise problem.at(file=model) from problem.__cause__


def _with_itself(route: Route, batches: Batches) -> Comparison:
    """The float model compared with itself on one batch: what of its outputs can be measured."""
    batch, found = batches[0], Comparison()
    outputs = route.run(batch)
    found.add(outputs, outputs, len(batch))
    return found


def _compared(route: Route, after: Run, batches: Batches, progress: Progress) -> Comparison:
    progress.begin("comparing", len(batches.tensors), "files")
    found = Comparison()
    for batch in batches:
        found.add(route.run(batch), after(batch), len(batch))
    return found


def _named(tensor: Tensor) -> str:
    """The file of a sample, and which of it where it holds several."""
    path, name = str(tensor.source.path), tensor.spec.name
    return path if path.endswith(name) else f"{path}: {name}"
