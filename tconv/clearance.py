"""Whether outputs may go where they are to go: no two in one place, none on an input or a folder unasked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tconv.errors import TconvError, raise_all
from tconv.inputs import Input


def check(paths: Sequence[tuple[Path, Sequence[Input]]]) -> list[TconvError]:
    """Refuse, naming all of them: two inputs for one file, a target that is no file. Files there already are returned,
    each as the refusal that it is unless it may be replaced.
    """
    problems: list[TconvError] = []
    existing: list[TconvError] = []
    taken: dict[Path, Sequence[Input]] = {}
    for path, inputs in paths:
        if path in taken:
            first, second = taken[path][0].path, inputs[0].path
            problems.append(TconvError(f"{first} and {second} would both become it", remedy="rename one", file=path))
            continue
        taken[path] = inputs
        if path.is_file():
            existing.append(_existing(path, inputs))
        else:
            problems += _unfit(path)
    raise_all(problems)
    return existing


def check_report(path: Path, inputs: Sequence[Path], outputs: Sequence[Path]) -> list[TconvError]:
    """Refuse a report where something else is, or will be; one that is there already is returned as a refusal."""
    problems = _unfit(path) if not path.is_file() else []
    if any(p.exists() and path.exists() and p.samefile(path) for p in inputs):
        problems = [TconvError("the report would replace an input", remedy="give it another name", file=path)]
    elif any(path == output or path in output.parents for output in outputs):
        problems = [TconvError("the report would be where an output goes", remedy="give it another name", file=path)]
    raise_all(problems)
    return [_existing(path, ())] if path.is_file() else []


def _unfit(path: Path) -> list[TconvError]:
    if path.is_symlink():
        return [TconvError("is a link that leads back to itself", remedy="give another output", file=path)]
    if not path.exists():
        blocked = next((p for p in path.parents if p.exists() and not p.is_dir()), None)
        return [TconvError(f"{blocked} is not a folder", file=path)] if blocked else []
    if path.is_dir():
        return [TconvError("is a folder", remedy="give a file, or end a folder's name with /", file=path)]
    return [TconvError("is neither a file nor a folder", remedy="give a file to write", file=path)]


def _existing(path: Path, inputs: Sequence[Input]) -> TconvError:
    if _is_one_of(path, inputs):
        return TconvError("is an input too", remedy="give another output, or --force to replace it", file=path)
    return TconvError("exists already", remedy="--force replaces it once the new file is whole", file=path)


def _is_one_of(path: Path, inputs: Sequence[Input]) -> bool:
    there = path.stat()  # once for a hundred thousand inputs
    for one in inputs:
        with suppress(OSError):
            if os.path.samestat(one.path.stat(), there):
                return True
    return False
