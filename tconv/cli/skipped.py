"""What is said of bad inputs that were left out, as asked: every one by its name, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tconv.notes import kind

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.errors import TconvError

EACH = 20  # so many have a line of their own; of more only the first few of a kind have
FEW = 3
NAMED = 100  # others of the same kind that one line names


def tell(problems: Sequence[TconvError], terminal: Console) -> None:
    """A line each, or where there are many one for all that is alike; ``--verbose`` and ``--report`` have all of it."""
    from tconv.planner import in_order

    problems = in_order(problems)
    many = len(problems) > EACH and not terminal.verbose
    for line in _folded(problems) if many else map(str, problems):
        terminal.each(f"skipped: {line}")


def _folded(problems: Sequence[TconvError]) -> Iterator[str]:
    groups: dict[str, list[TconvError]] = {}
    for problem in problems:
        groups.setdefault(f"{problem.step} {kind(problem.reason)}", []).append(problem)
    for group in groups.values():
        yield from map(str, group[:FEW])
        rest = [problem.place() for problem in group[FEW:]]
        if rest:
            more = f" and {len(rest) - NAMED:,} more (-v and --report name them)" if len(rest) > NAMED else ""
            yield f"likewise {', '.join(rest[:NAMED])}{more}"
