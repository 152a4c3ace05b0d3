"""resize: pictures of another size, antialiased, bit for bit as Pillow's ``Image.resize``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv.errors import TconvError, UsageError
from tconv.ops import Whole
from tconv.steps import resample
from tconv.steps.alike import once_a_kind
from tconv.steps.geometry import MAX_SIDE, canonical_size, height_axis, height_width, on_each
from tconv.tensor import Step

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Range, Spec, Stream, Tensor

METHODS = ("bilinear", "bicubic", "lanczos", "box", "nearest")


@dataclass(frozen=True, kw_only=True)
class ResizeTo(Whole):
    """To ``height`` × ``width``; the height is ``axis``, the width the next one, what is before them is a batch.

    ``alpha``: the channels after them end in opacity. ``range``: what the values are known to lie in.
    """

    height: int
    width: int
    method: str
    axis: int
    alpha: bool
    range: Range | None

    def spec(self, spec: Spec) -> Spec:
        shape = (*spec.shape[: self.axis], self.height, self.width, *spec.shape[self.axis + 2 :])
        return replace(spec, shape=shape)

    def below(self) -> ResizeTo | None:
        return replace(self, axis=self.axis - 1) if self.axis else None

    def apply(self, x: Array) -> Array:
        if self.method == "nearest":
            return resample.nearest(x, self.axis, self.height, self.width)
        if not self.axis:
            return self._picture(x)
        batch = x.shape[: self.axis]
        out = np.empty((*batch, self.height, self.width, *x.shape[self.axis + 2 :]), x.dtype)
        for at in np.ndindex(batch):
            out[at] = self._picture(x[at])
        return out

    def _picture(self, x: Array) -> Array:
        return resample.picture(x, self.height, self.width, self.method, self.alpha, self.range)

    def scratch(self, spec: Spec) -> int:
        """One picture of the batch at a time: what Pillow unpacks and resizes across, then down, and copies of that."""
        height, width = spec.shape[self.axis : self.axis + 2]
        if self.method == "nearest":
            return spec.size // height * self.height * spec.dtype.itemsize
        channels = prod(spec.shape[self.axis + 2 :])
        old, across, new = height * width, height * self.width, self.height * self.width
        if spec.dtype.name == "uint8":  # Pillow keeps the pixels of any mode but L in four bytes
            return 4 * (old + across + 2 * new)
        exact = spec.dtype.name in resample.EXACT_IN_FLOAT32 and not self.alpha
        values = 2 * old + across + (2 + 3 * channels) * new + (channels * old if self.alpha else 0)
        return values * (4 if exact else 8)


@dataclass(frozen=True)
class Resize(Step):
    """``resize(224)`` makes the shorter side 224 and keeps the aspect, ``resize(256x192)`` is height × width exactly.

    The longer side is int(size · long / short), as torchvision's ``_compute_resized_output_size``. A picture that has
    the size already is left alone.
    """

    name: ClassVar[str] = "resize"
    usage: ClassVar[str] = "resize(224), resize(256x192, method=bicubic)"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"method": METHODS}

    size: int | str
    method: str = "bilinear"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", canonical_size(self.size, self.name))
        if self.method not in METHODS:
            raise UsageError(
                f"there is no method {self.method!r}", remedy=f"valid: {', '.join(METHODS)}", step="resize"
            )

    def apply(self, stream: Stream) -> Stream:
        return on_each(stream, self, once_a_kind(self._resized))

    def _resized(self, tensor: Tensor) -> Tensor:
        spec, axis = tensor.spec, height_axis(tensor)
        if self.method != "nearest":
            _check_averaging(spec, self.size)
        old = spec.shape[axis], spec.shape[axis + 1]
        height, width = height_width(self.size) if isinstance(self.size, str) else _shorter_side(self.size, *old)
        if (height, width) == old:
            return tensor
        alpha = bool(spec.attrs.get("alpha"))
        if alpha and spec.axes and not spec.axes.endswith("C"):
            raise TconvError(
                f"opacity is averaged with the colours, and the channels are not last: its axes are {spec.axes}",
                remedy="resize before permute",
            )
        op = ResizeTo(
            height=height, width=width, method=self.method, axis=axis, alpha=alpha, range=spec.range, step=str(self)
        )
        return tensor.then(op)

    def __str__(self) -> str:
        method = "" if self.method == "bilinear" else f", method={self.method}"
        return f"resize({self.size}{method})"


def _shorter_side(size: int, height: int, width: int) -> tuple[int, int]:
    longer = size * max(height, width) // min(height, width)
    if longer > MAX_SIDE:
        raise TconvError(
            f"a picture of {height}x{width} with a shorter side of {size} is {longer} pixels long",
            remedy=f"say both sides: resize({size}x{size})",
        )
    return (longer, size) if width <= height else (size, longer)


def _check_averaging(spec: Spec, size: int | str) -> None:
    """Refuse values of which a mean is nonsense (classes, masks) or not exact."""
    dtype, instead = spec.dtype, f"resize({size}, method=nearest)"
    if dtype.kind == "bool":
        raise TconvError("a mask has no values between false and true", remedy=instead)
    if dtype.is_integer and not (spec.axes and "C" in spec.axes):
        raise TconvError(
            f"{dtype} values without a channel axis may be labels, and the mean of two labels names a third",
            remedy=f"{instead} for labels, cast(float32) before it for intensities",
        )
    if dtype.name not in resample.AVERAGED:
        raise TconvError(
            f"{dtype} values cannot be averaged without loss",
            remedy=f"cast(float32) before it, or {instead}",
        )
