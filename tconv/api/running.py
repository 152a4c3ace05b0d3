"""convert and plan: a run of the command line, asked for in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tconv import job, planner
from tconv.api.options import request
from tconv.api.words import in_python
from tconv.arguments import WrongType, shown
from tconv.arrays.audit import log_all
from tconv.errors import printable
from tconv.plan_text import lines
from tconv.request import Progress, Silent

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tconv.api.options import Options, Source
    from tconv.api.pipelines import Steps
    from tconv.errors import TconvError


@dataclass(frozen=True)
class Converted:
    """What a conversion did. ``paths``: the files written, or the folders where there are several files in one.
    ``notes``: what the command line says on stderr, a sentence each; ``skipped``: the files left out, as asked by
    ``on_bad="skip"``, and why.
    """

    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    skipped: tuple[TconvError, ...] = ()

    @property
    def path(self) -> Path:
        """The first of ``paths``, of which there is often just one."""
        return self.paths[0]


class Plan(planner.Plan):
    """What a conversion will do; ``str`` is the text that ``tconv plan`` prints."""

    def __str__(self) -> str:
        return "\n".join(map(printable, lines(self)))


def convert(
    src: Source,
    dst: str | os.PathLike[str] | None = None,
    steps: Steps = None,
    *,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Converted:
    """Read ``src``, take every tensor through ``steps``, write ``dst``: what ``tconv SRC -o DST --step STEPS`` does.

    ``src``: a file, a folder, a glob, or several of them. ``dst``: a file, whose suffix is its format, or a folder
    (with a slash at its end, unless it exists) for a file each; None for a file beside the input. ``steps``: see
    ``Pipeline``; none is a change of format. ``progress`` hears how far it is.

    All or nothing: outputs appear when they are whole, and nothing that exists is replaced without ``force=True``.
    Notes are returned, and logged (logger ``tconv``), those that are alike in one line.

    Raises ``UsageError`` for what is wrong in itself, before a file is opened, and ``TconvError`` with file, tensor,
    step and remedy for the rest. Options in notes (``--on-overflow saturate``) are keyword arguments here
    (``on_overflow="saturate"``).

    >>> convert("photos", "batch.npy", "resize(224x224) | scale | permute(CHW)", force=True).path
    PosixPath('batch.npy')
    """
    asked = request(src, dst, steps, options)
    if progress is not None and not all(callable(getattr(progress, name, None)) for name in ("begin", "advance")):
        raise WrongType(f"progress is {shown(progress)}", remedy="give an object with methods begin and advance")
    notes: list[str] = []

    try:
        with in_python():
            result = job.convert(asked, progress or Silent(), notes.append, lambda _plan: None)
    finally:
        log_all(notes)
    return Converted(tuple(map(Path, result.shown)), tuple(notes), result.skipped)


def plan(
    src: Source, dst: str | os.PathLike[str] | None = None, steps: Steps = None, **options: Unpack[Options]
) -> Plan:
    """What ``convert`` would do with the same arguments, from headers alone: files, specs, sizes, memory.

    Its text is what ``tconv plan`` prints. Nothing is written and no value is read; what values decide is marked in
    ``spec.attrs["undecided"]``. What exists already where outputs would go is told by ``plan.in_the_way``. Raises what
    ``convert`` raises, as far as headers tell.
    """
    asked = request(src, dst, steps, options)
    with in_python():
        made = planner.plan(asked, Silent(), {})
    return Plan(**{f.name: getattr(made, f.name) for f in fields(made)})
