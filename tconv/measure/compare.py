"""How two tensors of one shape differ, in one pass over pieces of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.casts.fidelity import squares
from tconv.lost import decibels
from tconv.measure.distance import apart, magnitudes, ulps

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array

BLOCK = 1 << 16  # elements: what is made of a block stays in the cache


@dataclass(frozen=True)
class Tolerance:
    """Values are close if they are at most ``atol + rtol * |a|`` apart, a being the reference."""

    rtol: float = 0.0
    atol: float = 0.0


@dataclass
class Difference:
    """What sets tensor b apart from a, the reference; adds up over pieces, in any order.

    ``unequal``: how many values are not the same; ``far``: how many of them are not close either, and ``first`` the
    flat index of the first of those; ``nan``: how many are NaN on one side only, which the following leave out.
    ``max_abs`` is exact for integers of like sign; ``max_rel`` is relative to |a|; ``ulps`` (None but for two floats
    of one dtype) counts the steps from one number of the dtype to the next. ``signal`` and ``noise`` are the sums of
    a² and (a - b)², where all three are finite.
    """

    dtypes: tuple[DType, DType]
    tolerance: Tolerance = Tolerance()
    count: int = 0
    unequal: int = 0
    far: int = 0
    nan: int = 0
    first: int | None = None
    max_abs: Number = 0
    max_rel: float = 0.0
    ulps: int | None = None
    signal: Fraction = Fraction(0)
    noise: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        a, b = self.dtypes
        if a == b and a.is_float and a.bits >= 8:
            self.ulps = 0

    @property
    def sqnr(self) -> float | None:
        """The signal-to-noise ratio 10 log10(Σa² / Σ(a - b)²) in dB; infinite where all values are the same, None where
        a difference is infinite or all that differs is NaN on one side.
        """
        if math.isinf(self.max_abs) or (self.unequal and not self.noise):
            return None
        return decibels(self.signal, self.noise)

    def update(self, lo: int, a: Array, b: Array) -> None:
        """Add elements [lo, lo + a.size) of both, flat and native."""
        for at in range(0, a.size, BLOCK):
            self._block(lo + at, a[at : at + BLOCK], b[at : at + BLOCK])

    def merge(self, other: Difference) -> None:
        """Add what ``other`` has seen of the same two tensors."""
        self.count += other.count
        self.unequal += other.unequal
        self.far += other.far
        self.nan += other.nan
        self.max_abs = max(self.max_abs, other.max_abs)
        self.max_rel = max(self.max_rel, other.max_rel)
        self.signal += other.signal
        self.noise += other.noise
        if self.ulps is not None and other.ulps is not None:
            self.ulps = max(self.ulps, other.ulps)
        if other.first is not None and (self.first is None or other.first < self.first):
            self.first = other.first

    def _block(self, lo: int, a: Array, b: Array) -> None:
        self.count += a.size
        signal = magnitudes(a, self.dtypes[0])
        if self.dtypes[0] == self.dtypes[1] and np.array_equal(a.view(np.uint8), b.view(np.uint8)):
            self.signal += squares(signal)
            return
        distance = apart(a, b, self.dtypes)
        finite = np.isfinite(signal) & np.isfinite(distance)
        every = bool(finite.all())
        self.signal += squares(signal if every else signal[finite])
        self.noise += squares(distance if every else distance[finite])
        if np.count_nonzero(distance) == a.size:
            self._unequal(lo + np.arange(a.size), a, b, distance, signal)
        elif (where := np.flatnonzero(distance)).size:
            self._unequal(lo + where, a[where], b[where], distance[where], signal[where])

    def _unequal(self, places: Array, a: Array, b: Array, distance: Array, signal: Array) -> None:
        """Add pairs that are not the same. ``places``: their flat indices, ascending."""
        self.unequal += places.size
        with np.errstate(all="ignore"):
            relative = distance / signal
            close = distance <= self.tolerance.atol + self.tolerance.rtol * signal
        relative[np.isinf(distance)] = np.inf
        far = ~(close & np.isfinite(distance))
        if far.any():
            self.far += int(np.count_nonzero(far))
            first = int(places[far.argmax()])
            self.first = first if self.first is None else min(self.first, first)
        nan = int(np.count_nonzero(np.isnan(distance)))
        self.nan += nan
        if nan < places.size:
            self.max_abs = max(self.max_abs, self._number(np.fmax.reduce(distance)))
            self.max_rel = max(self.max_rel, float(np.fmax.reduce(relative)))
        if self.ulps is not None:
            self.ulps = max(self.ulps, ulps(a, b, self.dtypes[0]))

    def _number(self, distance: Any) -> Number:
        return int(distance) if all(d.kind in ("bool", "int", "uint") for d in self.dtypes) else float(distance)
