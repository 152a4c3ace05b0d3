"""What the texts of options mean: intervals, axes, sizes; wrong ones in plain words."""

from __future__ import annotations

import math
import re

from tconv.errors import UsageError


def interval(text: str, option: str = "--range") -> tuple[float, float]:
    """``LO,HI`` of --range; whole numbers stay exact, which a float is only up to 2**53."""
    try:
        lo, hi = (_number(part.strip()) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text!r} is not LO,HI", remedy=f"for example {option} 0,255") from None
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        reason = f"{option} {text!r}: LO must be less than HI, both finite"
        raise UsageError(reason, remedy=f"for example {option} 0,255")
    return lo, hi


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,20}", text) else float(text)


def axes(text: str, option: str = "--input-layout") -> str:
    """The letters of --input-layout, in capitals."""
    letters = text.upper()
    if not (letters.isascii() and letters.isalpha()) or len(set(letters)) < len(letters):
        raise UsageError(f"{option} {text!r} is no list of axes", remedy="for example HWC, CHW or NHWC")
    return letters


def size(text: str, option: str = "--max-memory", example: str = "500MB or 2GB") -> int:
    """Bytes from ``500MB``, ``2G``, ``1GiB``."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([KMGT]?)(I?)B?", text.strip().upper())
    if match is None or not float(match[1]):
        raise UsageError(f"{option} {text!r} is no size", remedy=f"for example {example}")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2] or " "))
