"""What can be asked of a tensor without converting it: its dtype, its shape, its values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv.casts import cast, check_pair
from tconv.casts.extent import bounds
from tconv.casts.rounding import held
from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.lost import Lost, part
from tconv.measure.elements import index, plain, told

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.lost import Number
    from tconv.ops import Array
    from tconv.tensor import Spec


@dataclass
class Seen:
    """What a rule saw in the values of a tensor; adds up over pieces, in any order.

    ``bad``: how many values break it, ``worst`` the one that does so most, at the flat index ``at``, by ``excess``.
    ``lost`` is the account of the cast that was tried, if one was.
    """

    count: int = 0
    bad: int = 0
    nan: int = 0
    worst: Number = 0
    at: int = 0
    excess: Number = -math.inf
    lost: Lost = field(default_factory=Lost)

    def merge(self, other: Seen) -> None:
        self.count += other.count
        self.bad += other.bad
        self.nan += other.nan
        self.lost += other.lost
        if (other.excess, -other.at) > (self.excess, -self.at):
            self.worst, self.at, self.excess = other.worst, other.at, other.excess


class Rule(ABC):
    """One thing that is asked. ``option`` is how it is called on the command line, ``wanted`` what is asked for."""

    option: ClassVar[str]
    like_a_cast: ClassVar[bool] = False  # of weights it concerns what a cast would touch

    @property
    @abstractmethod
    def wanted(self) -> str: ...

    def against(self, spec: Spec) -> str:
        """What of the description alone breaks the rule, or nothing."""
        return ""

    def reads(self, spec: Spec) -> bool:
        """Whether the values have to be looked at."""
        return False

    def look(self, lo: int, x: Array, dtype: DType) -> Seen:
        """What there is in the flat piece ``x`` of a tensor, which begins at element ``lo``."""
        return Seen(x.size)

    def judge(self, seen: Seen, spec: Spec) -> str:
        """What of all the values of a tensor breaks the rule, or nothing."""
        return ""

    def warn(self, seen: Seen, spec: Spec) -> str:
        """What is worth saying and breaks nothing."""
        return ""


@dataclass(frozen=True)
class Expect(Rule):
    """The dtype is one of these."""

    option: ClassVar[str] = "expect"
    like_a_cast: ClassVar[bool] = True
    dtypes: tuple[DType, ...]

    @property
    def wanted(self) -> str:
        return " or ".join(map(str, self.dtypes))

    def against(self, spec: Spec) -> str:
        return "" if spec.dtype in self.dtypes else f"is {spec.dtype}, expected {self.wanted}"


@dataclass(frozen=True)
class Shape(Rule):
    """The shape is this one, in which None stands for any size."""

    option: ClassVar[str] = "shape"
    sizes: tuple[int | None, ...]

    @property
    def wanted(self) -> str:
        return "x".join("*" if n is None else str(n) for n in self.sizes) or "()"

    def against(self, spec: Spec) -> str:
        like = len(spec.shape) == len(self.sizes)
        if like and all(want in (None, size) for want, size in zip(self.sizes, spec.shape, strict=True)):
            return ""
        return f"has the shape {'x'.join(map(str, spec.shape)) or '()'}, expected {self.wanted}"


@dataclass(frozen=True)
class Finite(Rule):
    """No value is infinite or NaN."""

    option: ClassVar[str] = "finite"
    wanted: ClassVar[str] = "finite"

    def reads(self, spec: Spec) -> bool:
        return spec.dtype.kind in ("float", "complex")

    def look(self, lo: int, x: Array, dtype: DType) -> Seen:
        x = x if dtype.kind == "complex" else plain(x, dtype)
        finite = np.isfinite(x)
        if finite.all():
            return Seen(x.size)
        first = int(finite.argmin())
        nan = np.isnan(x)
        bad = x.size - int(np.count_nonzero(finite))
        worst = math.nan if nan[first] else math.copysign(math.inf, x[first].real)
        return Seen(x.size, bad, int(np.count_nonzero(nan)), worst, lo + first, excess=0)

    def judge(self, seen: Seen, spec: Spec) -> str:
        if not seen.bad:
            return ""
        kinds = [f"{n} {kind}" for n, kind in ((seen.nan, "NaN"), (seen.bad - seen.nan, "inf")) if n]
        return f"{' and '.join(kinds)} of {seen.count} values, the first{_place(seen, spec)}"


@dataclass(frozen=True)
class Within(Rule):
    """Every value lies in [low, high], as ``casts.extent`` has it; a NaN lies nowhere."""

    option: ClassVar[str] = "range"
    low: Number
    high: Number

    @property
    def wanted(self) -> str:
        return f"[{told(self.low, DTYPES['float64'])}, {told(self.high, DTYPES['float64'])}]"

    def against(self, spec: Spec) -> str:
        return f"is {spec.dtype}, which has no order" if spec.dtype.kind == "complex" else ""

    def reads(self, spec: Spec) -> bool:
        return not (self.low <= spec.dtype.min and spec.dtype.max <= self.high) or spec.dtype.has_nan

    def look(self, lo: int, x: Array, dtype: DType) -> Seen:
        x, dtype = held(x, dtype)
        x = plain(x, dtype)
        low, high = bounds(dtype, (self.low, self.high))
        inside = (x >= low) & (x <= high)
        if inside.all():
            return Seen(x.size)
        if low > high:  # the dtype has no value between the bounds
            low, high = self.low, self.high
        at = _farthest(x, low, high)
        bad, nan = x.size - int(np.count_nonzero(inside)), int(np.count_nonzero(np.isnan(x)))
        worst = x[at].item()
        return Seen(x.size, bad, nan, worst, lo + at, _excess(worst, low, high))

    def judge(self, seen: Seen, spec: Spec) -> str:
        if not seen.bad:
            return ""
        nan = f" ({seen.nan} NaN)" if seen.nan else ""
        return f"{seen.bad} of {seen.count} values lie outside {self.wanted}{nan}, the worst{_place(seen, spec)}"


@dataclass(frozen=True)
class Fits(Rule):
    """A cast to the dtype would not overflow. That values would become 0 or inexact is only told."""

    option: ClassVar[str] = "fits"
    like_a_cast: ClassVar[bool] = True
    dtype: DType

    @property
    def wanted(self) -> str:
        return str(self.dtype)

    def against(self, spec: Spec) -> str:
        try:
            check_pair(spec.dtype, self.dtype)
        except TconvError as problem:
            return f"is {spec.dtype}; {problem.reason}"
        return ""

    def reads(self, spec: Spec) -> bool:
        return spec.dtype != self.dtype

    def look(self, lo: int, x: Array, dtype: DType) -> Seen:
        _, lost = cast(x, self.dtype, src=dtype, on_overflow="saturate")
        bad = lost.overflow + lost.infinite + lost.nan
        if not bad:
            return Seen(x.size, lost=lost)
        parts = 1
        if dtype.kind == "complex":
            parts, x, dtype = 2, x.view(part(dtype).numpy), part(dtype)
        x = plain(x, dtype)
        if dtype.is_float:
            held = np.isnan(x) & self.dtype.has_nan | np.isinf(x) & self.dtype.has_inf
            x = np.where(held, 0, x)
        at = _farthest(x, self.dtype.min, self.dtype.max)
        worst = x[at].item()
        excess = _excess(worst, self.dtype.min, self.dtype.max)
        return Seen(x.size, bad, lost.nan, worst, lo + at // parts, excess, lost)

    def judge(self, seen: Seen, spec: Spec) -> str:
        if not seen.bad:
            return ""
        over = replace(seen.lost, underflow=0, inexact=0)
        return f"{over.describe(spec.dtype, self.dtype)}, the worst{_place(seen, spec)}"

    def warn(self, seen: Seen, spec: Spec) -> str:
        texts = []
        if seen.lost.underflow:
            texts.append(f"{seen.lost.underflow} of {seen.lost.count} values would become 0 in {self.dtype}")
        if seen.lost.inexact:
            inexact = Lost(seen.lost.count, inexact=seen.lost.inexact)
            texts.append(inexact.describe(spec.dtype, self.dtype))
        return "; ".join(texts)


def _farthest(x: Array, low: Number, high: Number) -> int:
    """Where the first of the values is that lie farthest outside [low, high]; a NaN is as far as an infinity."""
    found = {int(x.argmax()), int(x.argmin())}
    if x.dtype.kind == "f":
        found.add(int(np.isinf(x).argmax()))  # which a NaN hides from the others
    return min(found, key=lambda at: (-_excess(x[at].item(), low, high), at))


def _excess(value: Number, low: Number, high: Number) -> Number:
    return math.inf if math.isnan(value) else max(value - high, low - value)


def _place(seen: Seen, spec: Spec) -> str:
    """``, 70000, at [3, 5]``."""
    return f", {told(seen.worst, spec.dtype)}, at {list(index(seen.at, spec.shape))}"
