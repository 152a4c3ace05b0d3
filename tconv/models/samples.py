"""Samples for a model: drawn by a seed, some to calibrate on and others to compare on, made batch by batch."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tconv.errors import TconvError, UsageError, raise_all
from tconv.evaluate import evaluate
from tconv.fold import prepare
from tconv.inputs import find
from tconv.pipeline import steps_from_text
from tconv.planner import workers_for
from tconv.quant.enough import FEW
from tconv.readable import readable
from tconv.steps.touch import labels
from tconv.steps.unstack import Unstack

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.request import Progress, Request
    from tconv.tensor import Tensor

_SHARE = 5  # of which one is held back where there are fewer than were asked for

T = TypeVar("T")


@dataclass(frozen=True)
class Wish:
    """How many samples to calibrate on, how many others to hold back, and the number that chooses them."""

    samples: int = 300
    held_back: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Drawn:
    """``of``: out of how many. ``skipped``: files that are of no use and left out, as asked."""

    calibration: tuple[Tensor, ...]
    held_back: tuple[Tensor, ...]
    of: int
    notes: tuple[str, ...] = ()
    skipped: tuple[TconvError, ...] = ()


def draw(request: Request, wish: Wish, progress: Progress) -> Drawn:
    """Samples of what ``request`` names, after all of its steps; of stacks and arrays every slice is one.

    Where there are too few, a fifth of them is held back. Raises ``TconvError``.
    """
    steps = [*(request.steps or steps_from_text(request.sugar.chain())), Unstack()]
    for step in steps:
        if step.needs_scan:
            why = "it depends on the values of all samples, and a model is fed one after the other"
            raise UsageError(why, remedy="leave it out of the pipeline", step=str(step))
    found = find(request.inputs, wanted=request.wanted)
    images = all(one.format.group == "image" for one in found.inputs)
    # Of images those that are not drawn are not even opened.
    chosen = _chosen(found.inputs, wish) if images else list(found.inputs)
    inputs, streams, bad = readable(request, found, chosen, progress)
    for one in inputs:
        if streams[one.path].extra.kind == "weights":
            raise TconvError("holds weights, which are no samples", remedy="name images or arrays", file=one.path)
    stream = prepare(request, inputs, streams, steps)
    known = labels(stream)
    stream = stream.with_tensors([t for t in stream.tensors if t.spec.name not in known])
    tensors = list(stream.tensors) if images else _chosen(stream.tensors, wish)
    if request.on_bad == "skip":
        tensors, unsound = _sound(tensors, workers_for(request), progress)
        bad += unsound
        if len(tensors) < 2:
            raise_all(bad)
    calibration, held_back = _divided(tensors, wish)
    of = len(found.inputs) if images else len(stream.tensors)
    return Drawn(calibration, held_back, of, (*found.notes, *stream.notes), tuple(bad))


def _chosen(items: Sequence[T], wish: Wish) -> list[T]:
    """So many as are wished for, in their order."""
    most = min(len(items), wish.samples + wish.held_back)
    return [items[n] for n in sorted(random.Random(wish.seed).sample(range(len(items)), most))]


def _divided(tensors: Sequence[Tensor], wish: Wish) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Those to calibrate on, and those that are held back; in their order."""
    if len(tensors) < 2:
        raise TconvError(
            "there is no sample to compare on besides the one to calibrate on" if tensors else "there is no sample",
            remedy=f"{FEW} to 500 are usual",
        )
    enough = len(tensors) >= wish.samples + wish.held_back
    back = wish.held_back if enough else min(wish.held_back, max(1, len(tensors) // _SHARE))
    held = set(random.Random(wish.seed).sample(range(len(tensors)), back))
    calibration = tuple(t for n, t in enumerate(tensors) if n not in held)
    return calibration[: wish.samples], tuple(t for n, t in enumerate(tensors) if n in held)


def _sound(tensors: Sequence[Tensor], workers: int, progress: Progress) -> tuple[list[Tensor], list[TconvError]]:
    """Those that can be read to their end, and what is wrong with the others."""
    progress.begin("looking for bad files", len(tensors), "files")
    kept: list[Tensor] = []
    bad: list[TconvError] = []

    def problem(tensor: Tensor) -> TconvError | None:
        try:
            value(tensor)
        except TconvError as found:
            return found
        return None

    with ThreadPoolExecutor(workers) as pool:
        for tensor, found in zip(tensors, pool.map(problem, tensors), strict=True):
            progress.advance(1)
            if found is None:
                kept.append(tensor)
            else:
                bad.append(found)
    return kept, bad


def value(tensor: Tensor) -> Array:
    """All of it. Raises ``TconvError`` for a broken file, for what a cast among the steps must not lose, for NaN and
    infinities.
    """
    try:
        made, account = evaluate(tensor)
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}", file=tensor.source.path) from problem
    except TconvError as problem:
        raise problem.at(file=tensor.source.path, tensor=tensor.spec.name) from None
    for key, lost in account.refused():
        reason = lost.describe(key.src, key.dst)
        raise TconvError(reason, file=tensor.source.path, tensor=tensor.spec.name, step=key.step)
    if tensor.spec.dtype.is_float and not np.isfinite(made).all():
        raise TconvError(
            "holds NaN or infinities, of which no model makes anything",
            remedy="clean the data, or --on-bad skip",
            file=tensor.source.path,
            tensor=tensor.spec.name,
        )
    return made


@dataclass(frozen=True)
class Batches(Sequence["Array"]):
    """``tensors`` in stacks of ``size``, the last of what is left over, each made when it is asked for."""

    tensors: Sequence[Tensor]
    size: int
    workers: int
    tell: Callable[[int], object] = int  # hears of how many samples each batch was made

    def __len__(self) -> int:
        return -(-len(self.tensors) // self.size)

    def __getitem__(self, n: int) -> Array:  # type: ignore[override]  # no slices
        if not 0 <= n < len(self):
            raise IndexError(n)
        with ThreadPoolExecutor(min(self.workers, self.size)) as pool:
            made = np.stack(list(pool.map(value, self.tensors[n * self.size : (n + 1) * self.size])))
        self.tell(len(made))
        return made

    def __iter__(self) -> Iterator[Array]:
        return (self[n] for n in range(len(self)))
