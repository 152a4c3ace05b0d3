"""Heights and widths that keep the aspect of a picture: the other side is rounded down, as torchvision does.

Source: ``_compute_resized_output_size`` of torchvision, int(size · long / short); here in integers. No side is 0.
"""

from __future__ import annotations

from tconv.errors import TconvError
from tconv.steps.geometry import MAX_SIDE


def with_longest(side: int, most: int, height: int, width: int) -> tuple[int, int]:
    """The shorter side is ``side``, or as much as keeps the longer one from being more than ``most``."""
    made = covering(side, side, height, width)
    if max(made) <= most:
        return made
    short = max(1, most * side // max(made))
    return (most, short) if width <= height else (short, most)


def contained(high: int, wide: int, height: int, width: int) -> tuple[int, int]:
    """The largest that lies in ``high`` × ``wide``."""
    if high * width <= wide * height:
        return high, max(1, high * width // height)
    return max(1, wide * height // width), wide


def covering(high: int, wide: int, height: int, width: int) -> tuple[int, int]:
    """The smallest that covers ``high`` × ``wide``; of a square, that is a shorter side."""
    made = (high, high * width // height) if high * width >= wide * height else (wide * height // width, wide)
    if max(made) > MAX_SIDE:
        raise TconvError(
            f"a picture of {height}x{width} with a shorter side of {min(made)} is {max(made)} pixels long",
            remedy=f"say both sides: resize({high}x{wide})",
        )
    return made
