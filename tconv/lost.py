"""What casting some values lost: counted, merged over the chunks of a tensor, and said in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from tconv.dtypes import DTYPES, DType

Number: TypeAlias = "int | float"


@dataclass
class Detail:
    """What is told of a cast on demand only. All but the errors are numbers of values; of a complex cast, of parts.

    ``nan`` and ``inf``: in the source. ``inexact``: finite values that changed. ``subnormal``: results below the
    smallest normal number of a float target, zeros not counted.

    The errors compare what went in with what came out, over the finite values that did not overflow: a value that was
    saturated or became infinite is counted as overflow and is no part of them; one that became 0 is (its relative error
    is 1). ``signal`` and ``noise`` are the sums of the squares of the values and of their errors, to the precision of
    float64 but not bound to its range; their ratio is the SQNR. Relative errors are exact to six digits. A cast to bool
    asks a question, and has no errors.
    """

    nan: int = 0
    inf: int = 0
    inexact: int = 0
    subnormal: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    signal: Fraction = Fraction(0)
    noise: Fraction = Fraction(0)

    def merge(self, other: Detail) -> None:
        """Add what is told of other values of the same tensor."""
        self.nan += other.nan
        self.inf += other.inf
        self.inexact += other.inexact
        self.subnormal += other.subnormal
        self.max_abs_error = max(self.max_abs_error, other.max_abs_error)
        self.max_rel_error = max(self.max_rel_error, other.max_rel_error)
        self.signal += other.signal
        self.noise += other.noise

    @property
    def sqnr(self) -> float:
        """Signal to quantization noise in dB; infinite where nothing changed."""
        return decibels(self.signal, self.noise)


@dataclass
class Lost:
    """The account of one cast. All but the extremes are numbers of values; of a complex cast, of real parts.

    ``overflow``: finite values that, rounded, lie outside the target's range. ``infinite`` and ``nan``: infinities and
    NaNs that the target cannot hold. ``underflow``: non-zero values that became 0. ``inexact``: integers that a float
    target does not represent exactly. ``lowest`` and ``highest`` of the overflowing values, and ``minimum`` and
    ``maximum`` of all finite ones, are exact: they are numbers of the source; infinite where arithmetic in float64 had
    no number for a value. ``detail`` is there if it was asked for.

    Values held against a stated range are accounted for alike: what lies outside is the ``overflow``.
    """

    count: int = 0
    overflow: int = 0
    infinite: int = 0
    nan: int = 0
    underflow: int = 0
    inexact: int = 0
    lowest: Number | None = None
    highest: Number | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    detail: Detail | None = None

    def merge(self, other: Lost) -> None:
        """Add the account of other values of the same tensor."""
        self.count += other.count
        self.overflow += other.overflow
        self.infinite += other.infinite
        self.nan += other.nan
        self.underflow += other.underflow
        self.inexact += other.inexact
        if other.lowest is not None and other.highest is not None:
            self.saw(other.lowest, other.highest)
        if other.minimum is not None and other.maximum is not None:
            self.spans(other.minimum, other.maximum)
        if other.detail is not None:
            self.detail = self.detail or Detail()
            self.detail.merge(other.detail)

    def __iadd__(self, other: Lost) -> Lost:
        self.merge(other)
        return self

    def saw(self, low: Number, high: Number) -> None:
        """Widen the extremes of the overflowing values."""
        self.lowest = low if self.lowest is None else min(self.lowest, low)
        self.highest = high if self.highest is None else max(self.highest, high)

    def spans(self, low: Number, high: Number) -> None:
        """Widen the extremes of all finite values."""
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)

    @property
    def largest(self) -> Number | None:
        """The overflowing value that is farthest from zero."""
        if self.lowest is None or self.highest is None:
            return None
        return self.highest if self.highest >= -self.lowest else self.lowest

    def __bool__(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.overflow or self.infinite or self.nan or self.underflow or self.inexact)

    def bad(self, policy: str) -> bool:
        """Whether ``on_overflow=policy`` refuses this: what is left to be refused under "saturate" is NaN."""
        return bool(self.nan) or (policy == "error" and bool(self.overflow or self.infinite))

    def describe(self, src: DType, dst: DType) -> str:
        """One clause for each kind of loss, as in ``3 of 15 values overflow float16 (…); 2 became 0``."""
        clauses = []
        if self.overflow or self.infinite or self.nan:
            clauses.append(f"overflow {dst} ({self._extremes(src)}its range is {_range(dst)})")
        if self.underflow:
            clauses.append("became 0")
        if self.inexact:
            clauses.append(f"{'is' if self.inexact == 1 else 'are'} not exact in {dst}")
        numbers = [n for n in (self._kinds(), self.underflow, self.inexact) if n]
        what = "parts" if src.kind == "complex" else "values"
        first, *rest = zip(numbers, clauses, strict=True)
        texts = [f"{first[0]} of {self.count} {what} {first[1]}", *(f"{n} {clause}" for n, clause in rest)]
        return "; ".join(texts)

    def remedy(self, dst: DType, *, of_cast: bool = True) -> str:
        """What can be done about a refusal of this; only casts can be left out, ``of_cast``."""
        if not (self.overflow or self.infinite):
            return f"{dst} has no NaN: replace them first, or choose a float dtype"
        ways = ["--on-overflow saturate clamps to the range"]
        if dst.has_inf:
            ways.append("inf makes them infinite")
        ways.append("keep leaves the tensor as it is" if of_cast else "other numbers or a clamp before it help too")
        if self.nan:
            ways.append(f"NaN have to be replaced first, as {dst} has none")
        return ", ".join(ways)

    def _kinds(self) -> str:
        kinds = [(self.overflow, "finite"), (self.infinite, "inf"), (self.nan, "NaN")]
        found = [(n, name) for n, name in kinds if n]
        if len(found) == 1 and self.overflow:
            return str(self.overflow)
        return " + ".join(f"{n} {name}" for n, name in found)

    def _extremes(self, src: DType) -> str:
        if self.lowest is None or self.highest is None:
            return ""
        low, high = _text(self.lowest, src), _text(self.highest, src)
        if self.lowest < 0 < self.highest:
            return f"from {low} to {high}; "
        return f"the largest is {high}; " if self.lowest > 0 else f"the lowest is {low}; "

    def outside(self, stated: tuple[float, float], dtype: DType, called: str = "the stated range") -> str:
        """How values of ``dtype`` broke the statement that they lie in ``stated``."""
        count = self.overflow + self.infinite + self.nan
        kinds = f" ({self._kinds()})" if self.infinite or self.nan else ""
        told = f"{count} of {self.count} values lie outside {called} [{stated[0]:g}, {stated[1]:g}]{kinds}"
        if self.minimum is None or self.maximum is None:
            return told
        return f"{told}; from {_text(self.minimum, dtype)} to {_text(self.maximum, dtype)}"


def decibels(signal: Fraction, noise: Fraction) -> float:
    """10 log10(signal / noise), of numbers that may lie far outside the range of a float; infinite without noise."""
    if not noise:
        return math.inf
    return 10 * (_log10(signal) - _log10(noise)) if signal else -math.inf


def _log10(x: Fraction) -> float:
    return math.log10(x.numerator) - math.log10(x.denominator)


def part(dtype: DType) -> DType:
    """The dtype of a complex dtype's real and imaginary part."""
    return DTYPES["float32" if dtype.bits == 64 else "float64"]


def _range(dst: DType) -> str:
    if dst.is_integer:
        return f"{dst.min} to {dst.max}"
    return f"±{_text(dst.max, dst)}"


def _text(value: Number, dtype: DType) -> str:
    """The shortest text that tells the value from its neighbours in that dtype."""
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):  # what arithmetic in float64 has no number for
        return f"beyond {_text(math.copysign(DTYPES['float64'].max, value), DTYPES['float64'])}"
    real = part(dtype) if dtype.kind == "complex" else dtype
    if real.bits >= 32:
        return str(real.numpy.type(value)).removesuffix(".0")
    return f"{value:.6g}"
