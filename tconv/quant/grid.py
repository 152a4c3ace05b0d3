"""The numbers that quantized values can be, and the way from values to them and back.

Integers: ONNX's QuantizeLinear and DequantizeLinear (https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html), in
float32: q = clamp(round_half_even(x / scale) + zero_point), x = (q - zero_point) * scale.
NF4: the sixteen quantiles of a normal distribution in [-1, 1] (T. Dettmers et al., "QLoRA", 2023, appendix E), of which
the nearest is taken; the index of it is what is stored, and the scale is the largest magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from tconv import casts, opencv
from tconv.casts.rounding import widened
from tconv.dtypes import DTYPES, DType, dtype
from tconv.errors import UsageError
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    from tconv.ops import Array

Scheme = Literal["symmetric", "affine"]
SCHEMES = ("symmetric", "affine")
INTEGERS = ("int8", "uint8", "int4", "uint4", "int16", "uint16")
FLOATS = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
TARGETS = (*INTEGERS, *FLOATS, "nf4")
FLOAT32 = DTYPES["float32"]
SMALLEST = np.float32(2.0**-149)

NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """``dtype`` is what is stored. ``low`` and ``high``: the least and the greatest number on the grid."""

    name: str
    dtype: DType
    scheme: Scheme
    low: float
    high: float

    @property
    def affine(self) -> bool:
        """Whether there is a zero point."""
        return self.scheme == "affine"

    @property
    def is_codebook(self) -> bool:
        return self.name == "nf4"

    @property
    def holder(self) -> DType:
        """The dtype of 8 bits or more that NumPy computes the numbers in."""
        return DTYPES["uint8" if self.dtype.kind == "uint" else "int8"] if self.dtype.bits == 4 else self.dtype

    @property
    def reach(self) -> float:
        """The largest magnitude of a number on the grid less any zero point."""
        return float(self.high if self.is_codebook or self.dtype.is_float else self.dtype.max - self.dtype.min)

    def parameters(self, low: Array, high: Array) -> tuple[Array, Array | None]:
        """float32 scales and, where there are, zero points of ``dtype``, for values in [low, high] (float64, finite).

        Symmetric: the largest magnitude becomes the greatest number. Affine: [low, high], widened to hold 0, becomes
        all of the range. Where all is 0 the scale is 1; it is never 0, however small the values are, and never so large
        that what lies on the grid would be infinite as float32.
        """
        with np.errstate(over="ignore", under="ignore"):
            if not self.affine:
                scale = (self.covering(low, high)[1] / self.high).astype(np.float32)
                return _finite(_never_0(scale, (low == 0) & (high == 0)), self.high), None
            low, high = self.covering(low, high)
            scale = _never_0(
                (high / (self.high - self.low) - low / (self.high - self.low)).astype(np.float32), low == high
            )
            zero = np.clip(np.rint(self.low - low / scale.astype(np.float64)), self.low, self.high)
            scale = _finite(scale, np.maximum(self.high - zero, zero - self.low))
        return scale, zero.astype(self.holder.numpy).astype(self.dtype.numpy)

    def covering(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The ranges that scales are for: those given, widened to hold 0 or, symmetric, to both sides."""
        if self.affine:
            return np.minimum(low, 0), np.maximum(high, 0)
        most = np.maximum(np.abs(low), np.abs(high))
        return 0 - most, most

    def quantize(
        self, x: Array, scale: Array | float, zero: Array | float | None, out: Array, work: Array | None = None
    ) -> None:
        """``x``: float32 of any shape, finite, with which ``scale`` and ``zero`` (float32) broadcast. ``out``: of the
        same shape and of ``dtype``. ``work``: like ``x``, to be overwritten, which ``x`` itself may be.
        """
        with np.errstate(over="ignore"):  # what is far beyond the range becomes its end
            x = np.divide(x, scale, out=work)
        if self.is_codebook:
            codes = np.searchsorted(_midpoints(), x.reshape(-1), side="left")
            np.copyto(out, codes.astype(np.uint8).reshape(x.shape), casting="unsafe")
            return
        np.maximum(x, self.low - (0 if zero is None else zero), out=x)
        np.minimum(x, self.high - (0 if zero is None else zero), out=x)
        if self.dtype.is_float:
            casts.cast(x, self.dtype, out, src=FLOAT32, on_overflow="saturate")
            return
        if zero is not None:
            np.rint(x, out=x)
            np.add(x, zero, out=x)
        _to_integers(x, out, self.holder)

    def dequantize(self, q: Array, scale: Array | float, zero: Array | float | None, *, exact: bool = False) -> Array:
        """float32 of the shape of ``q``, which is of ``dtype``; ``exact``: float64, in which nothing is rounded."""
        kind = np.float64 if exact else np.float32
        if self.is_codebook:
            x = np.asarray(NF4, np.float32)[q.astype(np.uint8)].astype(kind, copy=False)
        elif self.dtype.is_float:
            x = widened(np.ascontiguousarray(q).reshape(-1), self.dtype).reshape(q.shape).astype(kind)
        else:
            x = q.astype(kind)
        if zero is not None:
            x -= zero
        x *= scale
        return x


