"""What the values of many files together are like: mean and std of each channel, as normalize wants them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import __version__, registry
from tconv.clearance import check_report
from tconv.errors import TconvError, raise_all
from tconv.fold import prepare
from tconv.inputs import Input, find
from tconv.measure.totals import UNIT, Source, Totals, channels_of
from tconv.pipeline import steps_from_text
from tconv.planner import SKIP_REMEDY, workers_for
from tconv.readable import readable
from tconv.runner import ENOUGH
from tconv.scan import look
from tconv.staging import Staging

if TYPE_CHECKING:
    from tconv.measure.pool import Powers
    from tconv.outcome import Outcome
    from tconv.request import Progress, Request
    from tconv.step import Step
    from tconv.tensor import Range, Stream, Tensor

_LETTERS = {"rgb": "RGB", "bgr": "BGR", "rgba": "RGBA", "gray": "Y"}


@dataclass(frozen=True)
class Sample:
    """So many files of all, chosen at random; the same ones for the same seed."""

    size: int
    seed: int = 0


@dataclass(frozen=True)
class Statistics:
    """``channels``: what each is like, all values of all files counting the same; ``letters`` names them ("RGB"), or
    is empty. ``of``: how many files there were to choose from. ``range``: where the values lie that they are of, None
    if nobody knows, or not all lie in the same.
    """

    channels: tuple[Powers, ...]
    letters: str
    files: int
    of: int
    sample: Sample | None
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    skipped: tuple[TconvError, ...]
    range: Range | None

    def constant(self) -> list[int]:
        """The channels that have one value everywhere: nothing can be divided by their std, which is 0."""
        return [n for n, channel in enumerate(self.channels) if not channel.std]

    def as_json(self) -> dict[str, Any]:
        """What the help of ``tconv stats`` says; ``normalize`` takes it as a stats file."""
        return {
            "mean": [channel.mean for channel in self.channels],
            "std": [channel.std for channel in self.channels],
            "min": [float(channel.lowest or 0) for channel in self.channels],
            "max": [float(channel.highest or 0) for channel in self.channels],
            "range": self.range and list(self.range),
            "count": self.channels[0].count,
            "channels": self.letters or None,
            "files": self.files,
            "sample": self.sample and {"of": self.of, "seed": self.sample.seed},
            "steps": " | ".join(map(str, self.steps)),
            "sources": [
                {"dtype": s.dtype, "range": s.known and list(s.known), "tensors": s.tensors} for s in self.sources
            ],
            "tconv": __version__,
        }


def pool(request: Request, progress: Progress, *, sample: Sample | None = None, raw: bool = False) -> Statistics:
    """Mean and std of every channel of what ``request`` names, after its steps up to ``normalize``.

    Values are those of the known range taken to [0, 1], as ``scale`` does, or with ``raw`` as they are. Of integers of
    up to 16 bits the result is exact, rounded once; in any case it is the same whatever the number of threads. Raises
    ``TconvError``, also for bad files unless the request says to skip them.
    """
    steps = up_to_normalize(request.steps or steps_from_text(request.sugar.chain()))
    found = find(request.inputs, wanted=request.wanted)
    inputs, streams, bad = readable(request, found, sampled(found.inputs, sample), progress)
    refuse_weights(inputs, streams)
    stream = prepare(request, inputs, streams, steps)
    raw = raw or any(step.name == "scale" for step in steps) or all(map(_in_unit, stream.tensors))
    tensors = _touched(stream, raw)
    refuse_unlike(tensors)
    sums = Totals(tensors, raw)
    outcome = look(tensors, sums.visit, workers_for(request), request.max_memory, progress)
    failures = [*outcome.failures, *sums.failures()]
    if failures and (request.on_bad == "error" or len(failures) >= ENOUGH):
        raise_all(failures, remedy=SKIP_REMEDY if len(failures) > 1 else "")
    raise_all(refused(outcome, tensors))
    channels = sums.channels()
    if not channels:
        raise_all(failures)
        raise TconvError("there are no values", remedy="every tensor is empty")
    return Statistics(
        channels,
        letters_of(request, inputs, len(channels)),
        len(sums.files()),
        len(found.inputs),
        sample if len(inputs) < len(found.inputs) else None,
        sums.sources(),
        steps,
        tuple(dict.fromkeys([*found.notes, *stream.notes, *_unnamed(tensors), *_outside(outcome, tensors)])),
        (*bad, *failures),
        _common_range(tensors) if raw else UNIT,
    )


def _common_range(tensors: Sequence[Tensor]) -> Range | None:
    first, *others = {tensor.spec.range for tensor in tensors}
    return None if others else first


def up_to_normalize(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps that change what there is to measure. Order of axes and stacking do not; and where the last that is
    done to values is to take them to [0, 1], that is done exactly later.
    """
    kept: list[Step] = []
    for step in steps:
        if step.name == "normalize":
            break
        if step.name not in ("permute", "stack"):
            kept.append(step)
    last = next((n for n in reversed(range(len(kept))) if kept[n].name != "crop"), None)
    if last is not None and str(kept[last]) == "scale":
        del kept[last]
    return tuple(kept)


