"""float32 ↔ float16 at the speed of memory: OpenCV's conversions, once there is enough to convert to pay its import.

They give NumPy's results bit for bit (any NaN for a NaN), which are correctly rounded, and an order of magnitude
sooner: NumPy converts value by value, and takes a slow branch for subnormal numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tconv import opencv

if TYPE_CHECKING:
    from tconv.ops import Array

WORTH_IMPORTING = 8 << 20  # bytes; NumPy needs a few ms for them, importing OpenCV ten times that
FEW = 4  # zeros that are looked for one by one

_seen = 0  # bytes converted so far; a race between threads only delays the import


def _opencv(nbytes: int) -> Any:
    """OpenCV if it is imported or has become worth it, else None."""
    global _seen
    if opencv.loaded() is None:
        _seen += nbytes
        if _seen < WORTH_IMPORTING:
            return None
    return opencv.load()


def to_half(x: Array, out: Array) -> None:
    """Flat float32 ``x`` rounded to float16 into ``out``; overflow gives an infinity."""
    cv2 = _opencv(x.nbytes)
    if cv2 is None or not x.size:
        np.copyto(out, x, casting="unsafe")
        return
    source, target = x[None], out[None]
    if hasattr(cv2, "convertFp16"):  # OpenCV 4, which has no float16 arithmetic
        target = target.view(np.int16)
        made = cv2.convertFp16(source, target)
    else:
        # Subtracting 0 keeps the sign of -0.0; adding 0 does not.
        made = cv2.subtract(source, 0.0, dst=target, dtype=cv2.CV_16F)
    _place(made, target)


def from_half(x: Array, out: Array) -> None:
    """Flat float16 ``x`` as float32 into ``out``; exact."""
    cv2 = _opencv(x.nbytes)
    if cv2 is None or not x.size:
        np.copyto(out, x)
        return
    source, target = x[None], out[None]
    if hasattr(cv2, "convertFp16"):
        made = cv2.convertFp16(source.view(np.int16), target)
    else:
        made = cv2.subtract(source, 0.0, dst=target, dtype=cv2.CV_32F)
    _place(made, target)


def _place(made: Array, target: Array) -> None:
    """OpenCV allocates anew when it does not like the destination; then the values go where they belong."""
    if not np.may_share_memory(made, target):
        target[...] = made.reshape(target.shape)


def flushed(x: Array, half: Array) -> int | None:
    """How many non-zero values of float32 ``x`` are zero in ``half``, which was made of them (both flat).

    None where OpenCV is not imported, or is version 4, which does not count float16.
    """
    cv2 = opencv.loaded()
    if cv2 is None or hasattr(cv2, "convertFp16"):
        return None
    return _flushed(cv2.countNonZero, x[None], half[None])


def _flushed(count: Any, x: Array, half: Array) -> int:
    """Counting the result costs a seventh of counting the source, so a few zeros are first closed in on by halving."""
    zeros = half.size - int(count(half))
    if not zeros:
        return 0
    middle = half.size // 2
    if zeros > FEW or middle < 1024:
        return zeros - (x.size - int(count(x)))
    return _flushed(count, x[:, :middle], half[:, :middle]) + _flushed(count, x[:, middle:], half[:, middle:])
