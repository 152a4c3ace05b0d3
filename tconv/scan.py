"""Goes through the values of tensors and writes nothing: in a few threads, piece by piece, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.account import Account
from tconv.outcome import Outcome, Output
from tconv.parts import Parts
from tconv.request import Progress, Silent
from tconv.runner import Runner, default_workers
from tconv.tensor import Spec, Tensor
from tconv.writer import Writer

if TYPE_CHECKING:
    from tconv.errors import TconvError
    from tconv.ops import Array
    from tconv.step import Visit

MAX_MEMORY = 1 << 30  # bytes for the values under way, however large the tensors are


def scan(
    tensors: Sequence[Tensor], visit: Visit, progress: Progress | None = None, max_memory: int = MAX_MEMORY
) -> list[TconvError]:
    """Show ``visit`` every value of every tensor. Returns what could not be read, each with its file and tensor."""
    return look(tensors, visit, default_workers(), max_memory, progress or Silent()).failures


def look(tensors: Sequence[Tensor], visit: Visit, workers: int, max_memory: int, progress: Progress) -> Outcome:
    """The same with all that came of it: what the casts of the tensors lost, too."""
    progress.begin("reading values", sum(t.spec.nbytes for t in tensors), "bytes")
    output = Output(_Visited(visit), Path(), Path(), tensors)
    return Runner(workers, max_memory, progress.advance).run([output])


def undecodable(tensors: Sequence[Tensor], workers: int, max_memory: int, progress: Progress) -> list[TconvError]:
    """What is wrong with the files of ``tensors`` that only decoding them tells."""
    made_of = [part for t in tensors for part in (t.source.parts if isinstance(t.source, Parts) else (t,))]
    sources = {id(t.source): t for t in made_of if not t.source.seekable}
    stored = [Tensor(Spec(t.spec.name, t.source.dtype, t.source.shape), t.source) for t in sources.values()]
    progress.begin("reading values", sum(t.spec.nbytes for t in stored), "bytes")
    output = Output(_Visited(lambda _i, _lo, _values: None), Path(), Path(), stored)
    return Runner(workers, max_memory, progress.advance).run([output]).failures


class Unreadable(Exception):  # noqa: N818  # it carries errors, and is none that a user sees
    """Inputs whose values could not be read."""

    def __init__(self, failures: Sequence[TconvError]) -> None:
        super().__init__(f"{len(failures)} inputs")
        self.failures = list(failures)


@dataclass(frozen=True)
class Scanner:
    """The ``step.Scan`` of a job, in so many threads and so much memory. Raises ``Unreadable``."""

    workers: int
    max_memory: int
    progress: Progress

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> list[Account]:
        self.progress.begin("reading values", sum(t.spec.nbytes for t in tensors), "bytes")
        output = Output(_Visited(lambda _i, _lo, _values: None), Path(), Path(), tensors)
        runner = Runner(self.workers, self.max_memory, self.progress.advance, detail=detail, every=True)
        outcome = runner.run([output])
        if outcome.failures:
            raise Unreadable(outcome.failures)
        found = [Account() for _ in tensors]
        for place, account in outcome.lost.items():
            found[place.tensor] += account
        return found

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        """Show ``visit`` every value of every tensor."""
        outcome = look(tensors, visit, self.workers, self.max_memory, self.progress)
        if outcome.failures:
            raise Unreadable(outcome.failures)


class _Visited(Writer):
    """Takes what the runner makes of the tensors, as a writer does, and shows it to ``visit``."""

    def __init__(self, visit: Visit) -> None:
        self.size = 0
        self._visit = visit

    def open(self, path: Path) -> None: ...

    def write(self, i: int, lo: int, array: Array) -> None:
        self._visit(i, lo, array)

    def commit(self) -> None: ...
    def abort(self) -> None: ...