def save(statistics: Statistics, path: Path, force: bool) -> None:
    """Write the file that ``--stats`` takes, whole or not at all."""
    if flat := statistics.constant():
        raise TconvError(
            f"channel {' and '.join(map(str, flat))} has the same value everywhere: there is no std to divide by",
            remedy="without -o the numbers are shown",
        )
    real = where(path, (), force)
    with Staging({real.parent}) as staging:
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in statistics.as_json().items()]
        staging.path(real.parent, real).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf8")
        staging.publish([(real.parent, real)])


def where(path: Path, inputs: Sequence[Path], force: bool) -> Path:
    """The real path of a file to write; refused where something else is, and unless ``force`` what is there already."""
    real = Path(os.path.realpath(path))
    if any(one.exists() and real.exists() and one.samefile(real) for one in inputs):
        raise TconvError("this would replace an input", remedy="give it another name", file=path)
    existing = check_report(real, inputs, ())
    raise_all([] if force else existing)
    return real


def sampled(inputs: Sequence[Input], sample: Sample | None) -> list[Input]:
    if sample is None or sample.size >= len(inputs):
        return list(inputs)
    chosen = random.Random(sample.seed).sample(range(len(inputs)), sample.size)
    return [inputs[n] for n in sorted(chosen)]


def refuse_weights(inputs: Sequence[Input], streams: dict[Path, Stream]) -> None:
    for one in inputs:
        if streams[one.path].extra.kind == "weights":
            raise TconvError(
                "holds weights, which are no data set",
                remedy="tconv inspect --values tells what their values are like",
                file=one.path,
            )


def _in_unit(tensor: Tensor) -> bool:
    """Whether its values were scaled before, by the chain that wrote the file."""
    return tensor.spec.dtype.is_float and tensor.spec.range == UNIT


def _touched(stream: Stream, raw: bool) -> list[Tensor]:
    """The tensors that ``scale`` (or, of raw values, ``normalize``) would change; it refuses what it always does."""
    kind: Any = registry.step("normalize" if raw else "scale")
    step: Step = kind(mean=0.0, std=1.0) if raw else kind()
    try:
        changed = step.apply(stream)
    except TconvError as problem:
        if not raw and any(t.spec.range is None for t in stream.tensors):
            problem.remedy = "; ".join(filter(None, (problem.remedy, "--raw takes values as they are")))
        raise
    pairs = zip(stream.tensors, changed.tensors, strict=True)
    return [before for before, after in pairs if len(after.ops) > len(before.ops)]


def refuse_unlike(tensors: Sequence[Tensor]) -> None:
    """Refuse tensors of different numbers of channels."""
    first = tensors[0]
    for other in tensors[1:]:
        a, b = channels_of(first).count, channels_of(other).count
        if a != b:
            raise TconvError(
                f"{first.source.path} has {a} channel{'s' * (a != 1)} and {other.source.path} has {b}",
                remedy="statistics are of one number of channels: choose files, or read images without --channels keep",
            )


def _unnamed(tensors: Sequence[Tensor]) -> list[str]:
    """A note on arrays of which nobody said which axis the channels are."""
    names = [str(t.source.path) for t in tensors if t.spec.axes is None and len(t.spec.shape) > 1]
    if not names:
        return []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [f"{names[0]}{more}: taken as one channel; --input-layout NCHW, say, names the axes"]


def letters_of(request: Request, inputs: Sequence[Input], count: int) -> str:
    images = all(one.format.group == "image" for one in inputs)
    found = _LETTERS.get(request.read.channels, "") if images else ""
    return found if len(found) == count else ""


def refused(outcome: Outcome, tensors: Sequence[Tensor]) -> list[TconvError]:
    """The casts among the steps that lost what they must not."""
    found = []
    for place, account in outcome.lost.items():
        tensor = tensors[place.tensor]
        for key, lost in account.refused():
            reason, remedy = lost.describe(key.src, key.dst), lost.remedy(key.dst)
            at = {"file": str(tensor.source.path), "tensor": tensor.spec.name, "step": key.step}
            found.append(TconvError(reason, remedy=remedy, **at))
    return found


def _outside(outcome: Outcome, tensors: Sequence[Tensor]) -> list[str]:
    """What lay outside the range that was stated."""
    found = []
    for place, account in sorted(outcome.lost.items()):
        tensor = tensors[place.tensor]
        for stated, lost in account.by_range.items():
            if lost:
                reason = lost.outside(stated.range, stated.dtype)
                problem = TconvError(reason, file=tensor.source.path, tensor=tensor.spec.name)
                problem.remedy = "say the true range with --range LO,HI"
                found.append(str(problem))
    return found
