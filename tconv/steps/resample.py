"""Antialiased resampling of one picture: Pillow's own for 8 bits and mode F, the same in float64 for wider values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from tconv import opencv
from tconv.dtypes import DType, from_numpy
from tconv.scratch import buffer

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Range

_FILTERS = {name: Image.Resampling[name.upper()] for name in ("nearest", "box", "bilinear", "bicubic", "lanczos")}
_MODES = {1: "L", 3: "RGB", 4: "RGBX"}
_ALPHA_MODES = {2: "LA", 4: "RGBA"}  # Pillow averages these weighted by alpha, so that the invisible does not bleed in
LARGE = 1 << 14  # values of a picture for which importing OpenCV pays off
Box: TypeAlias = tuple[float, float, float, float]  # top, left, bottom, right
EXACT_IN_FLOAT32 = ("int8", "uint8", "int16", "uint16", "float16", "bfloat16", "float32")
AVERAGED = (*EXACT_IN_FLOAT32, "int32", "uint32", "float64")  # dtypes of which means can be made


def nearest(x: Array, axis: int, height: int, width: int) -> Array:
    """Pillow's choice of pixels along ``axis`` (the height) and the one after it; any dtype, no arithmetic."""
    rows = x.take(_chosen(x.shape[axis], height), axis)
    return rows.take(_chosen(x.shape[axis + 1], width), axis + 1)


def _chosen(size: int, new: int) -> Array:
    """Which of ``size`` positions Pillow takes for each of ``new``: it adds up steps, so no formula rounds alike."""
    positions = Image.fromarray(np.arange(size, dtype=np.int32)[np.newaxis])
    chosen: Array = np.asarray(positions.resize((new, 1), _FILTERS["nearest"]))[0]
    return chosen


def picture(
    x: Array, height: int, width: int, method: str, alpha: bool, known: Range | None, box: Box | None = None
) -> Array:
    """Of (H, W) or (H, W, C), the picture of ``height`` × ``width`` in the same dtype, which is one of ``AVERAGED``.

    ``alpha``: the last channel is opacity. ``known``: the range that the values are known to lie in. Integers are
    rounded half to even. bicubic and lanczos overshoot at edges; what they invent beyond the known range, or beyond
    the dtype, is cut off as Pillow does in 8 bits. Values that were outside from the start stay outside. ``box``: of 8
    bits, the part of it that becomes the picture.
    """
    dtype = from_numpy(x.dtype)
    assert dtype is not None
    lowest, highest = _limits(x, dtype, known)
    if dtype.name == "uint8":
        y = _eight_bit(x, height, width, method, alpha, box)
        return y if (lowest, highest) == (0, 255) else y.clip(np.uint8(lowest), np.uint8(highest))
    if alpha:
        y = _weighted_by_alpha(x, height, width, method)
    else:
        plane = _mode_f if dtype.name in EXACT_IN_FLOAT32 else _float64
        y = _by_channel(lambda channel: plane(channel, height, width, method), x)
    if dtype.is_integer:
        y = np.rint(y)
    # An infinity was in the picture and stays; an overshoot is finite before it is stored.
    np.clip(y, lowest, highest, out=y, where=np.isfinite(y))
    return y.astype(x.dtype, copy=False)


def _limits(x: Array, dtype: DType, known: Range | None) -> Range:
    """What ``picture`` cuts off at: the dtype's limits, or the known range widened to what ``x`` holds."""
    if known is None or (known[0] <= dtype.min and dtype.max <= known[1]):
        return dtype.min, dtype.max
    # NaN is not less and not more than anything, and fmin and fmax pass it over.
    low = min(known[0], float(np.fmin.reduce(x, axis=None)))
    high = max(known[1], float(np.fmax.reduce(x, axis=None)))
    return max(low, dtype.min), min(high, dtype.max)


def _by_channel(resized: Callable[[Array], Array], x: Array) -> Array:
    planes = x if x.ndim == 3 else x[..., np.newaxis]
    y = np.stack([resized(planes[..., channel]) for channel in range(planes.shape[2])], axis=-1)
    return y if x.ndim == 3 else y[..., 0]


def _eight_bit(x: Array, height: int, width: int, method: str, alpha: bool, box: Box | None) -> Array:
    channels = 1 if x.ndim == 2 else x.shape[2]
    mode = (_ALPHA_MODES if alpha else _MODES).get(channels)
    if mode is None:
        return _by_channel(lambda channel: _eight_bit(channel, height, width, method, False, box), x)
    x = np.ascontiguousarray(x)
    if mode == "RGB" and x.size >= LARGE:
        return rgb(x, height, width, method, box)
    return _pillow(x, mode, height, width, method, box).reshape(height, width, *x.shape[2:])


def _mode_f(plane: Array, height: int, width: int, method: str) -> Array:
    return _pillow(np.ascontiguousarray(plane, np.float32), "F", height, width, method)


