"""What every step of a chain is: parameters, what it makes of a stream, and what it has to know of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from typing import TypeAlias

    from tconv.account import Account
    from tconv.ops import Array
    from tconv.tensor import Stream, Tensor

    # Called as visit(i, lo, values) from any thread: elements [lo, lo + values.size) of tensor i, flat, in C order.
    # The array is used again when it returns.
    Visit: TypeAlias = Callable[[int, int, Array], None]


class Scan(Protocol):
    """Goes through all values of tensors without writing any."""

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> Sequence[Account]:
        """What their casts lose, with details if asked for."""
        ...

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        """Show them all to ``visit``."""
        ...


@dataclass(frozen=True)
class Rules:
    """What options say of casts and of quantization, for steps whose own text leaves it open. ``otherwise``: the float
    that is made of what is not quantized.
    """

    on_overflow: str | None = None
    keep: tuple[str, ...] = ()
    policy: str | None = None
    max_error: float | None = None
    min_sqnr: float | None = None
    otherwise: str | None = None


class Step(ABC):
    """One link of the chain: a frozen dataclass whose fields are its parameters.

    Bad parameters raise ``UsageError`` at construction, before any file is opened; what does not fit the tensors
    raises ``TconvError`` in ``apply``, from specs alone.
    """

    name: ClassVar[str]
    usage: ClassVar[str] = ""  # how it is written, an example or several: "resize(224), resize(256x192)"
    rounds: ClassVar[bool] = False  # whether its results are rounded to a dtype, which they may overflow
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}  # the words that a parameter takes, where they are known
    open_choices: ClassVar[Sequence[str]] = ()  # the parameters among them that take other words too
    # Whether it looks at tensors together: at all of them, or with --batch-size at those of one batch.
    gathers: ClassVar[bool] = False
    heeds: ClassVar[frozenset[str]] = frozenset()  # the ``Rules`` that it has parameters for

    @abstractmethod
    def apply(self, stream: Stream) -> Stream: ...

    @property
    def needs_scan(self) -> bool:
        """Whether values decide what it does, so that ``fit`` must come before ``apply``."""
        return False

    def fit(self, stream: Stream, scan: Scan) -> tuple[Step, tuple[str, ...]]:
        """The same step with what the values of ``stream`` decide settled, and a note on each decision."""
        return self, ()

    def flat(self) -> Iterator[Step]:
        """The step itself, or where it is made of steps those, in their order."""
        yield self

    def each(self, change: Callable[[Step], Step]) -> Step:
        """The step with ``change`` done to it, or where it is made of steps to each of those."""
        return change(self)

    def heeding(self, rules: Rules) -> Step:
        """The step with what ``rules`` say, where its own text says nothing else."""
        return self

    @abstractmethod
    def __str__(self) -> str:
        """The step as it is written in a chain: ``resize(224)``; parses back to an equal step."""
