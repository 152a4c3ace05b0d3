"""Where the real files lie that tests may use when they are there: beside the checkout, in ``shared``."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def shared(*parts: str) -> Path:
    """A file or folder of the shared data; skips the test where it is absent."""
    path = SHARED.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"the shared data are not here: {'/'.join(parts)}")
    return path


def manifest() -> list[dict[str, str]]:
    """The rows of the manifest: path, kind, what is special, what the reference library makes of it."""
    table = SHARED / "data" / "MANIFEST.tsv"
    if not table.exists():
        return []
    with table.open(encoding="utf8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
