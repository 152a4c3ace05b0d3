"""crop: a window of a picture, from its centre or from where one says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tconv.errors import TconvError, UsageError
from tconv.ops import Whole
from tconv.step import Step
from tconv.steps.alike import once_a_kind
from tconv.steps.geometry import canonical_size, height_axis, height_width, on_each

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Spec, Stream, Tensor


@dataclass(frozen=True, kw_only=True)
class Window(Whole):
    """Rows [top, top + height) and columns [left, left + width); the height is ``axis``, the width the next one."""

    top: int
    left: int
    height: int
    width: int
    axis: int

    def spec(self, spec: Spec) -> Spec:
        shape = (*spec.shape[: self.axis], self.height, self.width, *spec.shape[self.axis + 2 :])
        return replace(spec, shape=shape)

    def below(self) -> Window | None:
        return replace(self, axis=self.axis - 1) if self.axis else None

    def apply(self, x: Array) -> Array:
        """A view."""
        rows, columns = slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)
        where = (*(slice(None) for _ in range(self.axis)), rows, columns)
        window: Array = x[where]
        return window


@dataclass(frozen=True)
class Crop(Step):
    """``crop(224)`` is a square, ``crop(256x192)`` height × width; from the centre, or from ``top`` and ``left``.

    The centre is torchvision's ``center_crop``: where one pixel is left over, top = round((height - size) / 2) with
    halves to even. What is larger than the picture is refused, where torchvision would pad with black.
    """

    name: ClassVar[str] = "crop"
    usage: ClassVar[str] = "crop(224), crop(256x192, top=0, left=16)"

    size: int | str
    top: int | None = None
    left: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", canonical_size(self.size, self.name))
        if (self.top is None) != (self.left is None):
            raise UsageError("top and left go together", remedy=f"write crop({self.size}, top=0, left=0)", step="crop")
        for side, value in (("top", self.top), ("left", self.left)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise UsageError(f"{side} must be a number of pixels, 0 or more, not {value!r}", step="crop")

    def apply(self, stream: Stream) -> Stream:
        return on_each(stream, self, once_a_kind(self._cropped))

    def _cropped(self, tensor: Tensor) -> Tensor:
        axis = height_axis(tensor)
        height, width = tensor.spec.shape[axis : axis + 2]
        high, wide = height_width(self.size) if isinstance(self.size, str) else (self.size, self.size)
        if high > height or wide > width:
            raise TconvError(
                f"a window of {high}x{wide} is larger than the picture of {height}x{width}",
                remedy=f"resize it first: resize({max(high, wide)}) | crop({self.size})",
            )
        if self.top is None or self.left is None:
            top, left = round((height - high) / 2), round((width - wide) / 2)
        else:
            top, left = self.top, self.left
        if top + high > height or left + wide > width:
            raise TconvError(
                f"a window of {high}x{wide} at top={top}, left={left} reaches out of the picture of {height}x{width}",
                remedy=f"top may be up to {height - high} and left up to {width - wide} here",
            )
        if (high, wide) == (height, width):
            return tensor
        return tensor.then(Window(top=top, left=left, height=high, width=wide, axis=axis, step=str(self)))

    def __str__(self) -> str:
        place = "" if self.top is None else f", top={self.top}, left={self.left}"
        return f"crop({self.size}{place})"
