"""The examination: which files there are, what their headers and pixels say, what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tconv import registry
from tconv.diagnose import pixels
from tconv.diagnose.findings import Finding, findings, sides
from tconv.diagnose.subjects import read_headers
from tconv.errors import TconvError
from tconv.inputs import find, natural

if TYPE_CHECKING:
    from tconv.diagnose.subjects import Subject
    from tconv.request import Progress


@dataclass(frozen=True)
class Sizes:
    """Heights and widths, upright: how many different ones, and the least, the middle and the largest by area."""

    distinct: int
    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]


@dataclass(frozen=True)
class Diagnosis:
    """``problems``: why files that were meant cannot be converted. ``ignored``: those in folders that their names do
    not make images, each with the format that it has nevertheless, or nothing. ``others``: arrays and checkpoints.
    """

    images: int
    bytes: int
    formats: dict[str, int]
    sizes: Sizes | None
    findings: tuple[Finding, ...]
    problems: tuple[TconvError, ...]
    ignored: tuple[tuple[Path, str], ...]
    others: tuple[Path, ...]


def examine(words: Sequence[str], *, quick: bool, progress: Progress) -> Diagnosis:
    """Look at every image that ``words`` name; ``quick`` looks at headers only.

    Raises ``TconvError`` for a word that names nothing, and where there is no image.
    """
    found = find(words)
    images = [one for one in found.inputs if one.format.group == "image"]
    others = tuple(one.path for one in found.inputs if one.format.group != "image")
    if not images and not found.failures:
        raise TconvError(
            "is no image, and there is none among the inputs",
            remedy="arrays and checkpoints are for tconv inspect --values and tconv check --finite",
            file=others[0] if others else "",
        )
    subjects, failures = read_headers(images, progress)
    if not quick:
        pixels.look(subjects, progress)
        pixels.find_twins(subjects, progress)
    problems = [*found.failures, *failures, *(one.problem for one in subjects if one.problem)]
    problems.sort(key=lambda problem: natural(Path(problem.file)))
    return Diagnosis(
        len(images),
        sum(_bytes(one.path) for one in images),
        dict(Counter(one.format.title for one in images).most_common()),
        _sizes([one for one in subjects if one.problem is None]),
        tuple(findings(subjects, problems)),
        tuple(problems),
        tuple((path, _content(path)) for path in found.ignored),
        others,
    )


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sizes(subjects: Sequence[Subject]) -> Sizes | None:
    if not subjects:
        return None
    every = sorted((sides(one) for one in subjects), key=lambda size: (size[0] * size[1], size))
    return Sizes(len(set(every)), every[0], every[len(every) // 2], every[-1])


def _content(path: Path) -> str:
    """The format of an image whose name does not tell."""
    try:
        row = registry.detect(path)
    except (TconvError, OSError):
        return ""
    return row.title if row.group == "image" else ""
