"""What the values of options mean: words, whole numbers, intervals, axes, sizes; wrong ones in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tconv.errors import UsageError
from tconv.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from tconv.tensor import Range


def one_of(*words: str) -> Callable[[Any, Any, Any], Any]:
    """The callback of an option that takes one of ``words``."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is not None and value not in words:
            raise UsageError(
                f"{param.opts[-1]} takes {listed(words)}, not {value!r}", remedy=did_you_mean(value, words)
            )
        return value

    return check


def whole(lowest: int, highest: int) -> Callable[[Any, Any, Any], Any]:
    """The callback of an option that takes a whole number in [lowest, highest]."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is None:
            return None
        number = int(value) if re.fullmatch("[0-9]{1,18}", value) else -1
        if not lowest <= number <= highest:
            raise UsageError(f"{param.opts[-1]} takes a whole number from {lowest} to {highest:,}, not {value!r}")
        return number

    return check


def interval(text: str) -> Range:
    """``LO,HI`` of --range; whole numbers stay exact, which a float is only up to 2**53."""
    try:
        lo, hi = (_number(part.strip()) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--range {text!r} is not LO,HI", remedy="for example --range 0,255") from None
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise UsageError(f"--range {text!r}: LO must be less than HI, both finite", remedy="for example --range 0,255")
    return lo, hi


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,20}", text) else float(text)


def axes(text: str) -> str:
    """The letters of --input-layout, in capitals."""
    letters = text.upper()
    if not (letters.isascii() and letters.isalpha()) or len(set(letters)) < len(letters):
        raise UsageError(f"--input-layout {text!r} is no list of axes", remedy="for example HWC, CHW or NHWC")
    return letters


def size(text: str, option: str = "--max-memory", example: str = "500MB or 2GB") -> int:
    """Bytes from ``500MB``, ``2G``, ``1GiB``."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(I?)B?", text.strip().upper())
    if match is None or not float(match[1]):
        raise UsageError(f"{option} {text!r} is no size", remedy=f"for example {example}")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2] or " "))
