"""How near a quantized model's outputs are to those of the model before: signal to noise, and the same first choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.ops import Array


@dataclass
class Output:
    """Sums over all samples of one output. ``same``: of how many samples the largest number is at the same place, None
    unless it is one number a class: (samples, classes).
    """

    samples: int = 0
    signal: float = 0.0
    noise: float = 0.0
    same: int | None = None

    def add(self, before: Array, after: Array) -> None:
        """Those of one batch."""
        wide = before.astype(np.float64)
        self.samples += len(before)
        self.signal += float(np.square(wide).sum())
        self.noise += float(np.square(after.astype(np.float64) - wide).sum())
        if before.ndim == 2 and before.shape[1] > 1:
            self.same = (self.same or 0) + int(np.count_nonzero(before.argmax(axis=1) == after.argmax(axis=1)))

    @property
    def sqnr(self) -> float:
        """In dB; infinite if nothing was lost."""
        if not self.noise:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    @property
    def agreement(self) -> float | None:
        """The share of samples with the same first choice (top-1)."""
        return None if self.same is None else self.same / self.samples

    def as_json(self) -> dict[str, Any]:
        sqnr = self.sqnr if math.isfinite(self.sqnr) else None
        return {"samples": self.samples, "sqnr_db": sqnr, "same_top1": self.same, "agreement": self.agreement}


@dataclass
class Comparison:
    """Of all outputs, by their names."""

    outputs: dict[str, Output] = field(default_factory=dict)

    def add(self, before: Mapping[str, Array], after: Mapping[str, Array]) -> None:
        """Those of one batch. Raises ``TconvError`` for outputs that cannot be compared."""
        for name, numbers in before.items():
            if name not in after or after[name].shape != numbers.shape:
                there = after[name].shape if name in after else "nothing"
                raise TconvError(f"its output {name} is {numbers.shape}, and {there} when it is quantized")
            if not np.isfinite(numbers).all():
                raise TconvError(f"its output {name} holds NaN or infinities before it is quantized")
            self.outputs.setdefault(name, Output()).add(numbers, after[name])

    def check(self, min_agreement: float | None, min_sqnr: float | None) -> None:
        """Refuse what falls short of what was asked for."""
        for name, output in self.outputs.items():
            if min_sqnr is not None and output.sqnr < min_sqnr:
                raise TconvError(f"its output {name} has an SQNR of {output.sqnr:.1f} dB; {min_sqnr:g} were asked for")
            if min_agreement is not None and output.agreement is not None and output.agreement < min_agreement:
                raise TconvError(
                    f"its output {name} has the same first choice for {output.agreement:.1%} of the samples; "
                    f"{min_agreement:.1%} were asked for"
                )
