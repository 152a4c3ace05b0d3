"""What a model takes, and whether a pipeline gives just that: told before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.tensor import Spec, Tensor

BATCH = 8  # samples that a model is given at once where it takes any number


@dataclass(frozen=True)
class Wanted:
    """The one input of a model: ``shape`` with its batch in front, None for an axis of any length. ``least`` and
    ``most``: samples at once, where their number is not fixed.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    least: int = 1
    most: int | None = None

    @property
    def sample(self) -> tuple[int | None, ...]:
        """The shape of one sample."""
        return self.shape[1:]

    @property
    def batch(self) -> int:
        """How many samples it is given at once."""
        if self.shape and self.shape[0] is not None:
            return self.shape[0]
        return max(min(BATCH, self.most or BATCH), self.least)

    @property
    def whole(self) -> bool:
        """Whether a batch cannot be smaller."""
        return self.least > 1 or bool(self.shape and self.shape[0] is not None)

    def __str__(self) -> str:
        return f"{self.dtype} {_shape(self.shape)}"


def check(wanted: Wanted, samples: Sequence[Tensor]) -> None:
    """Refuse samples that the model does not take. Raises ``TconvError``: one sentence, and what would help."""
    first = samples[0]
    for one in samples:
        if one.spec.shape != first.spec.shape or one.spec.dtype != first.spec.dtype:
            raise TconvError(
                f"is {_given(one.spec)}, and {first.spec.name} is {_given(first.spec)}: a model takes equals",
                remedy=_SIZES if len(one.spec.shape) == len(first.spec.shape) > 1 else _OTHERS,
                file=one.source.path,
            )
    problem = _refusal(wanted, first.spec)
    if problem:
        raise TconvError(f"the model takes {wanted}, and the pipeline gives {_given(first.spec)}", remedy=problem)


_SIZES = "--resize HxW, or a pipeline that resizes, makes the sizes equal"
_OTHERS = "--only PATTERN says which arrays are samples, by their names"


def _refusal(wanted: Wanted, spec: Spec) -> str:
    """What would help against a sample that does not fit; nothing if it does."""
    if len(wanted.shape) != len(spec.shape) + 1:
        return f"samples must have {max(len(wanted.shape) - 1, 0)} axes: the batch is put in front of them"
    if not _fits(wanted.sample, spec.shape):
        return _turned(wanted, spec) or _resized(wanted, spec)
    if spec.dtype.name != wanted.dtype and wanted.dtype == "uint8":
        return "it takes pixels as they are: leave out what scales or casts them (--normalize, --stats, --to)"
    if spec.dtype.name != wanted.dtype:
        scaled = "" if spec.dtype.is_float else ", or where the model takes 0…1 scale before (--normalize)"
        return f"end the pipeline with cast({wanted.dtype}){scaled}"
    return ""


def _fits(wanted: Sequence[int | None], shape: Sequence[int]) -> bool:
    return all(a in (None, b) for a, b in zip(wanted, shape, strict=True))


def _turned(wanted: Wanted, spec: Spec) -> str:
    """The permutation after which the sample would fit, if its axes have names."""
    for perm in permutations(range(len(spec.shape))):
        if spec.axes and _fits(wanted.sample, [spec.shape[p] for p in perm]):
            return f"the layout is another one: end the pipeline with permute({''.join(spec.axes[p] for p in perm)})"
    return ""


def _resized(wanted: Wanted, spec: Spec) -> str:
    """The size that images must have."""
    for axes in ("CHW", "HWC"):
        if len(wanted.sample) == 3 and spec.axes == axes:
            height, width = wanted.sample[axes.index("H")], wanted.sample[axes.index("W")]
            channels, has = wanted.sample[axes.index("C")], spec.shape[axes.index("C")]
            if channels not in (None, has):
                return f"it takes {channels} channels: --channels {'gray' if channels == 1 else 'rgb'}, perhaps"
            if height and width:
                return (
                    f"--resize {height}x{width}, or a pipeline with resize({height}x{width}), as by --set size={height}"
                )
    return "choose a pipeline that ends with this shape"


def _shape(shape: Sequence[int | None]) -> str:
    return f"({', '.join('any' if n is None else str(n) for n in shape)})"


def _given(spec: Spec) -> str:
    return f"{spec.dtype} {_shape(spec.shape)}{f' {spec.axes}' if spec.axes else ''} a sample"
