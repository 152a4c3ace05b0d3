"""quantize: onto a grid of few numbers, with the scales and zero points that lead back beside the tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from tconv import trees
from tconv.dtypes import dtype as named
from tconv.errors import TconvError, UsageError
from tconv.grammar import quoted
from tconv.ops import CastTo, anywhere
from tconv.quant import noted
from tconv.quant.enough import advice, pictures
from tconv.quant.fit import fit
from tconv.quant.grid import SCHEMES, TARGETS, Grid, grid
from tconv.quant.made import called, numbers_of, refuse_taken
from tconv.quant.op import UNDECIDED, Numbers, Quantize
from tconv.quant.ranges import Calibration
from tconv.quant.search import METHODS
from tconv.quant.short import Short, fallen_short
from tconv.step import Rules, Step
from tconv.steps.clamp import number
from tconv.steps.touch import on_touched
from tconv.tensor import Spec, Tensor
from tconv.twins import firsts

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.step import Scan
    from tconv.tensor import Stream

NF4_GROUP = 64  # as in QLoRA


@dataclass(frozen=True)
class Quant(Step):
    """To ``dtype``: int8, uint8, int16, uint16, int4, uint4, float8_e4m3fn, float8_e5m2, float4_e2m1fn or nf4.

    ``w`` yields ``w``, ``w.scale`` (float32) and, with the affine scheme, ``w.zero_point``: (w - zero_point) * scale.
    ``axis``: the one along which numbers differ, None for one of all; by default weights of two axes or more have one a
    channel of axis 0, and data one of all. ``group``: one for so many elements in a row. ``calibrate``: minmax,
    percentile (the middle ``percentile`` percent), mse or entropy. ``keep``: globs on names of tensors that stay.
    ``min_sqnr``: in dB; a tensor that falls short becomes ``otherwise``, a float (float16); it stays as it is
    where that would be no better, or has no room for its values.
    """

    name: ClassVar[str] = "quantize"
    heeds: ClassVar[frozenset[str]] = frozenset(("keep", "min_sqnr"))
    usage: ClassVar[str] = "quantize(int8), quantize(uint8, axis=None, calibrate=percentile), quantize(int4, group=128)"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"dtype": TARGETS, "scheme": SCHEMES, "calibrate": METHODS}

    dtype: str
    scheme: str | None = None
    axis: int | str | None = "auto"
    group: int | None = None
    calibrate: str = "minmax"
    percentile: float = 99.9
    keep: tuple[str, ...] = ()
    min_sqnr: float | None = None
    otherwise: str | None = None

    def __post_init__(self) -> None:
        found = grid(self.dtype, self.scheme)  # type: ignore[arg-type]  # it says what is wrong with a scheme
        object.__setattr__(self, "dtype", found.name)
        if self.calibrate not in METHODS:
            raise UsageError(f"there is no calibration {self.calibrate!r}", remedy=f"choose {', '.join(METHODS)}")
        if not 0 < self.percentile <= 100:
            raise UsageError(f"percentile is {number(self.percentile)}; it must be above 0 and at most 100")
        if isinstance(self.axis, str) and self.axis.lower() == "none":  # YAML's word is null
            object.__setattr__(self, "axis", None)
        if self.percentile != _USUAL["percentile"] and self.calibrate != "percentile":
            raise UsageError(f"percentile is for calibrate=percentile, not {self.calibrate}", remedy="say which")
        if self.otherwise is not None:
            object.__setattr__(self, "otherwise", _fallback(self.otherwise, self.min_sqnr))
        if isinstance(self.axis, str) and self.axis != "auto":
            raise UsageError(f"axis takes a whole number or None, not {self.axis!r}")
        if self.group is not None and self.group < 1:
            raise UsageError(f"group is {self.group}; it must be 1 or more")
        if self.group is not None and self.axis != "auto":
            raise UsageError("group and axis exclude each other", remedy="groups are of neighbours in a row")
        if found.is_codebook and self.axis != "auto":
            raise UsageError(f"{found.name} has a scale for each group, and none along an axis", remedy="say group=N")

    @property
    def grid(self) -> Grid:
        return grid(self.dtype, self.scheme)  # type: ignore[arg-type]  # checked

    @property
    def target(self) -> DType:
        """What is stored."""
        return self.grid.dtype

    @property
    def short(self) -> Mapping[str, Short]:
        """Tensors of which quantizing leaves too little, as far as that is known."""
        return {}

    def heeding(self, rules: Rules) -> Quant:
        min_sqnr = rules.min_sqnr if self.min_sqnr is None else self.min_sqnr
        return replace(
            self,
            keep=(*self.keep, *(text.partition("=")[0] for text in rules.keep)),  # =DTYPE is for casts
            min_sqnr=min_sqnr,
            otherwise=self.otherwise if min_sqnr is None or self.otherwise else rules.otherwise,
        )

    @property
    def needs_scan(self) -> bool:
        return True

    def fit(self, stream: Stream, scan: Scan) -> tuple[Quant, tuple[str, ...]]:
        """With the numbers that the values call for, and without the tensors that fall short of ``min_sqnr``."""
        pairs = zip(stream.tensors, self._put(stream).tensors, strict=True)
        asked = [(before, op) for before, made in pairs if (op := self._op(made))]
        tensors, ops = [t for t, _ in asked], [op for _, op in asked]
        # Pictures are samples of one input, and so are batches of them, which are called alike.
        one = stream.extra.kind == "data" and all(_is_sample(t.spec, op) for t, op in asked)
        pools = ["" if one else first.spec.name for first in firsts(tensors)]
        how = Calibration(self.calibrate, self.percentile)  # type: ignore[arg-type]  # checked
        found = fit(tensors, ops, pools, scan, how)
        decided = dict(zip((t.spec.name for t in tensors), found, strict=True))
        settled = Settled(**{f: getattr(self, f) for f in _FIELDS}, decided=decided)
        few = advice(pictures(t.spec for t in tensors)) if self.calibrate != "minmax" else ()
        notes = list(few if stream.extra.kind == "data" else ())
        if self.min_sqnr is None:
            return settled, tuple(notes)
        quantized = [t for t in settled._put(stream).tensors if self._op(t)]
        other = named(self.otherwise or "float16")
        short = fallen_short(stream.tensors, quantized, scan, str(self), self.min_sqnr, other)
        notes += [f"{self}: {name} {fate}" for name, fate in short.items()]
        return replace(settled, fallen=short), tuple(notes)

    def apply(self, stream: Stream) -> Stream:
        made = self._put(stream)
        if not self.short and not any(anywhere(t.ops) for t in made.tensors):
            raise TconvError("it touches no tensor", remedy=_TOUCHED, step=str(self))
        tensors: list[Tensor] = []
        added: dict[str, list[str]] = {}
        said = noted.told(stream.extra.metadata)
        names = {t.spec.name for t in stream.tensors}
        numbers: dict[str, list[Tensor]] = {}  # beside each tensor; those of tensors that are the same are so too
        for tensor, first in zip(made.tensors, firsts(made.tensors), strict=True):
            tensors.append(tensor)
            op = self._op(tensor)
            if op is None:
                continue
            known = numbers.get(first.spec.name)
            beside = called(known, first, tensor) if known else numbers_of(tensor, op, str(self))
            refuse_taken(tensor, beside, names)
            numbers[tensor.spec.name] = beside
            added[tensor.spec.name] = [t.spec.name for t in beside]
            tensors += beside
            said[tensor.spec.name] = noted.described(op)
        extra = replace(
            stream.extra,
            tree=trees.with_siblings(stream.extra.tree, added),
            metadata=noted.noting(stream.extra.metadata, said),
        )
        return replace(made.with_tensors(tensors), extra=extra)

    def _put(self, stream: Stream) -> Stream:
        """Every tensor that is quantized with its operation, and without what comes beside it."""
        weights = stream.extra.kind == "weights"
        return on_touched(stream, self, lambda t: self._quantized(t, weights))

    def _quantized(self, tensor: Tensor, weights: bool) -> Tensor:
        spec = tensor.spec
        rank = len(spec.shape)
        if any(fnmatchcase(spec.name, pattern) for pattern in self.keep):
            return tensor
        if not spec.dtype.is_float:
            raise TconvError(f"{spec.dtype} values are not quantized", remedy="cast or scale them to floats first")
        axis = self._axis(rank, weights)
        there = axis is None or -rank <= axis < rank
        if weights and rank < 2 and not (isinstance(self.axis, int) and there):
            return tensor
        if axis is not None and not there:
            raise TconvError(f"there is no axis {axis}: its shape is {spec.shape}")
        group = self._group(spec)
        axis = None if group or axis is None else axis % rank
        numbers = self._numbers(spec.name)
        made = tensor.then(Quantize(grid=self.grid, numbers=numbers, axis=axis, group=group, step=str(self)))
        if self.min_sqnr is None or numbers is not UNDECIDED:
            return made
        attrs = {**made.spec.attrs, "undecided": self.otherwise or "float16"}
        return replace(made, spec=replace(made.spec, attrs=attrs))

    def _axis(self, rank: int, weights: bool) -> int | None:
        if isinstance(self.axis, str):
            return 0 if weights and rank > 1 else None
        return self.axis

    def _group(self, spec: Spec) -> int | None:
        """The size of groups, if all of a row of the tensor can be divided into them."""
        group = self.group or (NF4_GROUP if self.grid.is_codebook else None)
        if group is None or not spec.shape:
            return None
        row = prod(spec.shape[1:]) if len(spec.shape) > 1 else spec.size
        if row % group:
            raise TconvError(
                f"its rows of {row} elements are not made of groups of {group}",
                remedy="choose another group, or leave it as it is with --keep",
            )
        return group

    def _numbers(self, name: str) -> Numbers:
        return UNDECIDED

    def _op(self, tensor: Tensor) -> Quantize | None:
        """The operation that this step gave it."""
        op = next(reversed(anywhere(tensor.ops)), None)
        return op if isinstance(op, Quantize) and op.step == str(self) else None

    def __str__(self) -> str:
        parts = [self.dtype]
        parts += [f"{name}={text}" for name in _FIELDS[1:] if (text := _text(name, getattr(self, name)))]
        return f"quantize({', '.join(parts)})"


_FIELDS = ("dtype", "scheme", "axis", "group", "calibrate", "percentile", "keep", "min_sqnr", "otherwise")
_USUAL = {
    "scheme": None,
    "axis": "auto",
    "group": None,
    "calibrate": "minmax",
    "percentile": 99.9,
    "keep": (),
    "min_sqnr": None,
    "otherwise": None,
}
_TOUCHED = (
    "of weights floating tensors of two axes or more are quantized, those of one only along an axis given by number"
)


@dataclass(frozen=True)
class Settled(Quant):
    """One that has seen the values: ``decided`` has the numbers of each tensor, ``fallen`` those that fall short."""

    decided: Mapping[str, Numbers] = field(default_factory=dict, compare=False)
    fallen: Mapping[str, Short] = field(default_factory=dict, compare=False)

    @property
    def short(self) -> Mapping[str, Short]:
        return self.fallen

    def _quantized(self, tensor: Tensor, weights: bool) -> Tensor:
        if tensor.spec.name in self.fallen:
            other = self.fallen[tensor.spec.name].dtype
            return tensor if other is None else tensor.then(CastTo(dtype=other, step=str(self)))
        return super()._quantized(tensor, weights)

    def _numbers(self, name: str) -> Numbers:
        return self.decided[name]


def _is_sample(spec: Spec, op: Quantize) -> bool:
    """Whether it shares its numbers with the others: all of them have one, or one for each channel."""
    return spec.axes is not None and op.group is None and (op.axis is None or spec.axes[op.axis] == "C")


def _fallback(name: str, min_sqnr: float | None) -> str:
    """The dtype of what is not quantized; ``UsageError`` for what is none."""
    found = named(name)
    if not found.is_float or found.bits < 16:
        raise UsageError(f"otherwise is {found}, and it is for what must not lose much", remedy="choose a float")
    if min_sqnr is None:
        raise UsageError("otherwise is for what falls short of min_sqnr", remedy="add min_sqnr, or leave it out")
    return found.name


def _text(name: str, value: Any) -> str:
    """A parameter as it is written in a chain; nothing where it is the usual one."""
    if value == _USUAL[name]:
        return ""
    if name == "keep":
        return f"[{', '.join(map(quoted, value))}]"
    return number(value) if isinstance(value, float) else str(value)