def _pillow(x: Array, mode: str, height: int, width: int, method: str, box: Box | None = None) -> Array:
    """L, RGBX and RGBA share the memory of ``x``; Pillow keeps RGB in four bytes a pixel and has to unpack it."""
    image = Image.frombuffer(mode, (x.shape[1], x.shape[0]), x, "raw", mode, 0, 1)
    return np.asarray(image.resize((width, height), _FILTERS[method], _sides(box)))


def rgb(x: Array, height: int, width: int, method: str, box: Box | None) -> Array:
    """Of (H, W, 3) in 8 bits, or (H, W, 4) of which the last is of no account, (``height``, ``width``, 3).

    Pillow keeps RGB in four bytes a pixel. OpenCV makes four bytes of three, and three of four, in a tenth of the time
    that Pillow takes; and ``map_buffer``, by which ``Image.frombuffer`` shares the memory of the other modes, takes
    them for RGB, which that function does not: so Pillow reads and writes where the pixels are.
    """
    cv2, old, wide = opencv.load(), x.shape[:2], x
    if x.shape[2] == 3:
        wide = buffer("wide", x.dtype, 4 * prod(old)).reshape(*old, 4)
        cv2.cvtColor(x, cv2.COLOR_RGB2RGBA, dst=wide)
    padded = buffer("resized", x.dtype, 4 * height * width).reshape(height, width, 4)
    made = _mapped(wide).resize((width, height), _FILTERS[method], _sides(box) or (0, 0, *old[::-1]))
    _mapped(padded).paste(made, (0, 0, width, height))
    y: Array = cv2.cvtColor(padded, cv2.COLOR_RGBA2RGB)
    return y


def _mapped(padded: Array) -> Any:
    """What Pillow's ``Image.im`` is, of RGB, in the memory of (H, W, 4)."""
    return Image.core.map_buffer(padded, padded.shape[1::-1], "raw", 0, ("RGB", 0, 1))  # type: ignore[attr-defined]  # C


def _sides(box: Box | None) -> tuple[float, float, float, float] | None:
    """In Pillow's order: left, top, right, bottom."""
    return None if box is None else (box[1], box[0], box[3], box[2])


def _weighted_by_alpha(x: Array, height: int, width: int, method: str) -> Array:
    """The mean of the colours weighted by opacity, whatever its unit; what is wholly transparent becomes 0."""
    weighted = x.astype(np.float64)
    weighted[..., :-1] *= weighted[..., -1:]
    y = _by_channel(lambda channel: _float64(channel, height, width, method), weighted)
    opacity = y[..., -1:]
    y[..., :-1] = np.divide(y[..., :-1], opacity, out=np.zeros_like(y[..., :-1]), where=opacity > 0)
    return y


def _float64(plane: Array, height: int, width: int, method: str) -> Array:
    """Pillow's filters without its rounding to float32: across first, then down."""
    across = _along_rows(plane.astype(np.float64, copy=False), width, method)
    down: Array = _along_rows(across.T, height, method).T
    return down


def _along_rows(x: Array, new: int, method: str) -> Array:
    if x.shape[1] == new:
        return x
    y = np.empty((x.shape[0], new))
    for i, (first, weights) in enumerate(_windows(x.shape[1], new, method)):
        y[:, i] = x[:, first : first + weights.size] @ weights
    return y


def _windows(size: int, new: int, method: str) -> Iterator[tuple[int, Array]]:
    """For each of ``new`` places the first of ``size`` pixels that counts there, and the weights from it on.

    As ``precompute_coeffs`` in Pillow's Resample.c: a filter as wide as the reduction, cut at the borders, of sum 1.
    """
    support, weight = _KERNELS[method]
    scale = size / new
    stretch = max(scale, 1.0)
    for i in range(new):
        centre = (i + 0.5) * scale
        first = max(0, int(centre - support * stretch + 0.5))
        end = min(size, int(centre + support * stretch + 0.5))
        weights = weight((np.arange(first, end) - centre + 0.5) / stretch)
        yield first, weights / weights.sum()


def _box(t: Array) -> Array:
    return np.where((t > -0.5) & (t <= 0.5), 1.0, 0.0)


def _triangle(t: Array) -> Array:
    weight: Array = np.maximum(0.0, 1.0 - np.abs(t))
    return weight


def _cubic(t: Array, a: float = -0.5) -> Array:
    """Keys, "Cubic convolution interpolation for digital image processing", 1981; Pillow's ``a``."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = (((t - 5) * t + 8) * t - 4) * a
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


def _lanczos(t: Array) -> Array:
    return np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0.0)


_KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "box": (0.5, _box),
    "bilinear": (1.0, _triangle),
    "bicubic": (2.0, _cubic),
    "lanczos": (3.0, _lanczos),
}
