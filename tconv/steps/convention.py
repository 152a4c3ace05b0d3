"""How torchvision and TensorFlow scale pixels, for parity with what models were trained on.

torchvision.transforms.v2.functional.to_dtype(scale=True) and tf.image.convert_image_dtype agree but for the factor from
floats to integers. Both divide integers by a multiplication in the target's arithmetic, and shift from one integer
dtype to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.tensor import Range

CONVENTIONS = ("torchvision", "tensorflow")
_BEYOND = {"torchvision": 1 - 1e-3, "tensorflow": 0.5}  # what is added to the largest integer before truncation
_COVERED = ("uint8", "uint16", "float32", "float64")


def conventional(like: str, src: DType, dst: DType, known: Range) -> float:
    """What a value of ``src`` is multiplied by. Raises ``TconvError`` for what the convention does not define."""
    for dtype in (src, dst):
        if dtype.name not in _COVERED:
            raise TconvError(f"like={like} does not cover {dtype}", remedy=f"it covers {', '.join(_COVERED)}")
    expected: Range = (0.0, 1.0) if src.is_float else (src.min, src.max)
    if known != expected:
        raise TconvError(
            f"like={like} is for {src} values in [{expected[0]:g}, {expected[1]:g}], not [{known[0]:g}, {known[1]:g}]",
            remedy="leave like= out, and the range is mapped as it is",
        )
    if src.is_float:
        return dst.max + _BEYOND[like] if dst.is_integer else 1.0
    if dst.is_float:
        return 1.0 / src.max
    return float((dst.max + 1) / (src.max + 1))
