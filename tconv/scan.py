"""Goes through the values of tensors and writes nothing: in a few threads, piece by piece, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tconv.account import Account
from tconv.outcome import Output
from tconv.parts import Parts
from tconv.request import Progress, Silent
from tconv.runner import Runner, default_workers
from tconv.tensor import Spec, Tensor, Writer

if TYPE_CHECKING:
    from tconv.errors import TconvError
    from tconv.ops import Array

    # Called as visit(i, lo, values) from any thread: elements [lo, lo + values.size) of tensor i, flat, in C order.
    # The array is used again when it returns.
    Visit: TypeAlias = Callable[[int, int, Array], None]

MAX_MEMORY = 1 << 30  # bytes for the values under way, however large the tensors are


def scan(
    tensors: Sequence[Tensor], visit: Visit, progress: Progress | None = None, max_memory: int = MAX_MEMORY
) -> list[TconvError]:
    """Show ``visit`` every value of every tensor. Returns what could not be read, each with its file and tensor."""
    progress = progress or Silent()
    progress.begin("reading values", sum(t.spec.nbytes for t in tensors), "bytes")
    nowhere = Path()
    output = Output(_Visited(visit), nowhere, nowhere, tensors)
    return Runner(default_workers(), max_memory, progress.advance).run([output]).failures


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


def accounts(
    tensors: Sequence[Tensor], detail: bool, workers: int, max_memory: int, progress: Progress
) -> list[Account]:
    """What the casts of every tensor would lose. Raises ``Unreadable``."""
    progress.begin("reading values", sum(t.spec.nbytes for t in tensors), "bytes")
    output = Output(_Visited(lambda _i, _lo, _values: None), Path(), Path(), tensors)
    outcome = Runner(workers, max_memory, progress.advance, detail=detail, every=True).run([output])
    if outcome.failures:
        raise Unreadable(outcome.failures)
    found = [Account() for _ in tensors]
    for place, account in outcome.lost.items():
        found[place.tensor] += account
    return found


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
