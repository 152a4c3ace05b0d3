"""Shards on their way into place: that is written down before, so that what is interrupted there can be completed.

One rename replaces one file, and a checkpoint is several. Between two of them a folder holds shards of two
checkpoints, and where the new ones take the place of what they were made of, nothing could make them again. So the
staging folder says, once all in it is whole::

    {"files": ["model-00001-of-00002.safetensors", …, "model.safetensors.index.json"], "gone": ["model.safetensors"]}

``files`` are renamed to these places below the folder they are for, and ``gone`` are removed from there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tconv.errors import TconvError
from tconv.replacing import put_in_place, sync
from tconv.staging import held, kept_for

JOURNAL = ".tconv-journal.json"


def begin(staged: Path, files: Iterable[Path], gone: Iterable[Path]) -> None:
    """Write down what is about to be put in place from the folder ``staged``; paths are relative to their root."""
    fresh = staged / f"{JOURNAL}.new"
    with fresh.open("w", encoding="utf8") as out:
        json.dump({"files": [path.as_posix() for path in files], "gone": [path.as_posix() for path in gone]}, out)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(staged / JOURNAL)
    sync(staged)


def end(staged: Path) -> None:
    """All is in place, whatever else of ``staged`` may stay behind."""
    (staged / JOURNAL).unlink()


def pending(root: Path) -> Path | None:
    """The staging folder of a run that was interrupted while it put shards in place below ``root``, if there is one."""
    return next((kept for kept in kept_for(root) if (kept / JOURNAL).is_file()), None)


def complete(root: Path, staged: Path) -> None:
    """Do what is left to be done of what the journal in ``staged`` says. Raises ``TconvError``."""
    try:
        with held(staged, root):
            said = json.loads((staged / JOURNAL).read_text(encoding="utf8"))
            files, gone = (_places(root, said[key]) for key in ("files", "gone"))
            put_in_place([(path, at) for at in files if (path := staged / at.relative_to(root)).is_file()])
            for path in gone:
                path.unlink(missing_ok=True)
            shutil.rmtree(staged)
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise TconvError(
            f"what an interrupted run has left there cannot be put in place: {getattr(problem, 'strerror', problem)}",
            remedy="its shards are there, whole: move them by hand",
            file=staged,
        ) from problem


def _places(root: Path, names: Any) -> list[Path]:
    """The files of these names below ``root``. Raises ``ValueError`` for what leads elsewhere."""
    places = [root / name for name in names]
    for place in places:
        if ".." in place.parts or not Path(os.path.realpath(place.parent)).is_relative_to(root):
            raise ValueError("its journal leads outside the folder")
    return places