def _never_0(scale: Array, nothing: Array) -> Array:
    found: Array = np.where(nothing, np.float32(1), np.maximum(scale, SMALLEST))
    return found


def _finite(scale: Array, number: Array | float) -> Array:
    """The scale, or the largest with which ``number`` is finite as float32."""
    top = FLOAT32.max / np.asarray(number, np.float64)
    most = top.astype(np.float32)
    return np.asarray(np.minimum(scale, np.where(most > top, np.nextafter(most, np.float32(0)), most)))


def _to_integers(x: Array, out: Array, holder: DType) -> None:
    """Round half to even; ``x`` is within the range of the target."""
    if out.dtype.itemsize != 1 or holder.numpy != out.dtype or not x.flags.c_contiguous or not out.flags.c_contiguous:
        np.copyto(out, np.rint(x, out=x).astype(holder.numpy), casting="unsafe")
        return
    cv2 = opencv.load()
    flat, target = x.reshape(1, -1), out.reshape(1, -1)
    made = cv2.add(flat, 0.0, dst=target, dtype=cv2.CV_8S if holder.kind == "int" else cv2.CV_8U)
    if not np.shares_memory(made, target):
        target[...] = made


@cache
def _midpoints() -> Array:
    """Between neighbours on the NF4 grid; a value on one goes down, as in bitsandbytes."""
    codes = np.asarray(NF4, np.float32)
    between: Array = (codes[1:] + codes[:-1]) / np.float32(2)
    return between


def grid(name: str, scheme: Scheme | None = None) -> Grid:
    """The grid of that name; ``UsageError`` if there is none or if it has no such scheme.

    Without a ``scheme``: affine for unsigned integers, symmetric for the rest.
    """
    plain = "nf4" if name.lower() == "nf4" else dtype(name).name
    if plain not in TARGETS:
        raise UsageError(f"there is no quantization to {plain}", remedy=did_you_mean(plain, TARGETS, _CHOOSE))
    if scheme is not None and scheme not in SCHEMES:
        raise UsageError(f"there is no scheme {scheme!r}", remedy=f"choose {' or '.join(SCHEMES)}")
    if plain == "nf4":
        _refuse(plain, "affine", scheme)
        return Grid("nf4", DTYPES["uint4"], "symmetric", -1, 1)
    target = DTYPES[plain]
    if target.is_float:
        _refuse(plain, "affine", scheme)
        return Grid(plain, target, "symmetric", -target.max, target.max)
    if target.kind == "uint":
        _refuse(plain, "symmetric", scheme)
        return Grid(plain, target, "affine", target.min, target.max)
    if scheme == "affine":
        return Grid(plain, target, "affine", target.min, target.max)
    return Grid(plain, target, "symmetric", -target.max, target.max)


_CHOOSE = f"choose {', '.join(TARGETS)}"


def _refuse(name: str, bad: Scheme, scheme: str | None) -> None:
    if scheme == bad:
        why = "unsigned integers have no negative half" if bad == "symmetric" else "it has no zero point"
        raise UsageError(f"there is no {bad} scheme for {name}: {why}", remedy="leave the scheme out")
