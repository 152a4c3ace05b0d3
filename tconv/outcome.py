"""What a run is given and what it gives back: files to fill, and what became of every tensor in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tconv.account import Account
from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.tensor import Tensor
    from tconv.writer import Writer


@dataclass
class Output:
    """One file to fill: a planned writer, where to stage it for which target, and the tensors in the plan's order."""

    writer: Writer
    path: Path
    target: Path
    tensors: Sequence[Tensor]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A full disk, say, is the target's problem and ends the job."""
        try:
            yield
        except OSError as problem:
            raise TconvError(f"cannot be written: {problem.strerror or problem}", file=self.target) from problem


class Place(NamedTuple):
    """A tensor of an output, and of a stack the part, by its number; None where the whole stack was made at once."""

    output: int
    tensor: int
    part: int | None


@dataclass
class Outcome:
    """What the casts lost and where, what could not be read or made, and which outputs are therefore unfinished.

    ``beyond``: the piece that took more memory than the limit, the worst of them, and its bytes. ``notes``: what else
    the user should hear.
    """

    lost: dict[Place, Account] = field(default_factory=dict)
    failures: list[TconvError] = field(default_factory=list)
    unfinished: set[int] = field(default_factory=set)
    beyond: tuple[Place, int] | None = None
    notes: list[str] = field(default_factory=list)
