"""What a person reads while tconv works: notes, errors and progress, all of it on stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from tconv.errors import one_line
from tconv.notes import folded, kind
from tconv.sizes import human

if TYPE_CHECKING:
    from tconv.request import Progress

PATIENCE = 0.7  # seconds before progress shows: a short job needs none
INTERVAL = 10.0  # seconds between plain lines where stderr is no terminal
ALIKE = 20  # notes of one kind that are shown unless --verbose asks for all


class Console:
    """Notes on stderr, one line each; ``quiet`` drops them, ``verbose`` shows all of them and asks for the plan too.

    As a context it tells in the end how many notes were left out because there were many of their kind.
    """

    def __init__(self, *, quiet: bool, verbose: bool) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.before = _nothing  # called before a line is written, so that it does not run into live progress
        self._first: dict[str, str] = {}  # of each kind of note
        self._count: dict[str, int] = {}
        self._kept: list[str] = []

    def note(self, text: str) -> None:
        said = kind(text)
        self._first.setdefault(said, text)
        self._count[said] = self._count.get(said, 0) + 1
        if self.verbose or self._count[said] <= ALIKE:
            self._write(text)

    def notes(self, texts: Iterable[str]) -> None:
        """Many at once: those that say the same of many places in one line, unless all are asked for."""
        for text in texts:
            self.later(text)
        self.flush()

    def later(self, text: str) -> None:
        """A note that may be one of many; they are shown by ``flush``, and before work that takes time."""
        self._kept.append(text)

    def flush(self) -> None:
        """Show what was kept for later."""
        kept, self._kept = self._kept, []
        for text in kept if self.verbose else folded(kept):
            self.note(text)

    def each(self, text: str) -> None:
        """A note that is shown however many there are of its kind."""
        self._write(text)

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        for said, count in self._count.items() if not self.verbose else ():
            if count > ALIKE:
                self._write(f"… and {count - ALIKE} more like “{self._first[said]}” (-v shows all)")

    def _write(self, text: str) -> None:
        if not self.quiet:
            self.before()
            _stderr(one_line(text))


def _stderr(line: str) -> None:
    """A line for a person. Where nobody can read it any more (a pipe that was closed), the work goes on."""
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")


def fail(text: str) -> None:
    """An error, every line of it marked as tconv's; the mark stands out on a terminal that shows colours."""
    mark = "\x1b[1;31mtconv:\x1b[0m" if _in_colours() else "tconv:"
    for line in text.splitlines() or [""]:
        _stderr(f"{mark} {line}")


def _in_colours() -> bool:
    """As https://no-color.org has it."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _nothing() -> None: ...


@contextmanager
def progress(console: Console) -> Iterator[Progress]:
    """Progress for one job: a live bar on a terminal, a plain line now and then elsewhere, nothing if quiet."""
    shown: Any = _Nobody() if console.quiet else _Live(console) if sys.stderr.isatty() else _Lines(console)
    try:
        yield shown
    finally:
        shown.end()


class _Nobody:
    def begin(self, phase: str, total: int, unit: Literal["files", "bytes"]) -> None: ...
    def advance(self, amount: int) -> None: ...
    def end(self) -> None: ...


class _Counting:
    """Counts under a lock, since workers advance from their threads."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._phase, self._unit = "", "bytes"
        self._total = self._done = 0
        self._began = self._shown = time.monotonic()

    def begin(self, phase: str, total: int, unit: Literal["files", "bytes"]) -> None:
        with self._lock:
            self._phase, self._total, self._unit, self._done = phase, total, unit, 0
            self._began = self._shown = time.monotonic()
            self._changed_phase()
        self._console.flush()

    def advance(self, amount: int) -> None:
        with self._lock:
            self._done += amount
            self._advanced(time.monotonic())

    def _changed_phase(self) -> None: ...
    def _advanced(self, now: float) -> None: ...
    def end(self) -> None: ...


class _Lines(_Counting):
    """For logs: a line every few seconds, with rate and time left."""

    def _advanced(self, now: float) -> None:
        if now - self._shown < INTERVAL or self._done >= self._total:
            return
        self._shown = now
        rate = self._done / max(now - self._began, 1e-9)
        left = (self._total - self._done) / max(rate, 1e-9)
        self._console.note(
            f"{self._phase}: {100 * self._done // max(self._total, 1)} %, {_amount(rate, self._unit)}/s, "
            f"{left:.0f} s left"
        )


class _Live(_Counting):
    """A bar with throughput and time left, from the moment on that a job proves long."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._bar: Any = None
        self._task: Any = None

    def _changed_phase(self) -> None:
        self.end()

    def _advanced(self, now: float) -> None:
        if self._bar is None:
            if now - self._began < PATIENCE or self._done >= self._total:
                return
            self._open()
        self._bar.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich import progress as rich_progress
        from rich.console import Console as RichConsole

        amount: list[Any] = (
            [rich_progress.DownloadColumn(), rich_progress.TransferSpeedColumn()]
            if self._unit == "bytes"
            else [rich_progress.MofNCompleteColumn()]
        )
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.TaskProgressColumn(),
            *amount,
            rich_progress.TimeRemainingColumn(),
            console=RichConsole(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._phase, total=self._total, completed=self._done)
        self._bar.start()
        self._console.before = self.end

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._console.before = _nothing


def _amount(number: float, unit: str) -> str:
    return human(number) if unit == "bytes" else f"{number:.0f} files"
