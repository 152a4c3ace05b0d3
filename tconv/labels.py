"""Labels beside images: from class folders or from a file, in the order of the images in each output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tconv.beside import MADE
from tconv.dtypes import DType, dtype
from tconv.errors import SHOWN, TconvError, UsageError, raise_all
from tconv.inputs import Found, Input
from tconv.memory import ArraySource
from tconv.parts import Parts
from tconv.selection import first_few
from tconv.tensor import Spec, Stream, Tensor

NAME, CLASSES, PATHS = "labels", "classes", "paths"  # what they are called in an output
_UNLABELLED = "--on-bad skip leaves out what has none"
_INT64 = dtype("int64")


@dataclass(frozen=True)
class Labelling:
    """What is known of all images of a job; an output gets of it what belongs to the images in it.

    ``origin``: the folder or the file that says so. ``values``: for each file that has one a label of ``dtype`` and
    ``shape`` (() for a number), nested lists where that has axes. ``classes``: the names behind the numbers, None where
    these speak for themselves. ``names``: for every input what it is called in the list of paths. ``stray``: what is
    wrong with labels that belong to no image. ``bare``: there are no labels, but the list of paths.
    """

    origin: Path
    values: Mapping[Path, Any]
    names: Mapping[Path, str]
    dtype: DType
    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    stray: TconvError | None = None
    bare: bool = False

    def beside(self, stream: Stream) -> Stream:
        """The stream with ``labels`` behind its tensors, one for each or for each row of a stack, ``paths`` in the same
        order, and ``classes`` if they have names.

        Raises ``TconvError`` for what has no label, and where a name is taken.
        """
        if stream.extra.kind == "weights":
            raise TconvError("labels belong to images and arrays, and this holds weights", remedy="leave --labels out")
        given = [t for t in stream.tensors if MADE not in t.spec.attrs]
        parts = [part for t in given for part in (t.source.parts if isinstance(t.source, Parts) else (t,))]
        rows = [part.source.path for part in parts]
        if self.bare:
            return _with_texts(stream, {PATHS: tuple(self.names[path] for path in rows)})
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
        return _with_texts(stream, texts, labels)


def _with_texts(stream: Stream, texts: Mapping[str, tuple[str, ...]], *labels: Tensor) -> Stream:
    names = {t.spec.name for t in stream.tensors} | {*stream.extra.texts, *stream.extra.metadata}
    _refuse_taken(names, [*(one.spec.name for one in labels), *texts])
    extra = replace(stream.extra, texts={**stream.extra.texts, **texts})
    return replace(stream, tensors=(*stream.tensors, *labels), extra=extra)


def _refuse_taken(names: set[str], wanted: Iterable[str]) -> None:
    taken = [name for name in wanted if name in names]
    if taken:
        raise TconvError(
            f"there is a {taken[0]!r} already, and what belongs to the labels is called so too",
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
    return Labelling(root, values, names(found), _INT64, (), classes, notes)


def paths_only(found: Found) -> Labelling:
    """No labels, but what every image was called."""
    origin = next((one.root or one.path for one in found.inputs), Path())
    return Labelling(origin, {}, names(found), _INT64, bare=True)


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


def names(found: Found) -> dict[Path, str]:
    """Paths from the folder that was named on, suffix included; of files that were named themselves as they were."""

    def name(one: Input) -> str:
        if one.root is None:
            return str(one.path)
        return one.name if one.format.group == "image" else f"{one.name}{one.path.suffix}"

    return {one.path: name(one) for one in found.inputs}
