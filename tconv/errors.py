"""What tconv says when it refuses: which file, which tensor, which step, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHOWN = 20  # how many kinds of problems in a list are spelled out before the rest is only counted
ALIKE = 3  # how many that differ only in their file and tensor


class TconvError(Exception):
    """Something that a user can understand and act on; printed without a traceback.

    ``reason`` says what is wrong, ``remedy`` what to do; ``file``, ``tensor`` and ``step`` say where. Code that
    does not know the place leaves it out and ``at`` adds it further up. ``by_itself``: it is about that one file,
    whatever others there are, so that they can go on without it.
    """

    exit_code = 1
    by_itself = False

    def __init__(
        self,
        reason: str,
        *,
        remedy: str = "",
        file: str | Path = "",
        tensor: str = "",
        step: str = "",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.file = str(file)
        self.tensor = tensor
        self.step = step

    def __reduce__(self) -> Any:
        """Pickled as it is: classes are made in their own ways, and what made one is not kept."""
        return _restored, (type(self), self.args, self.__dict__)

    def at(self, *, file: str | Path = "", tensor: str = "", step: str = "", by_itself: bool = False) -> TconvError:
        """The same error with the places filled in that it did not know."""
        self.file = self.file or str(file)
        self.tensor = self.tensor or tensor
        self.step = self.step or step
        self.by_itself = self.by_itself or by_itself
        return self

    def each(self) -> list[TconvError]:
        """The single problems that it stands for."""
        return [self]

    def place(self) -> str:
        """The file and the tensor, as far as they are known."""
        # An image's tensor is called by its path: saying that twice helps nobody.
        tensor = "" if f"/{self.file}".endswith(f"/{self.tensor}") else self.tensor
        return ": ".join(one_line(p) for p in (self.file, tensor) if p)

    def __str__(self) -> str:
        text = ": ".join(p for p in (self.place(), one_line(self.step), printable(self.reason)) if p)
        return f"{text}; {printable(self.remedy)}" if self.remedy else text


def _restored(kind: type[TconvError], args: tuple[Any, ...], state: dict[str, Any]) -> TconvError:
    made = kind.__new__(kind, *args)
    made.__dict__.update(state)
    return made


class NotTensor(TconvError):  # noqa: N818  # a refusal by kind, which a stream may carry beside its tensors
    """What is there under a name is no tensor (text, objects, records …): left alone unless it is to be converted."""


class UsageError(TconvError):
    """The command itself is wrong; no file needs opening to know it.

    ``position``: where in the text of a chain or a pipeline file, counted from 0, if that is known.
    """

    exit_code = 2
    position: int | None = None


class TconvErrors(TconvError):  # noqa: N818  # it is several errors, and named so
    """Several refusals at once, so that one run shows all there is to mend.

    ``every``: each is named, however many there are.
    """

    def __init__(self, problems: Sequence[TconvError], *, remedy: str = "", every: bool = False) -> None:
        super().__init__(f"{len(problems)} problems", remedy=remedy)
        self.problems = list(problems)
        self._every = every
        self.exit_code = max((p.exit_code for p in problems), default=1)

    def at(self, *, file: str | Path = "", tensor: str = "", step: str = "", by_itself: bool = False) -> TconvErrors:
        for problem in self.problems:
            problem.at(file=file, tensor=tensor, step=step, by_itself=by_itself)
        super().at(file=file, tensor=tensor, step=step, by_itself=by_itself)
        return self

    def each(self) -> list[TconvError]:
        return [one for problem in self.problems for one in problem.each()]

    def __str__(self) -> str:
        groups: dict[tuple[str, ...], list[TconvError]] = {}
        for problem in self.problems:
            groups.setdefault((problem.step, problem.reason, problem.remedy), []).append(problem)
        most = len(groups) if self._every else SHOWN
        lines = [line for group in list(groups.values())[:most] for line in _folded(group, self._every)]
        rest = [p for group in list(groups.values())[most:] for p in group]
        if rest:
            lines.append(f"… and {len(rest)} more")
        if self.remedy:
            lines.append(self.remedy)
        return "\n".join(lines)


def _folded(alike: Sequence[TconvError], every: bool) -> list[str]:
    """Problems that differ in their places only: the first few in full, of the others where they are."""
    lines = [str(p) for p in alike[:ALIKE]]
    rest = [p.place() for p in alike[ALIKE:]]
    if rest:
        most = len(rest) if every else SHOWN
        more = f" and {len(rest) - most} more" if len(rest) > most else ""
        lines.append(f"… and likewise {', '.join(rest[:most])}{more}")
    return lines


def raise_all(problems: Sequence[TconvError], *, remedy: str = "", every: bool = False) -> None:
    """Raise nothing, the one problem, or all of them together."""
    if not problems:
        return
    if len(problems) == 1 and not remedy:
        raise problems[0]
    raise TconvErrors(problems, remedy=remedy, every=every)


class Problems:
    """What is wrong in several places, one or several things in each, to be told together."""

    def __init__(self) -> None:
        self._problems: list[TconvError] = []
        self._remedies: list[str] = []

    def add(self, problem: TconvError) -> None:
        """One place's, which may be several."""
        if isinstance(problem, TconvErrors):
            self._problems += problem.problems
            self._remedies += filter(None, [problem.remedy])
        else:
            self._problems.append(problem)

    def raise_all(self) -> None:
        """As ``raise_all`` does."""
        raise_all(self._problems, remedy="; ".join(dict.fromkeys(self._remedies)))


def printable(text: str) -> str:
    """Text from a file made safe for a terminal: control characters and lone surrogates are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """The same for what is one line, whatever names from a file are in it."""
    return printable(text).replace("\n", "\\n")
