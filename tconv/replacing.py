"""Files take the places of others at once, and are to those who use them what these were."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from tconv.errors import TconvError


def put_in_place(files: Sequence[tuple[Path, Path]]) -> None:
    """Rename each (staged, target), replacing what is there at once: who may read that may read what comes in its
    place, and nobody else. Raises ``TconvError``.
    """
    for staged, target in files:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _like(target, staged)
            staged.replace(target)
        except OSError as problem:
            raise TconvError(f"cannot be put in place: {problem.strerror or problem}", file=target) from problem
    for folder in {target.parent for _, target in files}:
        sync(folder)


def _like(target: Path, staged: Path) -> None:
    """Give ``staged`` the owner, the group and the mode of the file that it is about to replace, if there is one. Where
    the group is not to be had, another one may do no more than everybody.
    """
    with contextlib.suppress(FileNotFoundError):
        old, new = target.stat(), staged.stat()
        mode = old.st_mode & 0o777
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and not _given(staged, old):
            mode = mode & 0o707 | (mode & 0o007) << 3 & mode
        if new.st_mode & 0o777 != mode:  # a file system without modes refuses to be told one
            staged.chmod(mode)


def _given(staged: Path, old: os.stat_result) -> bool:
    """Whether ``staged`` has the group of ``old`` now, and its owner if that is allowed too."""
    if not hasattr(os, "chown"):
        return True
    with contextlib.suppress(OSError):
        os.chown(staged, -1, old.st_gid)
        with contextlib.suppress(OSError):
            os.chown(staged, old.st_uid, -1)
        return True
    return staged.stat().st_gid == old.st_gid


def sync(folder: Path) -> None:
    """Make the renames last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
