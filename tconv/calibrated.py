"""The ranges, scales and zero points for what a pipeline gives, found over a whole data set at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv import __version__
from tconv.errors import TconvError, UsageError, raise_all
from tconv.fold import prepare
from tconv.inputs import find
from tconv.pipeline import steps_from_text
from tconv.planner import SKIP_REMEDY, workers_for
from tconv.pooled import letters_of, refuse_unlike, refuse_weights, refused, sampled, where
from tconv.quant.enough import advice, pictures
from tconv.quant.observe import Channels, channels
from tconv.quant.ranges import Asked, Calibration, ranges
from tconv.readable import readable
from tconv.scan import Unreadable, look
from tconv.staging import Staging
from tconv.steps.touch import labels

if TYPE_CHECKING:
    from tconv.account import Account
    from tconv.pooled import Sample
    from tconv.quant.grid import Grid
    from tconv.quant.ranges import Ranges
    from tconv.request import Progress, Request
    from tconv.step import Step, Visit
    from tconv.tensor import Tensor

_ALL, _EACH = "all values", "each channel"  # the two pools


@dataclass(frozen=True)
class Calibrated:
    """``whole``: one range of all values; ``each``: one of each channel, None where nobody knows the axis of channels.
    ``of``: how many files there were to choose from.
    """

    grid: Grid
    how: Calibration
    whole: Ranges
    each: Ranges | None
    letters: str
    files: int
    of: int
    sample: Sample | None
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    skipped: tuple[TconvError, ...]

    def entries(self, found: Ranges) -> list[dict[str, Any]]:
        """Of every channel what there is to know."""
        scale, zero = self.grid.parameters(found.low, found.high)
        zeros = np.zeros(len(scale), int) if zero is None else zero.astype(int)
        rows = zip(found.least, found.greatest, *self.grid.covering(found.low, found.high), scale, zeros, strict=True)
        names = ("min", "max", "low", "high", "scale", "zero_point")
        return [dict(zip(names, (*map(float, row[:5]), int(row[5])), strict=True)) for row in rows]

    def as_json(self) -> dict[str, Any]:
        """What the help of ``tconv stats`` says."""
        return {
            "calibrate": self.how.method,
            "percentile": self.how.percentile if self.how.method == "percentile" else None,
            "dtype": self.grid.name,
            "scheme": self.grid.scheme,
            "per_tensor": self.entries(self.whole)[0],
            "per_channel": None if self.each is None else self.entries(self.each),
            "channels": self.letters or None,
            "files": self.files,
            "sample": self.sample and {"of": self.of, "seed": self.sample.seed},
            "steps": " | ".join(map(str, self.steps)),
            "tconv": __version__,
        }


def calibrate(request: Request, text: str, method: str, progress: Progress, sample: Sample | None) -> Calibrated:
    """Ranges of what comes of all that ``request`` names after all of its steps, for ``quantize(text)`` by ``method``.

    The values of all files count the same. Raises ``TconvError``, also for bad files unless the request says to skip
    them.
    """
    grid, how = _asked(text, method)
    steps = tuple(request.steps or steps_from_text(request.sugar.chain()))
    for step in steps:
        if step.needs_scan:
            raise UsageError(
                "ranges are looked for before anything is quantized", remedy="leave it out", step=str(step)
            )
    found = find(request.inputs, wanted=request.wanted)
    inputs, streams, bad = readable(request, found, sampled(found.inputs, sample), progress)
    refuse_weights(inputs, streams)
    stream = prepare(request, inputs, streams, steps)
    known = labels(stream)
    stream = stream.with_tensors([t for t in stream.tensors if t.spec.name not in known])
    _refuse_integers(stream.tensors)
    _refuse_none(stream.tensors)
    refuse_unlike(stream.tensors)
    tensors, (whole, each), unreadable = _looked_at(request, stream.tensors, grid, how, progress)
    return Calibrated(
        grid,
        how,
        whole,
        each,
        letters_of(request, inputs, 0 if each is None else len(each.low)),
        len({t.source.path for t in tensors}),
        len(found.inputs),
        sample if len(inputs) < len(found.inputs) else None,
        steps,
        tuple(dict.fromkeys([*found.notes, *stream.notes, *advice(pictures(t.spec for t in tensors))])),
        (*bad, *unreadable),
    )


def save(found: Calibrated, path: Path, force: bool) -> None:
    """Write them as JSON, whole or not at all."""
    real = where(path, (), force)
    with Staging({real.parent}) as staging:
        text = json.dumps(found.as_json(), indent=1) + "\n"
        staging.path(real.parent, real).write_text(text, encoding="utf8")
        staging.publish([(real.parent, real)])


def _asked(text: str, method: str) -> tuple[Grid, Calibration]:
    """What ``text`` says of the grid, as in ``quantize(…)``."""
    (made,) = steps_from_text([f"quantize({text}, calibrate={method})"])
    quant: Any = made
    if quant.axis != "auto" or quant.group is not None or quant.keep or quant.min_sqnr is not None:
        raise UsageError(
            f"--quantize '{text}': ranges are of all values and of each channel, with no axis, group, keep or min_sqnr",
            remedy="for example --quantize uint8, 'int8, scheme=affine' or 'int8, percentile=99.99'",
        )
    return quant.grid, Calibration(method, quant.percentile)  # type: ignore[arg-type]  # the step has checked it


def _refuse_integers(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if not tensor.spec.dtype.is_float:
            raise TconvError(
                f"{tensor.spec.dtype} values are not quantized",
                remedy="take a pipeline that scales (--step 'resize(224x224) | scale', --pipeline imagenet), "
                "or leave it out (--skip)",
                file=tensor.source.path,
                tensor=tensor.spec.name,
            )


def _refuse_none(tensors: Sequence[Tensor]) -> None:
    if not any(t.spec.size for t in tensors):
        raise TconvError("there is no value of which there could be a range", remedy="name data that have some")


def _looked_at(
    request: Request, tensors: Sequence[Tensor], grid: Grid, how: Calibration, progress: Progress
) -> tuple[Sequence[Tensor], tuple[Ranges, Ranges | None], list[TconvError]]:
    """The tensors that could be read, their ranges, and what is wrong with the others."""
    bad: list[TconvError] = []
    while True:
        wide = all(t.spec.axis("C") is not None for t in tensors)
        asked = [Asked(t, grid, channels(t.spec, None, None), _ALL) for t in tensors]
        asked += [Asked(t, grid, Channels(t.spec.shape, t.spec.axis("C")), _EACH) for t in tensors if wide]
        try:
            found = ranges(asked, _Looking(request, progress), how, "leave it out (--skip)")
        except Unreadable as unreadable:
            bad += unreadable.failures
            broken = {problem.file for problem in unreadable.failures}
            tensors = [t for t in tensors if str(t.source.path) not in broken]
            if request.on_bad == "error" or not tensors:
                raise_all(bad, remedy=SKIP_REMEDY if len(bad) > 1 else "")
            continue
        return tensors, (found[0], found[-1] if wide else None), bad


@dataclass(frozen=True)
class _Looking:
    """A ``step.Scan`` that refuses what casts among the steps must not lose."""

    request: Request
    progress: Progress

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> Sequence[Account]:
        raise AssertionError("ranges look at values only")

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        outcome = look(tensors, visit, workers_for(self.request), self.request.max_memory, self.progress)
        if outcome.failures:
            raise Unreadable(outcome.failures)
        raise_all(refused(outcome, tensors))
