"""What tconv makes of a picture where a reference stands for it, through the command line and a file, as users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tconv.cli.app import run
from tests.peers.make_expected import EXPECTED
from tests.peers.references import PHOTOS, Reference, kept, photo


def converted(reference: Reference, name: str, folder: Path) -> Any:
    path = folder / "made.npy"
    argv = [*reference.argv, "--alpha", "drop"]  # as the others do, where tconv by default blends over white
    assert run([str(photo(name)), *argv, "-o", str(path), "--force", "-q"]) == 0
    return np.load(path)


def apart(ours: Any, theirs: Any) -> float:
    """The largest difference between two arrays of one dtype and shape."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    return float(np.abs(ours.astype(np.float64) - theirs).max())


def expected(library: str) -> dict[str, Any]:
    with np.load(EXPECTED / f"{library}.npz") as found:
        return dict(found)


def largest(library: str, reference: Reference, folder: Path) -> dict[str, float]:
    """How far apart the values that were written down are, by picture."""
    theirs = expected(library)
    return {
        name: apart(kept(converted(reference, name, folder)), theirs[f"{reference.name}/{name}"]) for name in PHOTOS
    }
