"""What inspect, check and diff share: files read as they are, results on stdout, their exit code for trouble."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tconv.errors import TconvError, UsageError, printable

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.inputs import Input
    from tconv.tensor import Stream

TROUBLE = 2  # the exit code of check and diff where they cannot tell: 1 is an answer

Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="GLOB", help="Tensors whose name matches; repeatable.", show_default=False),
]
Skip = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="GLOB", help="Not those that match; repeatable.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead; see above.", show_default=False)]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="The exit code only, and errors.", show_default=False)]
Debug = Annotated[bool, typer.Option("--debug", help="A traceback with errors.", show_default=False)]


class Opened(NamedTuple):
    """A file and what is in it."""

    input: Input
    stream: Stream


def read(
    words: Sequence[str], only: Sequence[str], skip: Sequence[str], terminal: Console
) -> tuple[list[Opened], list[TconvError]]:
    """The headers of all files that ``words`` name, images with the channels and frames they have.

    Of each the tensors whose names match; a file that has none is left out. Also what is wrong with those that cannot
    be read, and with what is no tensor. Raises ``TconvError`` for a word that names nothing, and if no tensor of any
    file is left.
    """
    from tconv.inputs import find, is_skipped
    from tconv.patterns import Patterns

    wanted = Patterns(tuple(only), tuple(skip))
    found = find(words, every=True, wanted=wanted)
    opened: list[Opened] = []
    problems = list(found.failures)
    for one in found.inputs:
        try:
            opened.append(Opened(one, _stream(one)))
        except TconvError as problem:
            problems += [] if is_skipped(one.path, one.root, wanted) else [problem.at(file=one.path)]
    terminal.notes(found.notes)
    kept = matching(opened, only, skip, terminal, [one.name for one in found.unwanted])
    return kept, problems + [other for one in kept for other in one.stream.others]


def _stream(one: Input) -> Stream:
    from tconv import registry
    from tconv.writer import ReadOptions

    try:
        return registry.reader(one.format)(one.path, one.name, ReadOptions(channels="keep", frames="all"))
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}") from problem


def matching(
    opened: Sequence[Opened],
    only: Sequence[str],
    skip: Sequence[str],
    terminal: Console,
    unopened: Sequence[str] = (),
) -> list[Opened]:
    """The files with those of their tensors whose names match, without the files that have none. ``unopened``: names of
    others, which patterns may be for.

    Raises ``TconvError`` if there is none in any of them.
    """
    from tconv import selection
    from tconv.tensor import Extra, Stream

    every = tuple(t for one in opened for t in one.stream.tensors)
    for text in selection.unmatched([*(t.spec.name for t in every), *unopened], skip):
        terminal.note(text)
    kept = []
    for one in opened:
        with suppress(TconvError):  # the file has no such tensor
            kept.append(one._replace(stream=selection.matching(one.stream, only, skip)))
    if opened and not kept:
        selection.matching(Stream(every, Extra("data")), only, skip)  # raises, with the names that there are
    terminal.notes(text for one in kept for text in one.stream.notes)
    return kept


@contextmanager
def _a_reader_may_leave() -> Iterator[None]:
    """Who reads no further (`| head`) does not change the answer; what is still to be said is said to nobody."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def flush() -> None:
    """See that what was said arrives."""
    with _a_reader_may_leave():
        sys.stdout.flush()


@contextmanager
def trouble() -> Iterator[None]:
    """Whatever goes wrong inside has the exit code 2, so that 1 is an answer and nothing else."""
    try:
        yield
    except (BrokenPipeError, UsageError):
        raise
    except TconvError as problem:
        problem.exit_code = TROUBLE
        raise
    except MemoryError as problem:
        raise _trouble("out of memory") from problem
    except OSError as problem:
        raise _trouble(f"{problem.strerror or problem}", problem.filename or "") from problem
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise _trouble(f"internal error, please report it: {what} (--debug shows where)") from problem


def _trouble(reason: str, file: str = "") -> TconvError:
    problem = TconvError(reason, file=file)
    problem.exit_code = TROUBLE
    return problem


def say(text: str) -> None:
    """Lines on stdout; what its encoding lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    text = printable(text)
    with _a_reader_may_leave():
        sys.stdout.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))


def say_json(value: Any) -> None:
    """One JSON object on stdout, with lists of mere numbers on one line."""
    text = json.dumps(value, indent=2, allow_nan=False)
    say(re.sub(r"\[\n\s+([^\[\]{}\"]*?)\n\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text))


def number(value: float | None) -> Any:
    """A number as JSON has it: an infinity or NaN, which it lacks, is text."""
    return value if value is None or math.isfinite(value) else str(float(value))


def short(value: float | None, digits: int = 6) -> str:
    """A number for people: integers whole, others to so many digits; nothing for None."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value + 0.0:.{digits}g}"  # -0.0 + 0.0 is 0.0


def counted(number: int, what: str) -> str:
    """``1 tensor``, ``2 tensors``."""
    return f"{number:,} {what}{'s' * (number != 1)}"
