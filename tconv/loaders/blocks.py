"""What lies in one file that tconv wrote, for loaders: which of its arrays are images, where they lie, and labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv import registry
from tconv.arrays.audit import rounded
from tconv.beside import recognized
from tconv.dtypes import DType, dtype
from tconv.errors import TconvError
from tconv.formats.npz import StoredSource
from tconv.formats.order import word
from tconv.formats.raw import RawSource
from tconv.formats.stamp import Stamp
from tconv.inputs import Input
from tconv.selection import first_few
from tconv.suggest import did_you_mean
from tconv.tensor import Tensor
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array

LABELS = "labels"  # the array that is looked for; one of another name has to be there
FORMATS = ("npy", "npz", "safetensors")
FLOAT32, INT64 = dtype("float32"), dtype("int64")
_REWRITE = "tconv makes .npy, .npz and .safetensors of it, which are"


@dataclass(frozen=True)
class Place:
    """Where an array lies in a file, in C order and native byte order; ``seen``: which state of the file that is."""

    path: Path
    offset: int
    dtype: DType
    shape: tuple[int, ...]
    seen: Stamp | None


@dataclass(frozen=True)
class Block:
    """Samples that lie together: the rows of one array, or (``stacked`` is False) several arrays, one each.

    ``classes``: the names behind labels that are numbers of classes, if the file has them. ``channels``: "BGR" or
    "CMYK" if the file says so.
    """

    places: tuple[Place, ...]
    names: tuple[str, ...]
    stacked: bool
    labels: Array | None
    classes: tuple[str, ...] = ()
    channels: str = ""

    @property
    def count(self) -> int:
        return self.places[0].shape[0] if self.stacked else len(self.places)

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """Of its samples."""
        return {place.shape[1:] if self.stacked else place.shape for place in self.places}

    def name(self, row: int) -> str:
        """What a sample is called in messages."""
        return f"{self.places[0].path}: {self.names[0]}[{row}]" if self.stacked else self.names[row]


def block_in(one: Input, images: str | None, labels: str | None) -> Block:
    """The samples in a file. Raises ``TconvError`` for what is no such file."""
    try:
        if one.format.name not in FORMATS:
            raise TconvError(f"{one.format.title} files are not mapped", remedy=_REWRITE)
        stream = recognized(registry.reader(one.format)(one.path, one.name, ReadOptions()))
        if stream.extra.kind != "data":
            raise TconvError("it holds weights, or tensors of unknown meaning", remedy=_REWRITE)
        named = {tensor.spec.name: tensor for tensor in stream.tensors}
        if labels is not None and labels not in (LABELS, *named):
            hint = did_you_mean(labels, named, f"there are {first_few(named)}; labels=None takes none")
            raise TconvError(f"there is no {labels!r}", remedy=hint)
        label = named.pop(labels, None) if labels is not None else None
        chosen = _images(named, images, None if label is None else label.spec.shape)
        stacked = len(chosen) == 1 and _is_stack(chosen[0], label)
        if stacked and not chosen[0].spec.shape:
            raise TconvError("a single number is no row of images", tensor=chosen[0].spec.name)
        places = tuple(_place(tensor) for tensor in chosen)
        names, classes = tuple(t.spec.name for t in chosen), stream.extra.texts.get("classes", ())
        order = word(chosen[0].spec) or ""
        block = Block(places, names, stacked, None if label is None else _labels(label), classes, order)
        if block.labels is not None and len(block.labels) != block.count:
            raise TconvError(f"{len(block.labels)} labels for {block.count} images", tensor=labels or "")
        return block
    except TconvError as problem:
        raise problem.at(file=one.path) from None
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path) from problem


def _images(named: dict[str, Tensor], asked: str | None, labels: tuple[int, ...] | None) -> list[Tensor]:
    """The array that holds the images as rows, or the images."""
    name = asked if asked is not None else "images" if "images" in named else None
    if name is not None:
        if name not in named:
            raise TconvError(f"there is no {name!r}", remedy=did_you_mean(name, named, f"there are {first_few(named)}"))
        return [named[name]]
    found = list(named.values())
    if not found:
        raise TconvError("there are no images in it")
    alone = not any(t.spec.attrs.get("label") for t in found)  # without masks and places in letterboxes
    alike = all(t.spec.axes and "N" not in t.spec.axes for t in found) or (alone and labels and labels[0] == len(found))
    if len(found) > 1 and not alike:
        fields = ", ".join(f"{t.spec.name} {t.spec.shape}" for t in found[:5])
        raise TconvError(f"which of its fields are the images: {fields}?", remedy=f"say images={found[0].spec.name!r}")
    return found


def _is_stack(tensor: Tensor, label: Tensor | None) -> bool:
    """Whether the samples are its rows, and not all of it one: its axes tell, or that there are labels for many."""
    axes = tensor.spec.axes
    alone = label is not None and label.spec.shape[:1] == (1,) != tensor.spec.shape[:1]
    return "N" in axes if axes else not alone


def _place(tensor: Tensor) -> Place:
    source: Any = tensor.source
    raw = source.elements if isinstance(source, StoredSource) else source
    if not isinstance(raw, RawSource) or raw.swap or raw.strides is not None:
        raise TconvError(
            "its elements do not lie in the file as they are in memory (deflated, Fortran order or big-endian)",
            remedy=_REWRITE,
            tensor=tensor.spec.name,
        )
    return Place(raw.path.resolve(), raw.offset, raw.dtype, raw.shape, raw.seen)


def _labels(tensor: Tensor) -> Array:
    """All labels, read now: integers as int64, floats as float32."""
    spec = tensor.spec
    if not spec.shape:
        raise TconvError("a single label", tensor=spec.name)
    values = np.array(tensor.source.read(0, spec.size)).reshape(spec.shape)
    target = FLOAT32 if spec.dtype.is_float else INT64
    try:
        return rounded(values, spec.dtype, target, "error")
    except TconvError as problem:
        raise problem.at(tensor=spec.name) from None
