"""What lies in a folder, all the way down, in no order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tconv import registry
from tconv.errors import TconvError

_OWN = (".tconv-part", ".tconv-resume")  # where tconv itself stages what it writes


class Listed(NamedTuple):
    """``hidden``: files that would be read if their names, or those of their folders, did not begin with a dot; of such
    folders these themselves. ``failures``: folders that cannot be listed, or that a link leads back to.
    """

    paths: list[Path]
    hidden: list[Path]
    failures: list[TconvError]


def listed(root: Path) -> Listed:
    """The files below ``root``, through links to folders too; hidden files and folders are left alone."""

    def unreadable(problem: OSError) -> None:
        found.failures.append(TconvError(f"the folder cannot be read: {problem.strerror}", file=problem.filename))

    found = Listed([], [], [])
    above: dict[str, frozenset[str]] = {str(root): frozenset((os.path.realpath(root),))}
    for folder, folders, files in os.walk(root, onerror=unreadable, followlinks=True):
        came_through = above.pop(folder)
        kept = []
        for name in folders:
            inner = os.path.join(folder, name)  # noqa: PTH118  # the keys are what os.walk says
            if name.startswith("."):
                found.hidden.extend([Path(inner)] if _holds_some(inner) else ())
                continue
            real = os.path.realpath(inner)
            if real in came_through:
                found.failures.append(TconvError("the link leads back to a folder that it is in", file=inner))
                continue
            above[inner] = came_through | {real}
            kept.append(name)
        folders[:] = kept
        found.paths.extend(Path(folder, name) for name in files if not name.startswith("."))
        found.hidden.extend(path for name in files if name.startswith(".") and _is_meant(path := Path(folder, name)))
    return found


def _is_meant(path: Path) -> bool:
    """Whether it would be read under another name."""
    return registry.by_suffix(path) is not None


def _holds_some(folder: str) -> bool:
    """Whether there is such a file in a hidden folder itself: what version controls hold lies deeper."""
    if folder.endswith(_OWN):
        return False
    try:
        with os.scandir(folder) as entries:
            return any(_is_meant(Path(entry.name)) for entry in entries)
    except OSError:
        return False
