"""resize: pictures of another size, antialiased, bit for bit as Pillow's ``Image.resize``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv.errors import TconvError, UsageError
from tconv.ops import Resizing
from tconv.step import Step
from tconv.steps import resample
from tconv.steps.alike import once_a_kind
from tconv.steps.aspect import contained, covering, with_longest
from tconv.steps.geometry import canonical_size, height_axis, height_width, on_each

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Range, Raster, Spec, Stream, Tensor

METHODS = ("bilinear", "bicubic", "lanczos", "box", "nearest")
ASPECTS = ("contain", "cover")


@dataclass(frozen=True, kw_only=True)
class ResizeTo(Resizing):
    """What is before the height and the width is a batch.

    ``alpha``: the channels after them end in opacity. ``range``: what the values are known to lie in. ``box`` and
    ``padded``: see ``tensor.Raster``.
    """

    method: str
    alpha: bool
    range: Range | None
    box: tuple[float, float, float, float] | None = None
    padded: bool = False

    def spec(self, spec: Spec) -> Spec:
        channels = (3,) if self.padded else spec.shape[self.axis + 2 :]
        return spec.shaped((*spec.shape[: self.axis], self.height, self.width, *channels))

    @property
    def smooth(self) -> bool:
        return self.method in ("bilinear", "bicubic", "lanczos")

    def of(self, raster: Raster) -> ResizeTo:
        if raster.box != (0, 0, *raster.source.shape[:2]):
            return replace(self, box=raster.box, padded=raster.padded)
        return self._padded if raster.padded else self

    @cached_property
    def _padded(self) -> ResizeTo:
        return replace(self, padded=True)

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
        if self.padded:
            return resample.rgb(x, self.height, self.width, self.method, self.box)
        return resample.picture(x, self.height, self.width, self.method, self.alpha, self.range, self.box)

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

    ``aspect`` keeps it for both kinds of size, in the words of Pillow's ImageOps: ``contain`` makes the picture as
    large as fits into the size (of ``resize(640, aspect=contain)`` the longer side is 640), ``cover`` as small as
    covers it. ``max_size`` is torchvision's: the longer side is at most that, even if the shorter one becomes less than
    asked for. The side that follows is rounded down, as torchvision does. A picture that has the size already is left
    alone.
    """

    name: ClassVar[str] = "resize"
    usage: ClassVar[str] = "resize(224), resize(256x192, method=bicubic), resize(640, aspect=contain)"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"method": METHODS, "aspect": ASPECTS}

    size: int | str
    method: str = "bilinear"
    aspect: str | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", canonical_size(self.size, self.name))
        check_method(self.method, self.name)
        if self.aspect not in (None, *ASPECTS):
            raise UsageError(
                f"there is no aspect {self.aspect!r}", remedy=f"valid: {', '.join(ASPECTS)}", step="resize"
            )
        if self.max_size is None:
            return
        if isinstance(self.size, str) or self.aspect is not None:
            raise UsageError(
                "max_size is for a shorter side", remedy="for example resize(800, max_size=1333)", step="resize"
            )
        if isinstance(self.max_size, bool) or canonical_size(self.max_size, self.name) != self.max_size:
            raise UsageError(f"max_size must be a number of pixels, not {self.max_size!r}", step="resize")
        if self.max_size <= self.size:
            raise UsageError(
                f"max_size is {self.max_size}; it must be more than the shorter side, {self.size}",
                remedy=f"resize({self.max_size}, aspect=contain) makes the longer side that",
                step="resize",
            )

    def apply(self, stream: Stream) -> Stream:
        return on_each(stream, self, once_a_kind(self._resized))

    def _resized(self, tensor: Tensor) -> Tensor:
        spec, axis = tensor.spec, height_axis(tensor)
        if self.method != "nearest":
            check_averaging(spec, f"resize({self.size}, method=nearest)")
        height, width = self._new(spec.shape[axis], spec.shape[axis + 1])
        return resized_to(tensor, height, width, self.method, str(self))

    def _new(self, height: int, width: int) -> tuple[int, int]:
        """The size that a picture of ``height`` × ``width`` gets."""
        if isinstance(self.size, str):
            high, wide = height_width(self.size)
            if self.aspect is None:
                return high, wide
        else:
            high = wide = self.size
        if self.aspect == "contain":
            return contained(high, wide, height, width)
        if self.max_size is not None:
            return with_longest(high, self.max_size, height, width)
        return covering(high, wide, height, width)

    def __str__(self) -> str:
        parts = [str(self.size)]
        parts += [f"method={self.method}"] if self.method != "bilinear" else []
        parts += [f"aspect={self.aspect}"] if self.aspect else []
        parts += [f"max_size={self.max_size}"] if self.max_size else []
        return f"resize({', '.join(parts)})"


def check_method(method: str, step: str) -> None:
    """Refuse the name of a filter that there is not."""
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}", remedy=f"valid: {', '.join(METHODS)}", step=step)


def resized_to(tensor: Tensor, height: int, width: int, method: str, step: str) -> Tensor:
    """``tensor`` with pictures of that size; itself if it has it. Raises ``TconvError`` for a mean with opacity apart
    from its colours.
    """
    spec, axis = tensor.spec, height_axis(tensor)
    if (height, width) == spec.shape[axis : axis + 2]:
        return tensor
    alpha = bool(spec.attrs.get("alpha"))
    if alpha and spec.axes and not spec.axes.endswith("C"):
        raise TconvError(
            f"opacity is averaged with the colours, and the channels are not last: its axes are {spec.axes}",
            remedy="resize before permute",
        )
    op = ResizeTo(height=height, width=width, method=method, axis=axis, alpha=alpha, range=spec.range, step=step)
    return tensor.then(op)


def check_averaging(spec: Spec, instead: str) -> None:
    """Refuse values of which a mean is nonsense (classes, masks) or not exact; ``instead`` makes none."""
    dtype = spec.dtype
    if dtype.kind == "bool":
        raise TconvError(
            "a mask has no values between false and true",
            remedy=f"{instead}; of black and white pictures --channels gray",
        )
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
