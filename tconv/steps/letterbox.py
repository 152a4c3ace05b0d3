"""letterbox: pictures fitted into one size with their aspect kept, in the middle of a border, as YOLO is fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tconv.beside import Record, with_record
from tconv.dtypes import dtype
from tconv.errors import TconvError, UsageError
from tconv.memory import ArraySource
from tconv.step import Step
from tconv.steps.frame import Frame, checked_fill
from tconv.steps.geometry import canonical_size, height_axis, height_width, lead, on_each
from tconv.steps.resize import check_averaging, resized_to

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.tensor import Source, Spec, Stream, Tensor

GREY = 114 / 255  # of the range: what YOLO's borders are


@dataclass(frozen=True)
class Letterbox(Step):
    """``letterbox(640)`` is a square, ``letterbox(384x640)`` height × width: the picture is resized, up or down, until
    it just fits, and the border is split evenly, an odd pixel at the bottom or at the right.

    ``fill`` is a value as the picture has them at this place of the chain; without it, the border is YOLO's grey, 114
    of 255, in the range of the picture (29298 in 16 bits). Sizes and offsets are those of ultralytics' ``LetterBox``
    (``auto=False``); the pixels are not, since it resizes by OpenCV's bilinear, and this is Pillow's, antialiased.
    Beside each picture or stack stands ``NAME.letterbox``, float32 (5) or (N, 5): ratio, left, top, height, width, the
    latter two of the picture as it was. A box in the letterbox is mapped back by x = (x - left) / ratio and
    y = (y - top) / ratio, clipped to width and height.
    """

    name: ClassVar[str] = "letterbox"
    usage: ClassVar[str] = "letterbox(640), letterbox(384x640, fill=0)"

    size: int | str
    fill: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", canonical_size(self.size, self.name))
        if self.fill is not None and (isinstance(self.fill, bool) or not isfinite(self.fill)):
            raise UsageError(f"fill must be a number, not {self.fill!r}", step="letterbox")

    def apply(self, stream: Stream) -> Stream:
        return on_each(stream, self, self._framed)

    def _framed(self, tensor: Tensor) -> Tensor:
        spec, axis = tensor.spec, height_axis(tensor)
        check_averaging(spec, f"resize({self.size}, method=nearest, aspect=contain) | pad({self.size})")
        high, wide = height_width(self.size) if isinstance(self.size, str) else (self.size, self.size)
        old = spec.shape[axis], spec.shape[axis + 1]
        ratio, height, width, top, left = placed(high, wide, *old)
        fill = checked_fill(_grey(spec) if self.fill is None else self.fill, spec)
        record = Placed(str(self), ratio, left, top, *old, lead(spec, axis))
        tensor = resized_to(tensor, height, width, "bilinear", str(self))
        if (height, width) != (high, wide):
            tensor = tensor.then(
                Frame(height=high, width=wide, top=top, left=left, fill=fill, axis=axis, step=str(self))
            )
        return with_record(tensor, record)

    def __str__(self) -> str:
        fill = "" if self.fill is None else f", fill={self.fill:.17g}"
        return f"letterbox({self.size}{fill})"


def placed(high: int, wide: int, height: int, width: int) -> tuple[float, int, int, int, int]:
    """By how much a picture of ``height`` × ``width`` is resized to fit into ``high`` × ``wide``, its new height and
    width, and where in there its top and its left are.

    Source: ``LetterBox`` of ultralytics, to the letter of its rounding; but no side is 0, where OpenCV would fail.
    """
    ratio = min(high / height, wide / width)
    new_height, new_width = max(1, round(height * ratio)), max(1, round(width * ratio))
    return ratio, new_height, new_width, round((high - new_height) / 2 - 0.1), round((wide - new_width) / 2 - 0.1)


def _grey(spec: Spec) -> float:
    """The grey that borders have in the range of the picture, whole in integers."""
    if spec.range is None or spec.range[0] != 0:
        raise TconvError(
            "the grey of the border is 114 of 255 in a range that begins at 0, and that of its values is "
            f"{'unknown' if spec.range is None else f'[{spec.range[0]:g}, {spec.range[1]:g}]'}",
            remedy="put letterbox before normalize, say --range LO,HI, or fill=VALUE",
        )
    grey = GREY * spec.range[1]
    return round(grey) if spec.dtype.is_integer else grey


@dataclass(frozen=True, slots=True)
class Placed(Record):
    """How a picture of ``height`` × ``width`` was fitted into its frame; ``lead``: and all others of a batch of that
    shape.
    """

    name: ClassVar[str] = "letterbox"

    step: str
    ratio: float
    left: int
    top: int
    height: int
    width: int
    lead: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, 5)

    @classmethod
    def source(cls, records: Sequence[Any], shape: tuple[int, ...], path: Path) -> Source:
        rows = np.array([(r.ratio, r.left, r.top, r.height, r.width) for r in records], np.float32)
        values = np.repeat(rows, prod(records[0].lead), axis=0).reshape(-1)
        return ArraySource(path, dtype("float32"), shape, values)
