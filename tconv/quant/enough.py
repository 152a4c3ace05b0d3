"""How many samples are enough to calibrate on, and what is said where there are fewer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tconv.tensor import Spec

FEW = 100


def pictures(specs: Iterable[Spec]) -> int:
    """How many there are in these: one each, or as many as a batch of them has."""
    return sum(spec.shape[0] if spec.axes[0] == "N" else 1 for spec in specs if spec.axes)


def advice(count: int) -> tuple[str, ...]:
    """What to tell of so many samples: nothing where they are enough, or none, so that nobody knows."""
    if not 0 < count < FEW:
        return ()
    many = "1 sample" if count == 1 else f"{count} samples"
    return (f"calibrated on {many}: ranges may be those of chance; {FEW} to 500 are usual",)
