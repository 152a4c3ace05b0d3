"""denormalize: x * std + mean, which undoes a normalization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tconv.dtypes import dtype
from tconv.errors import TconvError, UsageError
from tconv.ops import Elementwise, Promise
from tconv.steps.normalize import NAMED, Normalize, channel_axis
from tconv.steps.origin import is_normalized, marked_range
from tconv.steps.touch import on_touched

if TYPE_CHECKING:
    from tconv.ops import Array, Pick
    from tconv.tensor import Range, Spec, Stream, Tensor

NONE = "none"  # the statistics of values that were scaled to 0…1 and not normalized
STEPS = 255  # of 8 bits: what lies outside by less than half of one is as good as the bound


@dataclass(frozen=True)
class Denormalize(Normalize):
    """Takes the statistics that ``normalize`` takes, of floats only; ``none`` leaves the values as they are.

    The result is float32, of float64 float64, and lies in [0, 1] by promise; in [0, 255] where a number of the
    statistics is above 1, as they are of such values then. What lies outside by half a step of 8 bits or more is
    counted, and told.
    """

    name: ClassVar[str] = "denormalize"
    usage: ClassVar[str] = "denormalize(imagenet), denormalize(mean=0.5, std=0.5), denormalize('none')"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"stats": (*NAMED, NONE)}

    def __post_init__(self) -> None:
        if self.stats == NONE and self.mean is None and self.std is None:
            return
        try:
            super().__post_init__()
        except UsageError as problem:
            problem.step = self.name
            problem.remedy = problem.remedy.replace("normalize(", "denormalize(")
            if self.stats is None and self.mean is None and self.std is None:
                problem.remedy += f"; denormalize('{NONE}') is for values in 0…1 that were not normalized"
            raise

    @property
    def onto(self) -> Range:
        """Where the result lies."""
        unit = self.stats == NONE or all(value <= 1 for values in self.numbers for value in values)
        return (0.0, 1.0) if unit else (0.0, float(STEPS))

    def apply(self, stream: Stream) -> Stream:
        return on_touched(stream, self, self._denormalize)

    def __str__(self) -> str:
        return f"{self.name}('{NONE}')" if self.stats == NONE else super().__str__()

    def _denormalize(self, tensor: Tensor) -> Tensor:
        spec = tensor.spec
        if not spec.dtype.is_float:
            raise TconvError(
                f"what was normalized is floats, and this is {spec.dtype}",
                remedy="leave --denormalize out: integers are pixels already; or choose tensors with --only",
            )
        self._refuse_other(marked_range(tensor))
        made = tensor if self.stats == NONE else tensor.then(self._inverse(spec))
        low, high = self.onto
        return made.then(Promise(range=(low, high), slack=(high - low) / STEPS / 2, step=str(self)))

    def _inverse(self, spec: Spec) -> Unstandardize:
        mean, std = self.numbers
        if self.stats is not None and spec.attrs.get("channels") == "BGR":
            mean, std = mean[::-1], std[::-1]
        target = spec.dtype if spec.dtype.name == "float64" else dtype("float32")
        axis = channel_axis(spec, len(mean)) if len(mean) > 1 else None
        return Unstandardize(dtype=target, axis=axis, mean=mean, std=std, step=str(self))

    def _refuse_other(self, known: Range | None) -> None:
        """Refuse what the file says was not normalized, or was although there are no statistics."""
        if known is None or self.stats is None:
            return
        lie = f"its values lie in [{known[0]:g}, {known[1]:g}], says the file"
        if self.stats == NONE and is_normalized(known):
            raise TconvError(f"{lie}: they were normalized", remedy="say by which statistics: --denormalize imagenet …")
        if self.stats != NONE and not is_normalized(known):
            raise TconvError(f"{lie}: they were not normalized", remedy="--denormalize none, or state another --range")


@dataclass(frozen=True, kw_only=True)
class Unstandardize(Elementwise):
    """x * std + mean, with as many numbers as there are channels along ``axis``, or one."""

    portable: ClassVar[bool] = True

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, dtype=self.dtype, range=None)

    def compute(self, x: Array, pick: Pick) -> Array:
        x *= pick(self.std)
        x += pick(self.mean)
        return x
