"""dequantize: what quantize made, with its scales and zero points, as floats again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tconv import trees
from tconv.dtypes import dtype as named
from tconv.errors import TconvError, UsageError, raise_all
from tconv.quant.grid import INTEGERS, Grid, grid
from tconv.quant.op import UNDECIDED, Dequantize, Numbers
from tconv.steps.quantize import KEY
from tconv.tensor import Step, Tensor

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Scan, Spec, Stream

_MADE = (".scale", ".zero_point")


@dataclass(frozen=True)
class Dequant(Step):
    """(q - zero point) * scale, rounded once to ``dtype``, of every ``w`` that has a ``w.scale`` beside it.

    How it was quantized the file says, if tconv wrote it and the format has metadata; else ``axis`` is that along which
    the scales differ, by default the only one that has as many elements.
    """

    name: ClassVar[str] = "dequantize"
    usage: ClassVar[str] = "dequantize, dequantize(float16)"
    rounds: ClassVar[bool] = True

    dtype: str = "float32"
    axis: int | None = None

    def __post_init__(self) -> None:
        target = named(self.dtype)
        if not target.is_float or target.bits < 16:
            raise UsageError(f"there is no dequantizing to {target}", remedy="choose float32, float16 or bfloat16")
        object.__setattr__(self, "dtype", target.name)

    @property
    def needs_scan(self) -> bool:
        return True

    def fit(self, stream: Stream, scan: Scan) -> tuple[Dequant, tuple[str, ...]]:
        """With the scales and zero points read."""
        bases = _bases(stream)
        beside = [t for t in stream.tensors if t.spec.name in bases]
        read = {t.spec.name: np.empty(t.spec.size, t.spec.dtype.numpy) for t in beside}

        def keep(i: int, lo: int, x: Array) -> None:
            read[beside[i].spec.name][lo : lo + x.size] = x

        scan.values(beside, keep)
        return _Settled(self.dtype, self.axis, {n: values.astype(np.float32) for n, values in read.items()}), ()

    def apply(self, stream: Stream) -> Stream:
        told = _told(stream)
        spent = _bases(stream)
        bases = set(spent.values())
        if not bases:
            raise TconvError(
                "nothing in it is quantized: there is no tensor with a .scale beside it",
                remedy="quantize names them w, w.scale and w.zero_point",
                step=str(self),
            )
        specs = {t.spec.name: t.spec for t in stream.tensors}
        made, problems = list[Tensor](), list[TconvError]()
        for tensor in stream.tensors:
            name = tensor.spec.name
            try:
                if name not in spent:
                    made.append(self._back(tensor, specs, told.get(name)) if name in bases else tensor)
            except TconvError as problem:
                problems.append(problem.at(file=tensor.source.path, tensor=name, step=str(self)))
        raise_all(problems)
        metadata = {k: v for k, v in stream.extra.metadata.items() if k != KEY}
        left = {name: how for name, how in told.items() if name not in bases}
        if left:
            metadata[KEY] = json.dumps(left, ensure_ascii=False)
        extra = replace(stream.extra, tree=trees.without(stream.extra.tree, spent), metadata=metadata)
        return replace(stream.with_tensors(made), extra=extra)

    def _back(self, tensor: Tensor, specs: Mapping[str, Spec], told: Any) -> Tensor:
        spec = tensor.spec
        scale, zero = specs[f"{spec.name}.scale"], specs.get(f"{spec.name}.zero_point")
        if not scale.dtype.is_float:
            raise TconvError(f"its scale is {scale.dtype}, not a float")
        if zero is not None and zero.shape != scale.shape:
            raise TconvError(f"{scale.shape} scales and {zero.shape} zero points do not go together")
        how = _grid(spec, told, affine=zero is not None)
        axis, group = self._shares(spec, scale.shape, told)
        op = Dequantize(
            grid=how,
            numbers=self._numbers(spec.name),
            axis=axis,
            group=group,
            dtype=named(self.dtype),
            step=str(self),
        )
        return tensor.then(op)

    def _shares(self, spec: Spec, shape: tuple[int, ...], told: Any) -> tuple[int | None, int | None]:
        """The axis along which, and the number of elements in a row for which, scales of ``shape`` are."""
        count = prod(shape)
        if count == 1 and len(shape) < 2:
            return None, None
        if len(shape) == 2:
            group, rest = divmod(spec.size, count)
            if rest:
                raise TconvError(f"{shape} scales do not divide {spec.shape} into groups")
            return None, group
        fitting = [axis for axis, size in enumerate(spec.shape) if size == count]
        axis = self.axis if self.axis is not None else told.get("axis") if isinstance(told, dict) else None
        if isinstance(axis, int) and -len(spec.shape) <= axis < len(spec.shape):
            fitting = [axis % len(spec.shape)] if spec.shape[axis] == count else []
        if len(fitting) != 1:
            which = f"any of the axes {fitting}" if fitting else "no axis"
            raise TconvError(
                f"{count} scales fit {which} of {spec.shape}", remedy="say which: --step 'dequantize(axis=0)'"
            )
        return fitting[0], None

    def _numbers(self, name: str) -> Numbers:
        return UNDECIDED

    def __str__(self) -> str:
        parts = [self.dtype] if self.dtype != "float32" else []
        parts += [f"axis={self.axis}"] if self.axis is not None else []
        return f"dequantize({', '.join(parts)})" if parts else "dequantize"


@dataclass(frozen=True)
class _Settled(Dequant):
    """One that has read the numbers, by the names of their tensors."""

    read: Mapping[str, Array] = field(default_factory=dict, compare=False)

    def _numbers(self, name: str) -> Numbers:
        return Numbers(self.read[f"{name}.scale"], self.read.get(f"{name}.zero_point"))


def _bases(stream: Stream) -> dict[str, str]:
    """Of each scale and zero point the tensor that it is beside."""
    names = {t.spec.name for t in stream.tensors}
    bases = {name.removesuffix(".scale") for name in names if name.endswith(".scale")} & names
    return {f"{base}{suffix}": base for base in bases for suffix in _MADE if f"{base}{suffix}" in names}


def _told(stream: Stream) -> dict[str, Any]:
    """What the metadata say of each tensor."""
    try:
        found = json.loads(stream.extra.metadata.get(KEY, "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TconvError(f"its metadata {KEY!r} are broken", remedy="write the file again")
    return found


def _grid(spec: Spec, told: Any, *, affine: bool) -> Grid:
    name = told.get("to") if isinstance(told, dict) else None
    if name == "nf4" and spec.dtype.name == "uint4":
        return grid("nf4")
    if spec.dtype.name in INTEGERS:
        found = grid(spec.dtype.name, "affine")
        return found if affine else replace(found, scheme="symmetric")
    try:
        return grid(spec.dtype.name)
    except UsageError:
        raise TconvError(f"{spec.dtype} is no dtype of quantized values") from None
