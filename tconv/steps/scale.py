"""scale: the known range of the values onto [0, 1], or onto all of an integer dtype."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv import dtypes
from tconv.errors import TconvError, UsageError
from tconv.ops import Elementwise, Promise, is_stated
from tconv.step import Step
from tconv.steps.alike import once_a_kind
from tconv.steps.convention import CONVENTIONS, conventional
from tconv.steps.origin import chain, is_normalized, marked_range
from tconv.steps.touch import on_touched

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array, Pick
    from tconv.tensor import Range, Spec, Stream, Tensor

FLOAT32 = dtypes.dtype("float32")


@dataclass(frozen=True)
class Scale(Step):
    """Onto [0, 1] in ``dtype`` (by default float32, or the dtype of a floating input), or onto the full range of an
    integer ``dtype``, rounding half to even and clamping: 8 to 16 bits is exactly ×257.

    ``like="torchvision"`` or ``"tensorflow"`` computes what ``to_dtype(scale=True)`` or ``convert_image_dtype`` does.
    Raises ``TconvError`` for values of unknown range and for those that were scaled already, in this chain or before.
    """

    name: ClassVar[str] = "scale"
    rounds: ClassVar[bool] = True
    usage: ClassVar[str] = "scale, scale(uint8), scale(float32, like=torchvision)"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"like": CONVENTIONS}

    dtype: str | None = None
    like: str | None = None

    def __post_init__(self) -> None:
        if self.like is not None and self.like not in CONVENTIONS:
            raise UsageError(f"there is no convention {self.like!r}", remedy=f"choose {' or '.join(CONVENTIONS)}")
        if self.dtype is None:
            return
        target = dtypes.dtype(self.dtype)
        if not (target.is_float or target.is_integer) or target.bits < 8 or (target.is_integer and target.bits > 32):
            raise UsageError(
                f"there is no scaling to {target}", remedy="choose a float dtype, or an integer of 8, 16 or 32 bits"
            )
        object.__setattr__(self, "dtype", target.name)

    def apply(self, stream: Stream) -> Stream:
        return on_touched(stream, self, once_a_kind(self._scale))

    def _scale(self, tensor: Tensor) -> Tensor:
        spec = tensor.spec
        if spec.dtype.kind == "complex":
            raise TconvError("complex values have no range to scale", remedy="choose tensors with --only")
        target = dtypes.dtype(self.dtype) if self.dtype else spec.dtype if spec.dtype.is_float else FLOAT32
        known = _range(spec)
        _refuse_twice(tensor, target)
        to: Range = (target.min, target.max) if target.is_integer else (0.0, 1.0)
        if target.is_integer and spec.dtype.is_float and not is_stated(tensor.ops):
            # What the file says is counted too: the rest is clamped.
            tensor = tensor.then(Promise(range=known, step=str(self), by_file=True))
        if self.like is None:
            return tensor.then(Rescale(dtype=target, onto=to, known=known, step=str(self)))
        factor = conventional(self.like, spec.dtype, target, known)
        single = target.bits < 64 and spec.dtype.bits < 64
        unit = spec.dtype.is_float
        return tensor.then(Multiply(dtype=target, onto=to, factor=factor, single=single, unit=unit, step=str(self)))

    def __str__(self) -> str:
        parts = [self.dtype] if self.dtype else []
        parts += [f"like={self.like}"] if self.like else []
        return f"scale({', '.join(parts)})" if parts else "scale"


@dataclass(frozen=True, kw_only=True)
class Scaling(Elementwise):
    """Values become those of the range ``onto``; a chain holds at most one such operation."""

    onto: Range

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, dtype=self.dtype, range=self.onto)


@dataclass(frozen=True, kw_only=True)
class Rescale(Scaling):
    """The straight line that takes the bounds of ``known`` to those of ``onto``."""

    portable: ClassVar[bool] = True

    known: Range

    def compute(self, x: Array, pick: Pick) -> Array:
        low, high = self.known
        bottom, top = self.onto
        if math.isfinite((high - low) * (top - bottom)):
            # The product comes first: of short factors it is exact, and the quotient is then rounded just once.
            x -= low
            x *= top - bottom
            x /= high - low
        else:  # near the end of float64 half of everything is what fits
            x /= 2
            x -= low / 2
            x /= high / 2 - low / 2
            x *= top - bottom
        if self.dtype.is_integer:
            x += bottom
            x = x.round().clip(bottom, top)
        return x


@dataclass(frozen=True, kw_only=True)
class Multiply(Scaling):
    """x · ``factor`` as the frameworks compute it: in float32 if ``single``, and truncated for integers.

    ``unit`` says that the values are promised to lie in [0, 1]: what does not is clamped, where theirs would wrap.
    """

    factor: float
    single: bool
    unit: bool

    def compute(self, x: Array, pick: Pick) -> Array:
        if self.unit and self.dtype.is_integer:
            x = np.clip(x, 0, 1, out=x)
        if self.single:
            with np.errstate(over="ignore"):
                x = (x.astype(np.float32) * np.float32(self.factor)).astype(np.float64)
        else:
            x *= self.factor
        return np.clip(np.floor(x, out=x), *self.onto, out=x) if self.dtype.is_integer else x


def _refuse_twice(tensor: Tensor, target: DType) -> None:
    """What was scaled before, in this chain or in the one that wrote the file, is not scaled once more.

    Scaled values may still become integers, which are then the pixels that they were.
    """
    for op in chain(tensor):
        if isinstance(op, Scaling):
            raise TconvError(f"the values were scaled already, by {op.step}", remedy="leave one of the two out")
    known = marked_range(tensor)
    if known is None:
        return
    lie = f"its values lie in [{known[0]:g}, {known[1]:g}]"
    remedy = "leave --normalize (scale) out, or state --range LO,HI if it is meant"
    if is_normalized(known):
        raise TconvError(f"{lie}, says the file: normalized data are not scaled again", remedy=remedy)
    if known[1] <= 1 and target.is_float:
        raise TconvError(f"{lie} already, says the file: it was scaled before", remedy=remedy)


def _range(spec: Spec) -> Range:
    known = (0.0, 1.0) if spec.dtype.kind == "bool" else spec.range
    if known is None:
        raise TconvError(
            f"nobody knows the range of these {spec.dtype} values",
            remedy="say it: --range 0,255 or --range 0,1; --skip leaves a tensor out",
        )
    if not known[0] < known[1]:
        raise TconvError(f"the range [{known[0]:g}, {known[1]:g}] is a single value", remedy="say another --range")
    return known
