"""normalize: (x - mean) / std, by channel or for all values alike."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.dtypes import dtype
from tconv.errors import TconvError, UsageError
from tconv.ops import Elementwise
from tconv.small_files import read_small
from tconv.step import Step
from tconv.steps.alike import once_a_kind
from tconv.steps.clamp import number
from tconv.steps.origin import is_normalized, marked_range
from tconv.steps.touch import on_touched

if TYPE_CHECKING:
    from tconv.ops import Array, Pick
    from tconv.tensor import Range, Spec, Stream, Tensor

# Statistics of RGB values in [0, 1]: torchvision's ImageNet presets, OpenAI's CLIP preprocessing.
NAMED: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
}
UNIT = (0.0, 1.0)
HUGE = 1e300  # more is a typing error
_HOW = "write normalize(imagenet), normalize(mean=[…], std=[…]), normalize('M,M,M/S,S,S') or the path of a stats file"


@dataclass(frozen=True)
class Normalize(Step):
    """``stats`` is the name of published statistics, ``"MEAN/STD"``, or a JSON file with ``mean`` and ``std``; or the
    numbers are given as ``mean`` and ``std``: one for each channel, or one for all.

    Named statistics are for values in [0, 1] and are refused on others; so are those of a file that says of which range
    they are (``"range": [0, 1]``, as ``tconv stats`` writes it). Numbers are taken as they are. The result is float32,
    or of the dtype of a floating input. A file is read at construction, and the numbers stand for it.
    """

    name: ClassVar[str] = "normalize"
    rounds: ClassVar[bool] = True
    usage: ClassVar[str] = "normalize(imagenet), normalize(mean=0.5, std=0.5), normalize(mean=[0, 0.5], std=[1, 0.2])"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"stats": tuple(NAMED)}
    open_choices: ClassVar[Sequence[str]] = ("stats",)

    stats: str | None = None
    mean: float | tuple[float, ...] | None = None
    std: float | tuple[float, ...] | None = None
    file: ClassVar[str] = ""  # of an instance: where the numbers are from, and of which range it says they are
    file_range: ClassVar[tuple[float, float] | None] = None

    def __post_init__(self) -> None:
        mean, std = self.mean, self.std
        if self.stats is not None:
            if mean is not None or std is not None:
                raise UsageError("statistics are given by name or as mean and std, not both", step="normalize")
            if self.stats in NAMED:
                return
            mean, std, known = _read(self.stats)
            object.__setattr__(self, "file", self.stats)
            object.__setattr__(self, "file_range", known)
        if mean is None or std is None:
            lacking = [name for name, value in (("mean", mean), ("std", std)) if value is None]
            raise UsageError(f"missing: {' and '.join(lacking)}", remedy=_HOW, step="normalize")
        mean, std = _numbers("mean", mean), _numbers("std", std)
        if len(mean) != len(std) and 1 not in (len(mean), len(std)):
            raise UsageError(f"mean has {len(mean)} numbers, std has {len(std)}", step="normalize")
        if min(std) <= 0:
            raise UsageError(f"std is {number(min(std))}; it must be above 0", step="normalize")
        object.__setattr__(self, "stats", None)
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    @property
    def numbers(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and std, of equal length."""
        if self.stats is not None:
            return NAMED[self.stats]
        mean, std = _numbers("mean", self.mean), _numbers("std", self.std)
        count = max(len(mean), len(std))
        return mean * (count // len(mean)), std * (count // len(std))

    def apply(self, stream: Stream) -> Stream:
        return on_touched(stream, self, once_a_kind(self._normalize))

    def _normalize(self, tensor: Tensor) -> Tensor:
        spec = tensor.spec
        if spec.dtype.kind == "complex":
            raise TconvError("complex values are not normalized", remedy="choose tensors with --only")
        if self.stats is not None:
            _refuse_other_range(self.stats, UNIT, tensor)
        elif self.file_range is not None:
            _refuse_other_range(self.file, self.file_range, tensor)
        mean, std = self.numbers
        if self.stats is not None and spec.attrs.get("channels") == "BGR":
            mean, std = mean[::-1], std[::-1]
        target = spec.dtype if spec.dtype.is_float else dtype("float32")
        axis = channel_axis(spec, len(mean)) if len(mean) > 1 else None
        return tensor.then(Standardize(dtype=target, axis=axis, mean=mean, std=std, step=str(self)))

    def __str__(self) -> str:
        if self.stats is not None:
            return f"{self.name}({self.stats})"
        return f"{self.name}(mean={_text(self.mean)}, std={_text(self.std)})"


@dataclass(frozen=True, kw_only=True)
class Standardize(Elementwise):
    """(x - mean) / std, with as many numbers as there are channels along ``axis``, or one."""

    portable: ClassVar[bool] = True

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def spec(self, spec: Spec) -> Spec:
        known = spec.range
        if known is not None:
            pairs = list(zip(self.mean, self.std, strict=True))
            known = min((known[0] - m) / s for m, s in pairs), max((known[1] - m) / s for m, s in pairs)
        return replace(spec, dtype=self.dtype, range=known)

    def compute(self, x: Array, pick: Pick) -> Array:
        x -= pick(self.mean)
        x /= pick(self.std)
        return x


def _refuse_other_range(stats: str, wanted: Range, tensor: Tensor) -> None:
    """Refuse values that do not lie where those lay that the statistics are of, or on another scale."""
    known = tensor.spec.range
    if known is not None and _within(known, wanted) and _within(known, UNIT) == _within(wanted, UNIT):
        return
    if is_normalized(marked_range(tensor)) and known is not None:
        raise TconvError(
            f"its values lie in [{known[0]:g}, {known[1]:g}], says the file: they were normalized before",
            remedy=f"leave {stats} out, or state --range {wanted[0]:g},{wanted[1]:g} if they lie there",
        )
    there = f"these are in [{known[0]:g}, {known[1]:g}]" if known else "the range of these is not known"
    way = "scale first (--normalize), or say" if _within(wanted, UNIT) else "leave scaling (--normalize) out, or say"
    raise TconvError(
        f"the statistics of {stats} are for values in [{wanted[0]:g}, {wanted[1]:g}]; {there}",
        remedy=f"{way} --range {wanted[0]:g},{wanted[1]:g} if they lie there",
    )


def _within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def channel_axis(spec: Spec, count: int) -> int:
    axis = spec.axis("C")
    if axis is None:
        raise TconvError(
            f"nobody said which axis of {spec.shape} the {count} channels are"
            if spec.axes is None
            else f"its axes {spec.axes} have no channels, and the statistics are for {count}",
            remedy="name the axes with --input-layout, or give one number for all",
        )
    if spec.shape[axis] != count:
        raise TconvError(
            f"it has {spec.shape[axis]} channels, and the statistics are for {count}",
            remedy="give as many numbers as there are channels, or read other --channels",
        )
    return axis


def _numbers(what: str, given: Any) -> tuple[float, ...]:
    """One number or several as a tuple of finite floats."""
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not abs(item) <= HUGE:  # a NaN is not
            raise UsageError(f"{what} has {item!r}, which is no number", remedy=_HOW, step="normalize")
    if not items:
        raise UsageError(f"{what} has no numbers", remedy=_HOW, step="normalize")
    return tuple(float(item) for item in items)


def _read(stats: str) -> tuple[Any, Any, Range | None]:
    """Mean and std as they are written in ``0.5,0.4/0.2,0.2``, or in a file, which may say of which range they are."""
    mean, slash, std = stats.partition("/")
    try:
        if slash:
            return [float(m) for m in mean.split(",")], [float(s) for s in std.split(",")], None
    except ValueError:
        pass  # a path has slashes too
    if not os.path.exists(stats):  # noqa: PTH110  # Path.exists raises for a name that is too long
        reason = f"{stats!r} is neither {' nor '.join(NAMED)} nor MEAN/STD nor a file"
        raise UsageError(reason, remedy=_HOW, step="normalize")
    try:
        return _from_json(read_small(Path(stats), "stats file"))
    except TconvError as problem:
        raise problem.at(file=stats, step="normalize") from None


def _from_json(raw: bytes) -> tuple[Any, Any, Range | None]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"is no JSON: {problem}") from problem
    if not isinstance(found, dict) or "mean" not in found or "std" not in found:
        raise UsageError("has no mean and std", remedy='a stats file is {"mean": […], "std": […]}')
    return found["mean"], found["std"], _stated_range(found.get("range"))


def _stated_range(given: Any) -> Range | None:
    if given is None:
        return None
    if isinstance(given, list) and len(given) == 2:
        low, high = _numbers("range", given)
        if low < high:
            return low, high
    raise UsageError(f"its range is {given!r}", remedy='write "range": [0, 1], or leave it out')


def _text(numbers: Any) -> str:
    numbers = _numbers("", numbers)
    return number(numbers[0]) if len(numbers) == 1 else f"[{', '.join(map(number, numbers))}]"
