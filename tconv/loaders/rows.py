"""Images and labels in files that tconv wrote, read row by row: what the loaders of all frameworks are made of."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tconv.arguments import WrongType, position, shown, words
from tconv.arrays.audit import rounded
from tconv.arrays.dtype import dtype_named, native
from tconv.dtypes import DType
from tconv.errors import TconvError, raise_all
from tconv.inputs import find
from tconv.loaders.blocks import Block, Place, block_in
from tconv.loaders.files import Files

if TYPE_CHECKING:
    from tconv.ops import Array

Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

ALIGNED = 64  # bytes, at which batches begin: TensorFlow shares such memory


@dataclass
class Rows:
    """The samples of all files in order: images of ``dtype``, and labels if there are any.

    Only headers, and labels, are read before a sample is asked for. Files are opened when they are first needed, and
    by each process for itself: a pickled copy holds none. They are read and not mapped, since a map of a file that
    shrinks kills the process; one that changes is refused. What is given out is the caller's own.
    """

    blocks: tuple[Block, ...]
    dtype: DType
    _files: Files = field(default_factory=Files, repr=False)

    def __post_init__(self) -> None:
        self._starts = [0, *accumulate(block.count for block in self.blocks)]
        self.labelled = self.blocks[0].labels is not None
        shapes = set[tuple[int, ...]]().union(*(block.shapes for block in self.blocks))
        self.shape = shapes.pop() if len(shapes) == 1 else None  # of every sample, None if they differ

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_files": Files()}

    def __len__(self) -> int:
        return self._starts[-1]

    def name(self, index: int) -> str:
        block, row = self._find(index)
        return block.name(row)

    def image(self, index: int) -> Array:
        """The image of one sample, in memory of its own."""
        place = self._place(index)
        out = np.empty(place.shape, native(place.dtype))
        self._read(place, out)
        try:
            return self._cast(out)
        except TconvError as problem:
            block, row = self._find(index)
            name = f"{block.names[0]}[{row}]" if block.stacked else block.names[row]
            remedy = f"convert them once, cast({self.dtype}, on_overflow=saturate) say, or take them with dtype=None"
            raise TconvError(problem.reason, remedy=remedy, file=place.path, tensor=name, step=problem.step) from None

    def label(self, index: int) -> Array | None:
        """Of one sample, a view; None if there are no labels."""
        block, row = self._find(index)
        return None if block.labels is None else block.labels[row, ...]

    def images(self, indices: Sequence[int]) -> Array:
        """Those of several samples, stacked. Raises ``TconvError`` for unequal shapes, naming two samples."""
        places = [self._place(index) for index in indices]
        for index, place in zip(indices, places, strict=True):
            if place.shape != places[0].shape:
                raise TconvError(
                    f"a batch holds equals only, but {self.name(indices[0])} is {places[0].shape} and "
                    f"{self.name(index)} is {place.shape}",
                    remedy="convert them to one size (resize), or take batches of 1",
                )
        if len({place.dtype for place in places}) > 1:  # files may differ
            out = _aligned((len(places), *places[0].shape), native(self.dtype))
            for n, index in enumerate(indices):
                out[n] = self.image(index)
            return out
        out = _aligned((len(places), *places[0].shape), native(places[0].dtype))
        for n, place in enumerate(places):
            self._read(place, out[n, ...])
        try:
            return self._cast(out)
        except TconvError:
            for index in indices:
                self.image(index)  # of which one says which it is
            raise

    def labels(self, indices: Sequence[int]) -> Array:
        """Those of several samples, stacked."""
        return np.stack([found for index in indices if (found := self.label(index)) is not None])

    def _find(self, index: int) -> tuple[Block, int]:
        number = position(index)
        at = number + len(self) if number < 0 else number
        if not 0 <= at < len(self):
            raise IndexError(f"sample {index} of {len(self)}")  # which ends loops over a sequence
        n = bisect_right(self._starts, at) - 1
        return self.blocks[n], at - self._starts[n]

    def _place(self, index: int) -> Place:
        """Where one sample lies."""
        block, row = self._find(index)
        if not block.stacked:
            return block.places[row]
        whole = block.places[0]
        shape = whole.shape[1:]
        return replace(whole, shape=shape, offset=whole.offset + row * whole.dtype.nbytes(math.prod(shape)))

    def _read(self, place: Place, out: Array) -> None:
        """All elements there into ``out``."""
        self._files.read(place.path, place.seen, place.offset, out)

    def _cast(self, x: Array) -> Array:
        stored = dtype_named(x.dtype)
        return x if stored == self.dtype else rounded(x, stored, self.dtype, "error")


def _aligned(shape: tuple[int, ...], of: np.dtype[Any]) -> Array:
    nbytes = int(np.prod(shape, dtype=object)) * of.itemsize
    room = np.empty(nbytes + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    return room[start : start + nbytes].view(of).reshape(shape)


def open_rows(src: Source, images: str | None, labels: str | None, dtype: Any) -> Rows:
    """The samples in files; see ``loaders.torch.Dataset`` for what the parameters mean and what is refused."""
    for called, name in (("images", images), ("labels", labels)):
        if not isinstance(name, str | None):
            raise WrongType(f"{called} is {shown(name)}", remedy="give the name of an array in the files")
    found = find(words(src), every=True)
    raise_all(found.failures)
    blocks = [block_in(one, images, labels) for one in found.inputs]
    files = {str(one.path): block for one, block in zip(found.inputs, blocks, strict=True)}
    if len({block.labels is None for block in blocks}) > 1:
        without = next(path for path, block in files.items() if block.labels is None)
        raise TconvError("has no labels, and others have", file=without)
    for path, block in files.items():
        if block.labels is not None and block.classes != blocks[0].classes:
            raise TconvError("its labels are numbers of other classes than those of the first file", file=path)
    for path, block in files.items():
        if block.channels != blocks[0].channels:
            one, other = (b.channels or "RGB, as far as it says" for b in (block, blocks[0]))
            raise TconvError(f"its channels are {one}, and those of the first file {other}", file=path)
    dtypes = {place.dtype: path for path, block in files.items() for place in block.places}
    return Rows(tuple(blocks), _wanted(dtypes, dtype))


def _wanted(stored: dict[DType, str], wanted: Any) -> DType:
    """The dtype that images are given in."""
    if wanted is None:
        if len(stored) > 1:
            (a, first), (b, second), *_ = stored.items()
            raise TconvError(f"{first} is {a} and {second} is {b}", remedy='dtype="float32" makes one of them')
        return next(iter(stored))
    target = dtype_named(wanted)
    for found, path in stored.items():
        if target.is_float and not found.is_float:
            raise TconvError(
                f"its images are {found}, in their own range",
                remedy="convert them once (scale), or take them as they are with dtype=None",
                file=path,
            )
    return target
