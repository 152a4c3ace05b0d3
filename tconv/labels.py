"""Labels beside images: from class folders or from a file, in the order of the images in each output."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tconv import label_file
from tconv.dtypes import DType, dtype
from tconv.errors import SHOWN, TconvError, UsageError, raise_all
from tconv.inputs import Found, Input
from tconv.memory import ArraySource
from tconv.parts import Parts
from tconv.selection import first_few
from tconv.tensor import Spec, Stream, Tensor

NAME, CLASSES, PATHS = "labels", "classes", "paths"  # what they are called in an output
_UNLABELLED = "--on-bad skip leaves out what has none"
_INT64, _FLOAT64 = dtype("int64"), dtype("float64")


@dataclass(frozen=True)
class Labelling:
    """What is known of all images of a job; an output gets of it what belongs to the images in it.

    ``origin``: the folder or the file that says so. ``values``: for each file that has one a label of ``dtype`` and
    ``shape`` (() for a number), nested lists where that has axes. ``classes``: the names behind the numbers, None where
    these speak for themselves. ``names``: for every input what it is called in the list of paths. ``stray``: what is
    wrong with labels that belong to no image.
    """

    origin: Path
    values: Mapping[Path, Any]
    names: Mapping[Path, str]
    dtype: DType
    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    stray: TconvError | None = None

    def beside(self, stream: Stream) -> Stream:
        """The stream with ``labels`` behind its tensors, one for each or for each row of a stack, ``paths`` in the same
        order, and ``classes`` if they have names.

        Raises ``TconvError`` for what has no label, and where a name is taken.
        """
        parts = [part for t in stream.tensors for part in (t.source.parts if isinstance(t.source, Parts) else (t,))]
        rows = [part.source.path for part in parts]
        raise_all(
            [
                TconvError(f"has no label in {self.origin}", remedy=_UNLABELLED, file=path).at(by_itself=True)
                for path in dict.fromkeys(rows)
                if path not in self.values
            ]
        )
        shape = (len(rows), *self.shape)
        values = np.array([self.values[path] for path in rows], self.dtype.numpy).reshape(-1)
        spec = Spec(NAME, self.dtype, shape, attrs={"label": True})
        labels = Tensor(spec, ArraySource(self.origin, self.dtype, shape, values))
        texts = {PATHS: tuple(self.names[path] for path in rows)}
        if self.classes is not None:
            texts = {CLASSES: self.classes, **texts}
        _refuse_taken({t.spec.name for t in stream.tensors} | {*stream.extra.texts, *stream.extra.metadata}, texts)
        return replace(
            stream,
            tensors=(*stream.tensors, labels),
            extra=replace(stream.extra, texts={**stream.extra.texts, **texts}),
        )


def _refuse_taken(names: set[str], texts: Mapping[str, Any]) -> None:
    taken = [name for name in (NAME, *texts) if name in names]
    if taken:
        raise TconvError(
            f"there is a tensor {taken[0]!r}, and what belongs to the labels is called so too",
            remedy="a stack is called like its file: give that another name with -o, or leave labels out (--no-labels)",
        )


def are_class_folders(found: Found) -> bool:
    """Whether all there is are images in the sub-folders, two at least, of one folder."""
    roots = {one.root for one in found.inputs}
    if len(roots) != 1 or None in roots or any(one.format.group != "image" for one in found.inputs):
        return False
    tops = {_top(one) for one in found.inputs}
    return len(tops) > 1 and "" not in tops


def from_folders(found: Found) -> Labelling:
    """The first folder below the one that was named is the class of everything in it.

    As torchvision's ``ImageFolder`` has it: classes are sorted by name, and numbered in that order. A class of which
    all images are bad keeps its number.
    """
    roots = {one.root for one in found.inputs}
    root = next(iter(roots), None)
    if root is None or len(roots) > 1:
        raise UsageError("--labels folders is for one folder of class folders", remedy="name that folder alone")
    loose = [one.path.name for one in found.inputs if not _top(one)]
    if loose:
        raise TconvError(
            f"in no class folder are {first_few(loose, SHOWN)}",
            remedy="--labels FILE labels them one by one",
            file=root,
        )
    bad = [Path(problem.file) for problem in found.failures]
    tops = {_top(one) for one in found.inputs} | set(_classes_of_bad(bad, root))
    classes = tuple(sorted(tops))
    numbers = {name: n for n, name in enumerate(classes)}
    values = {one.path: numbers[_top(one)] for one in found.inputs}
    empty = sorted(e.name for e in os.scandir(root) if e.is_dir() and e.name not in tops and not e.name.startswith("."))
    notes = (f"{root}: no class, as no image is in it: {first_few(empty)}",) if empty else ()
    return Labelling(root, values, _names(found), _INT64, (), classes, notes)


def _classes_of_bad(bad: Iterable[Path], root: Path) -> Iterable[str]:
    for path in bad:
        if path.is_relative_to(root):
            parts = path.relative_to(root).parts
            yield from parts[:1] if len(parts) > 1 or path.is_dir() else ()


def in_order(inputs: Iterable[Input]) -> list[Input]:
    """Images in the order of torchvision's ``ImageFolder``: class by class, in each folder by folder, file by file, all
    by their names as texts.

    Source: ``make_dataset`` of torchvision.datasets.folder.
    """

    def key(one: Input) -> tuple[str, str, str]:
        folder, _, name = one.name.rpartition("/")
        return _top(one), folder, name

    return sorted(inputs, key=key)


def _top(one: Input) -> str:
    """The first folder below that in which it was found; nothing if it lies there itself."""
    return one.name.partition("/")[0] if one.root and "/" in one.name else ""


def _names(found: Found) -> dict[Path, str]:
    """Paths from the folder that was named on, suffix included; of files that were named themselves as they were."""

    def name(one: Input) -> str:
        if one.root is None:
            return str(one.path)
        return one.name if one.format.group == "image" else f"{one.name}{one.path.suffix}"

    return {one.path: name(one) for one in found.inputs}


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
                names = first_few(map(str, several))
                raise TconvError(
                    f"line {row.line}: {row.path} may be any of {names}", remedy="say in which folder it is", file=path
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
    return Labelling(path, values, _names(found), kind.dtype, kind.shape, kind.classes, notes, stray)


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
