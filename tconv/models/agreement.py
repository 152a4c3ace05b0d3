"""How near a quantized model's outputs are to those of the model before: signal to noise, and the same first choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.errors import TconvError, UsageError

if TYPE_CHECKING:
    from tconv.ops import Array


@dataclass
class Output:
    """Sums over all samples of one output. ``same``: of how many the first choice is the same: the place of the largest
    of one number a class, (samples, classes), or of integers all; None where there is no choice. ``floats``: whether
    noise means anything.
    """

    samples: int = 0
    signal: float = 0.0
    noise: float = 0.0
    same: int | None = None
    floats: bool = True

    def add(self, before: Array, after: Array, count: int) -> None:
        """Those of a batch of ``count`` samples."""
        self.samples += count
        self.floats = before.dtype.kind == "f"
        self._count(before, after, by_sample=before.ndim > 0 and len(before) == count)
        if self.floats:
            wide = before.astype(np.float64)
            self.signal += float(np.square(wide).sum())
            self.noise += float(np.square(after.astype(np.float64) - wide).sum())

    def _count(self, before: Array, after: Array, *, by_sample: bool) -> None:
        if not by_sample:
            return
        if not self.floats:
            same = (before == after).reshape(len(before), -1).all(axis=1)
        elif before.ndim == 2 and before.shape[1] > 1:
            same = before.argmax(axis=1) == after.argmax(axis=1)
        else:
            return
        self.same = (self.same or 0) + int(np.count_nonzero(same))

    @property
    def sqnr(self) -> float | None:
        """In dB; infinite if nothing was lost; None of integers."""
        if not self.floats:
            return None
        if not self.noise:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    @property
    def agreement(self) -> float | None:
        """The share of samples with the same first choice (top-1)."""
        return None if self.same is None else self.same / self.samples

    def as_json(self) -> dict[str, Any]:
        sqnr = self.sqnr if self.sqnr is not None and math.isfinite(self.sqnr) else None
        exact = self.noise == 0 if self.floats else self.same == self.samples
        return {
            "samples": self.samples,
            "sqnr_db": sqnr,
            "exact": exact,
            "same_top1": self.same,
            "agreement": self.agreement,
        }


@dataclass
class Comparison:
    """Of all outputs, by their names."""

    outputs: dict[str, Output] = field(default_factory=dict)

    def add(self, before: Mapping[str, Array], after: Mapping[str, Array], count: int) -> None:
        """Those of a batch of ``count`` samples. Raises ``TconvError`` for outputs that cannot be compared."""
        refuse_not_finite(before)
        for name, numbers in before.items():
            if name not in after or after[name].shape != numbers.shape:
                there = after[name].shape if name in after else "nothing"
                raise TconvError(f"its output {name} is {numbers.shape}, and {there} when it is quantized")
            if not np.isfinite(after[name]).all():
                raise TconvError(f"its output {name} holds NaN or infinities when it is quantized, and none before")
            self.outputs.setdefault(name, Output()).add(numbers, after[name], count)

    def refuse_unmeasured(self, min_agreement: float | None, min_sqnr: float | None) -> None:
        """Refuse what was asked for if no output can fall short of it: it would be a promise that nothing keeps."""
        outputs = self.outputs.values()
        if min_agreement is not None and all(output.agreement is None for output in outputs):
            raise UsageError(
                "--min-agreement is for first choices, and no output of it has one number a class or integers",
                remedy="say --min-sqnr",
            )
        if min_sqnr is not None and all(output.sqnr is None for output in outputs):
            raise UsageError(
                "--min-sqnr is for outputs that are floats, and its outputs are integers", remedy="say --min-agreement"
            )

    def check(self, min_agreement: float | None, min_sqnr: float | None) -> None:
        """Refuse what falls short of what was asked for."""
        for name, output in self.outputs.items():
            if min_sqnr is not None and output.sqnr is not None and output.sqnr < min_sqnr:
                raise TconvError(f"its output {name} has an SQNR of {output.sqnr:.1f} dB; {min_sqnr:g} were asked for")
            if min_agreement is not None and output.agreement is not None and output.agreement < min_agreement:
                raise TconvError(
                    f"its output {name} has the same first choice for {output.agreement:.1%} of the samples; "
                    f"{min_agreement:.1%} were asked for"
                )


def refuse_not_finite(outputs: Mapping[str, Array]) -> None:
    """Refuse a float model of which the outputs are no numbers: there is nothing to compare with."""
    for name, numbers in outputs.items():
        if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "fiub":
            raise TconvError(f"its output {name} is no tensor of numbers, which could be compared")
        if not np.isfinite(numbers).all():
            raise TconvError(f"its output {name} holds NaN or infinities before it is quantized")
