"""pad: pictures of ragged sizes made equal by a border at the bottom and the right, with a mask of what is picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tconv.beside import Record, with_record
from tconv.dtypes import DTYPES, DType
from tconv.errors import TconvError, UsageError
from tconv.step import Step
from tconv.steps.frame import Frame, checked_fill
from tconv.steps.geometry import MAX_SIDE, canonical_size, each, height_axis, height_width, lead, on_each
from tconv.steps.touch import labels

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.ops import Array
    from tconv.tensor import Source, Stream, Tensor


@dataclass(frozen=True)
class Pad(Step):
    """To the largest height and the largest width of all, or with --batch-size of each batch, rounded up to a multiple
    of ``multiple`` if it is given; or to ``size``: ``pad(640)`` is a square, ``pad(480x640)`` height × width.

    The picture stays at the top left; the rest is ``fill``, a value as the picture has them at this place of the chain:
    0 is black before ``normalize`` and the mean after it. Beside each picture or stack stands ``NAME.mask``, bool
    (H, W) or (N, H, W), True where there is picture: the opposite of the mask in DETR's NestedTensor and of PyTorch's
    ``key_padding_mask``, and the same as ``pixel_mask`` in Hugging Face's transformers.
    """

    name: ClassVar[str] = "pad"
    usage: ClassVar[str] = "pad, pad(640x640, fill=114), pad(multiple=32)"
    gathers: ClassVar[bool] = True

    size: int | str | None = None
    multiple: int | None = None
    fill: float = 0

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", canonical_size(self.size, self.name))
        multiple = self.multiple
        if multiple is not None and (type(multiple) is not int or not 1 <= multiple <= MAX_SIDE):
            raise UsageError(f"multiple must be a number of pixels, not {multiple!r}", step="pad")
        if self.size is not None and multiple is not None:
            raise UsageError("size and multiple exclude each other", remedy="round the size up yourself", step="pad")
        if isinstance(self.fill, bool) or not isfinite(self.fill):
            raise UsageError(f"fill must be a number, not {self.fill!r}", step="pad")

    @property
    def to_largest(self) -> bool:
        """Whether the other pictures decide how large one becomes."""
        return self.size is None

    def apply(self, stream: Stream) -> Stream:
        height, width = self._frame(stream)
        return on_each(stream, self, lambda tensor: self._padded(tensor, height, width))

    def _frame(self, stream: Stream) -> tuple[int, int]:
        if self.size is not None:
            return height_width(self.size) if isinstance(self.size, str) else (self.size, self.size)
        told, unit = labels(stream), self.multiple or 1
        sizes = each(stream.with_tensors([t for t in stream.tensors if t.spec.name not in told]), self, _size)
        height, width = (max((size[n] for size in sizes), default=1) for n in (0, 1))
        return -(-height // unit) * unit, -(-width // unit) * unit

    def _padded(self, tensor: Tensor, high: int, wide: int) -> Tensor:
        spec, axis = tensor.spec, height_axis(tensor)
        height, width = _size(tensor)
        if height > high or width > wide:
            raise TconvError(
                f"a picture of {height}x{width} does not fit into {high}x{wide}",
                remedy=f"resize it first: resize({high}x{wide}, aspect=contain) | {self}",
            )
        fill = checked_fill(self.fill, spec)
        record = Mask(str(self), height, width, high, wide, lead(spec, axis))
        if (height, width) != (high, wide):
            tensor = tensor.then(Frame(height=high, width=wide, top=0, left=0, fill=fill, axis=axis, step=str(self)))
        return with_record(tensor, record)

    def __str__(self) -> str:
        parts = [] if self.size is None else [str(self.size)]
        parts += [] if self.multiple is None else [f"multiple={self.multiple}"]
        parts += [f"fill={self.fill:.17g}"] if self.fill else []
        return f"pad({', '.join(parts)})" if parts else "pad"


def _size(tensor: Tensor) -> tuple[int, int]:
    axis = height_axis(tensor)
    return tensor.spec.shape[axis], tensor.spec.shape[axis + 1]


@dataclass(frozen=True, slots=True)
class Mask(Record):
    """A picture of ``height`` × ``width`` is at the top left of a frame of ``high`` × ``wide``; ``lead``: so are all of
    a batch of that shape.
    """

    name: ClassVar[str] = "mask"

    step: str
    height: int
    width: int
    high: int
    wide: int
    lead: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, self.high, self.wide)

    @classmethod
    def source(cls, records: Sequence[Any], shape: tuple[int, ...], path: Path) -> Source:
        sizes = np.array([(record.height, record.width) for record in records], np.int64)
        return Inside(path, shape, np.repeat(sizes, prod(records[0].lead), axis=0))


@dataclass(frozen=True, eq=False)
class Inside:
    """A source of frames (…, H, W), one for each row (height, width) of ``sizes``: True in as many rows and columns.

    Any part is made when it is asked for; nothing is held.
    """

    path: Path
    shape: tuple[int, ...]
    sizes: Array
    seekable: Final = True

    @property
    def dtype(self) -> DType:
        return DTYPES["bool"]

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        high, wide = self.shape[-2:]
        first = lo // wide
        rows = np.arange(first, -(-hi // wide))
        heights, widths = self.sizes[rows // high].T
        filled = np.where(rows % high < heights, widths, 0)
        values: Array = (np.arange(wide) < filled[:, np.newaxis]).reshape(-1)[lo - first * wide : hi - first * wide]
        if out is None:
            return values
        np.copyto(out, values)
        return out
