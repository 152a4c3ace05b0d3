"""The labels that a file gives to images: whose each is, and what they all are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tconv import label_file
from tconv.dtypes import DType, dtype
from tconv.errors import SHOWN, TconvError
from tconv.inputs import Found
from tconv.labels import Labelling, names
from tconv.selection import first_few

_INT64, _FLOAT64 = dtype("int64"), dtype("float64")


def from_file(path: Path, found: Found, roots: Sequence[Path]) -> Labelling:
    """What a file says, see ``label_file.read``. Its paths are absolute, or relative to the folder of the images, to
    the current one or to the file's own; a bare file name does if only one image has it.

    Integers are int64, other numbers float64, as Python reads them; texts are classes, sorted and numbered. Lists of
    numbers of one shape give labels that have it. Raises ``TconvError`` for all else, and for two values of one image.
    """
    images = _Images(found, roots, path.parent)
    said = label_file.read(path, lambda text: images.find(text) is not None)
    rows: dict[Path, label_file.Row] = {}
    strays: list[str] = []
    for row in said.rows:
        image = images.find(row.path)
        if image is None:
            several = images.called(row.path)
            if several:
                any_of = first_few(map(str, several))
                raise TconvError(
                    f"line {row.line}: {row.path} may be any of {any_of}", remedy="say in which folder it is", file=path
                )
            strays.append(row.path)
        elif (other := rows.setdefault(image, row)).value != row.value:
            raise TconvError(f"lines {other.line} and {row.line} give {image} different labels", file=path)
    stray = None
    if strays:
        reason = f"of its labels {len(strays):,} belong to no image that is there: {first_few(strays, SHOWN)}"
        remedy = "" if rows else "paths are relative to the folder of the images, or absolute, or bare file names"
        stray = TconvError(reason, remedy=remedy, file=path).at(by_itself=True)
        if not rows:
            raise stray
    try:
        kind = _kind(list(rows.values()))
    except TconvError as problem:
        raise problem.at(file=path) from None
    numbers = {name: n for n, name in enumerate(kind.classes)} if kind.classes is not None else None
    values = {image: row.value if numbers is None else numbers[row.value] for image, row in rows.items()}
    notes = tuple(f"{path}: {note}" for note in said.notes)
    return Labelling(path, values, names(found), kind.dtype, kind.shape, kind.classes, notes, stray)


class _Images:
    """Which image a path in a file of labels means, bad ones included."""

    def __init__(self, found: Found, roots: Sequence[Path], beside: Path) -> None:
        self._places = [os.path.abspath(place) for place in (*roots, Path(), beside)]  # noqa: PTH100  # as below
        self._by_path: dict[str, Path] = {}
        self._by_name: dict[str, list[Path]] = {}
        paths = [*(one.path for one in found.inputs), *(Path(problem.file) for problem in found.failures)]
        for path in dict.fromkeys(paths):
            self._by_path[os.path.abspath(path)] = path  # noqa: PTH100  # Path.absolute keeps the ..
            self._by_name.setdefault(path.name, []).append(path)

    def find(self, text: str) -> Path | None:
        """The image, or None if there is none or more than one."""
        for place in self._places:
            found = self._by_path.get(os.path.normpath(os.path.join(place, text)))  # noqa: PTH118  # ten times as fast
            if found is not None:
                return found
        named = self.called(text)
        return named[0] if len(named) == 1 else None

    def called(self, text: str) -> list[Path]:
        """The images of that file name."""
        return self._by_name.get(text, [])


class _Kind(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]
    classes: tuple[str, ...] | None


def _kind(rows: Sequence[label_file.Row]) -> _Kind:
    """What all labels have in common; ``TconvError`` if they have not."""
    first = rows[0]
    shape = _shape(first.value)
    for row in rows:
        if isinstance(row.value, str) is not isinstance(first.value, str):
            text, number = (row, first) if isinstance(row.value, str) else (first, row)
            raise TconvError(f"the label in line {text.line} is text and the one in line {number.line} a number")
        if _shape(row.value) != shape:
            raise TconvError(
                f"the labels in lines {first.line} and {row.line} are unequal, {shape} and {_shape(row.value)}",
                remedy="one array holds labels of one shape only",
            )
    if isinstance(first.value, str):
        return _Kind(_INT64, (), tuple(sorted({row.value for row in rows})))
    floats = any(isinstance(n, float) for row in rows for n in _numbers(row.value))
    for row in rows:
        for number in _numbers(row.value):
            if not (_fits_float64(number) if floats else _INT64.min <= number <= _INT64.max):
                raise TconvError(f"line {row.line}: {number} does not fit {_FLOAT64 if floats else _INT64}")
    return _Kind(_FLOAT64 if floats else _INT64, shape, None)


def _fits_float64(number: float) -> bool:
    """Whether it is finite, and, an integer among floats, one that float64 has."""
    if isinstance(number, int):
        return abs(number) < 2**1000 and int(float(number)) == number
    return math.isfinite(number)


def _shape(value: Any) -> tuple[int, ...]:
    """Of lists in lists as of an array; one that no array has where they are unequal is told by ``_kind``."""
    if not isinstance(value, list):
        return ()
    shapes = {_shape(item) for item in value}
    if len(shapes) > 1:
        raise TconvError(f"a list among the labels holds lists of different lengths: {str(value)[:60]}")
    return (len(value), *next(iter(shapes), ()))


def _numbers(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    else:
        yield value
