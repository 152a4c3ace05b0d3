"""quantize: onto a grid of few numbers, with the scales and zero points that lead back beside the tensor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tconv import trees
from tconv.dtypes import DTYPES
from tconv.errors import TconvError, UsageError
from tconv.grammar import quoted
from tconv.memory import ArraySource
from tconv.ops import CastTo
from tconv.quant import noted
from tconv.quant.fit import fit
from tconv.quant.grid import SCHEMES, TARGETS, Grid, grid
from tconv.quant.op import UNDECIDED, Numbers, Quantize
from tconv.quant.ranges import Calibration
from tconv.quant.search import METHODS
from tconv.steps.clamp import number
from tconv.steps.touch import on_touched
from tconv.tensor import Spec, Step, Tensor
from tconv.twins import firsts

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.tensor import Scan, Stream

NF4_GROUP = 64  # as in QLoRA
FEW_SAMPLES = 100


@dataclass(frozen=True)
class Quant(Step):
    """To ``dtype``: int8, uint8, int16, uint16, int4, uint4, float8_e4m3fn, float8_e5m2, float4_e2m1fn or nf4.

    ``w`` yields ``w``, ``w.scale`` (float32) and, with the affine scheme, ``w.zero_point``: (w - zero_point) * scale.
    ``axis``: the one along which numbers differ, None for one of all; by default weights of two axes or more have one a
    channel of axis 0, and data one of all. ``group``: one for so many elements in a row. ``calibrate``: minmax,
    percentile (the middle ``percentile`` percent), mse or entropy. ``keep``: globs on names of tensors that stay.
    ``min_sqnr``: in dB; a tensor that falls short becomes float16.
    """

    name: ClassVar[str] = "quantize"
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

    def __post_init__(self) -> None:
        found = grid(self.dtype, self.scheme)  # type: ignore[arg-type]  # it says what is wrong with a scheme
        object.__setattr__(self, "dtype", found.name)
        if self.calibrate not in METHODS:
            raise UsageError(f"there is no calibration {self.calibrate!r}", remedy=f"choose {', '.join(METHODS)}")
        if not 0 < self.percentile <= 100:
            raise UsageError(f"percentile is {number(self.percentile)}; it must be above 0 and at most 100")
        if isinstance(self.axis, str) and self.axis.lower() == "none":  # YAML's word is null
            object.__setattr__(self, "axis", None)
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
    def needs_scan(self) -> bool:
        return True

    def fit(self, stream: Stream, scan: Scan) -> tuple[Quant, tuple[str, ...]]:
        """With the numbers that the values call for, and without the tensors that fall short of ``min_sqnr``."""
        pairs = zip(stream.tensors, self._put(stream).tensors, strict=True)
        asked = [(before, op) for before, made in pairs if (op := self._op(made))]
        tensors, ops = [t for t, _ in asked], [op for _, op in asked]
        # Pictures are samples of one input, and so are batches of them, which are called alike.
        pictures = stream.extra.kind == "data" and all(t.spec.axes and op.axis is None for t, op in asked)
        pools = ["" if pictures else first.spec.name for first in firsts(tensors)]
        how = Calibration(self.calibrate, self.percentile)  # type: ignore[arg-type]  # checked
        found = fit(tensors, ops, pools, scan, how)
        decided = dict(zip((t.spec.name for t in tensors), found, strict=True))
        settled = Settled(**{f: getattr(self, f) for f in _FIELDS}, decided=decided)
        notes = _few(tensors) if self.calibrate != "minmax" and stream.extra.kind == "data" else []
        if self.min_sqnr is None:
            return settled, tuple(notes)
        short = self._short(settled, stream, scan)
        notes += [f"{self}: {name} becomes float16: {sqnr:.1f} dB" for name, sqnr in short.items()]
        return replace(settled, short=frozenset(short)), tuple(notes)

    def _short(self, settled: Settled, stream: Stream, scan: Scan) -> dict[str, float]:
        """The tensors of which too little is left, and how much is."""
        made = [t for t in settled._put(stream).tensors if self._op(t)]
        short = {}
        for tensor, account in zip(made, scan(made, True), strict=True):
            details = [lost.detail for key, lost in account.by_cast.items() if key.step == str(self)]
            sqnr = details[0].sqnr if details and details[0] else None  # none of an empty tensor
            if sqnr is not None and self.min_sqnr is not None and sqnr < self.min_sqnr:
                short[tensor.spec.name] = sqnr
        return short

    def apply(self, stream: Stream) -> Stream:
        made = self._put(stream)
        if not any(self._op(t) for t in made.tensors) and not any(t.ops for t in made.tensors):
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
            beside = _called(known, first, tensor) if known else _beside(tensor, op, str(self))
            _refuse_taken(tensor, beside, names)
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
        if weights and (rank <= axis if isinstance(self.axis, int) and axis is not None else rank < 2):
            return tensor
        if axis is not None and not -rank <= axis < rank:
            raise TconvError(f"there is no axis {axis}: its shape is {spec.shape}")
        group = self._group(spec)
        axis = None if group or axis is None else axis % rank
        numbers = self._numbers(spec.name)
        return tensor.then(Quantize(grid=self.grid, numbers=numbers, axis=axis, group=group, step=str(self)))

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
        op = tensor.ops[-1] if tensor.ops else None
        return op if isinstance(op, Quantize) and op.step == str(self) else None

    def __str__(self) -> str:
        parts = [self.dtype]
        parts += [f"{name}={text}" for name in _FIELDS[1:] if (text := _text(name, getattr(self, name)))]
        return f"quantize({', '.join(parts)})"


_FIELDS = ("dtype", "scheme", "axis", "group", "calibrate", "percentile", "keep", "min_sqnr")
_USUAL = {
    "scheme": None,
    "axis": "auto",
    "group": None,
    "calibrate": "minmax",
    "percentile": 99.9,
    "keep": (),
    "min_sqnr": None,
}
_TOUCHED = (
    "of weights floating tensors of two axes or more are quantized, those of one only along an axis given by number"
)


@dataclass(frozen=True)
class Settled(Quant):
    """One that has seen the values: ``decided`` has the numbers of each tensor, ``short`` which become float16."""

    decided: Mapping[str, Numbers] = field(default_factory=dict, compare=False)
    short: frozenset[str] = frozenset()

    def _quantized(self, tensor: Tensor, weights: bool) -> Tensor:
        if tensor.spec.name in self.short:
            half = DTYPES["float16"]
            return tensor if tensor.spec.dtype == half else tensor.then(CastTo(dtype=half, step=str(self)))
        return super()._quantized(tensor, weights)

    def _numbers(self, name: str) -> Numbers:
        return self.decided[name]


def _text(name: str, value: Any) -> str:
    """A parameter as it is written in a chain; nothing where it is the usual one."""
    if value == _USUAL[name]:
        return ""
    if name == "keep":
        return f"[{', '.join(map(quoted, value))}]"
    return number(value) if isinstance(value, float) else str(value)


def _beside(tensor: Tensor, op: Quantize, step: str) -> list[Tensor]:
    """Its scales and zero points as tensors."""
    spec = tensor.spec
    shape = _shape(spec, op)
    made = [_given(tensor, "scale", op.numbers.scale, shape, step)]
    if op.grid.affine:
        zero = np.zeros(1) if op.numbers.zero is None else op.numbers.zero
        points = zero.astype(op.grid.holder.numpy).astype(op.grid.dtype.numpy)
        made.append(_given(tensor, "zero_point", points, shape, step))
    return made


def _refuse_taken(tensor: Tensor, beside: Sequence[Tensor], names: Collection[str]) -> None:
    for other in beside:
        if other.spec.name in names:
            raise TconvError(
                f"there is a tensor {other.spec.name} already",
                remedy="leave it as it is (--keep), or rename that one",
                file=tensor.source.path,
                tensor=tensor.spec.name,
            )


def _called(beside: Sequence[Tensor], first: Tensor, tensor: Tensor) -> list[Tensor]:
    """What is beside ``first``, beside a tensor that is the same."""
    names = [f"{tensor.spec.name}{t.spec.name.removeprefix(first.spec.name)}" for t in beside]
    return [replace(t, spec=replace(t.spec, name=name)) for t, name in zip(beside, names, strict=True)]


def _shape(spec: Spec, op: Quantize) -> tuple[int, ...]:
    if op.group is not None:
        return (spec.shape[0], prod(spec.shape[1:]) // op.group) if len(spec.shape) > 1 else (1, spec.size // op.group)
    return () if op.axis is None else (spec.shape[op.axis],)


def _given(tensor: Tensor, what: str, values: np.ndarray[Any, Any], shape: tuple[int, ...], step: str) -> Tensor:
    spec, size = tensor.spec, prod(shape)
    full = values if values.size == size else np.broadcast_to(values[:1], (size,))  # not decided yet
    dtype = DTYPES[values.dtype.name]
    made = Spec(f"{spec.name}.{what}", dtype, shape, attrs={"made": step})
    return Tensor(made, ArraySource(tensor.source.path, dtype, shape, full))


def _few(tensors: Sequence[Tensor]) -> list[str]:
    images = [t for t in tensors if t.spec.axes]
    count = sum(t.spec.shape[0] if t.spec.axes and t.spec.axes[0] == "N" else 1 for t in images)
    if not images or count >= FEW_SAMPLES:
        return []
    return [f"calibrated on {count} samples; {FEW_SAMPLES} to 500 are usual"]
