"""Mean and standard deviation of many tensors together, channel by channel, in one pass and in any order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tconv import opencv
from tconv.measure.elements import plain

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Range

_ROOT_BITS = 2 * 53 + 3
_BAND = 1 << 22  # values looked at in one go: sums of them are exact, and what they are widened to stays small


@dataclass(frozen=True)
class Powers:
    """How many values there are, the sums of them and of their squares, and the extremes.

    The sums are exact rational numbers, so that adding up, in whatever order, rounds nothing, and the variance, which
    is the difference of two large numbers, loses nothing.
    """

    count: int = 0
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)
    lowest: Fraction | None = None
    highest: Fraction | None = None

    def __add__(self, other: Powers) -> Powers:
        lows = [p.lowest for p in (self, other) if p.lowest is not None]
        highs = [p.highest for p in (self, other) if p.highest is not None]
        return Powers(
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            min(lows, default=None),
            max(highs, default=None),
        )

    def scaled(self, known: Range) -> Powers:
        """Those of the same values when ``known`` is taken to [0, 1] by a straight line."""
        low, width = Fraction(known[0]), Fraction(known[1]) - Fraction(known[0])
        return Powers(
            self.count,
            (self.total - self.count * low) / width,
            (self.squares - 2 * low * self.total + self.count * low**2) / width**2,
            None if self.lowest is None else (self.lowest - low) / width,
            None if self.highest is None else (self.highest - low) / width,
        )

    @property
    def mean(self) -> float:
        return float(self.total / self.count)

    @property
    def std(self) -> float:
        """Of the population: the root of the mean squared distance from the mean."""
        return root(self.squares / self.count - (self.total / self.count) ** 2)


def root(q: Fraction) -> float:
    """The square root of ``q``, which is not negative, rounded once: that of its nearest float64 is off by an ulp at
    times.

    Source: ``_float_sqrt_of_frac`` of CPython's module statistics. The root of an integer of twice 55 bits or more,
    the last bit of which tells whether anything follows (rounding to odd), is rounded right when it is divided.
    """
    shift = (q.numerator.bit_length() - q.denominator.bit_length() - _ROOT_BITS) // 2
    n, d = q.numerator << max(0, -2 * shift), q.denominator << max(0, 2 * shift)
    floor = math.isqrt(n // d)
    odd = floor | (floor * floor * d != n)
    return (odd << max(0, shift)) / (1 << max(0, -shift))


class NotFinite(Exception):  # noqa: N818  # it says what the values are
    """So many values have no mean: they are NaN or infinite (``count``), or too large for float64 (0)."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


@dataclass(frozen=True)
class Channels:
    """How the values of a tensor belong to channels: each has ``inner`` values in a row, then comes the next one."""

    count: int
    inner: int

    @classmethod
    def of(cls, shape: Sequence[int], axis: int | None) -> Channels:
        """Along ``axis``; a tensor without one is a single channel."""
        return cls(1, max(1, math.prod(shape))) if axis is None else cls(shape[axis], math.prod(shape[axis + 1 :]))

    def blocks(self, x: Array, lo: int) -> Iterator[tuple[int, Array]]:
        """The flat values ``x``, which begin at element ``lo``, as blocks of (times, channels, values in a row), each
        with the number of its first channel. Blocks hold all channels, or a part of one.
        """
        period, at = self.count * self.inner, 0
        while at < x.size:
            channel, within = divmod((lo + at) % period, self.inner)
            times = 0 if channel or within else (x.size - at) // period
            if times:
                size = times * period
                yield 0, x[at : at + size].reshape(times, self.count, self.inner)
            else:
                size = min(self.inner - within, x.size - at)
                yield channel, x[at : at + size].reshape(1, 1, size)
            at += size


def powers(x: Array, lo: int, dtype: DType, channels: Channels) -> list[Powers]:
    """Those of each channel of the flat values ``x`` of a real ``dtype``, which begin at element ``lo``.

    Exact for integers of up to 16 bits and bool. Of other values those of each band of ``_BAND`` come from their mean
    and their squared distances from it, summed up pairwise in float64: as exact as a single such array would be.
    Raises ``NotFinite``.
    """
    found = [Powers()] * channels.count
    for first, block in channels.blocks(plain(x, dtype), lo):
        for band in _bands(block):
            for k, part in enumerate(_of_band(band)):
                found[first + k] += part
    return found


def _bands(block: Array) -> Iterator[Array]:
    """``block`` cut along the axis of which there is more, the first or the last."""
    times, count, inner = block.shape
    if times > inner:
        step = max(1, _BAND // (count * inner))
        yield from (block[at : at + step] for at in range(0, times, step))
    else:
        step = max(1, _BAND // (count * times))
        yield from (block[..., at : at + step] for at in range(0, inner, step))


def _of_band(x: Array) -> list[Powers]:
    """Of every channel of a band."""
    if x.dtype == np.uint8:
        return [_of_counts(counts) for counts in _histograms(x)]
    each = _of_integers if x.dtype.kind in "iu" and x.dtype.itemsize <= 2 else _of_floats
    return [each(x[:, k].reshape(-1)) for k in range(x.shape[1])]


def _histograms(x: Array) -> Iterator[Array]:
    """How often each of the 256 values is there, for every channel."""
    cv2 = opencv.load()
    count = x.shape[1]
    for k in range(count):
        if x.shape[2] == 1 and count <= 4:  # pixels, which need no copy
            pixels, channel = x.reshape(-1, 1, count), k
        else:
            pixels, channel = np.ascontiguousarray(x[:, k]).reshape(-1, 1, 1), 0
        # It counts in float32, which is exact for as many values as there are in a band.
        yield cv2.calcHist([pixels], [channel], None, [256], [0, 256]).reshape(-1).astype(np.int64)


_VALUES = np.arange(256)


def _of_counts(counts: Array) -> Powers:
    present = np.flatnonzero(counts)
    total, squares = int(counts @ _VALUES), int(counts @ _VALUES**2)
    return _exact(int(counts.sum()), total, squares, int(present[0]), int(present[-1]))


def _of_integers(x: Array) -> Powers:
    wide = x.astype(np.int64)
    return _exact(x.size, int(wide.sum()), int(wide @ wide), int(wide.min()), int(wide.max()))


def _exact(count: int, total: int, squares: int, lowest: int, highest: int) -> Powers:
    return Powers(count, Fraction(total), Fraction(squares), Fraction(lowest), Fraction(highest))


def _of_floats(x: Array) -> Powers:
    """By way of the mean, about which squares are small; what the rounded mean leaves over is made good."""
    wide = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(wide.mean())
        apart = wide - mean
        rest, around = float(apart.sum()), float(np.square(apart, out=apart).sum())
    if not math.isfinite(mean + around):
        raise NotFinite(int(np.count_nonzero(~np.isfinite(wide))))
    middle, count = Fraction(mean), x.size
    total = count * middle + Fraction(rest)
    squares = count * middle**2 + 2 * middle * Fraction(rest) + Fraction(around)
    return Powers(count, total, squares, Fraction(float(wide.min())), Fraction(float(wide.max())))
