"""dequantize: what quantize made, with its scales and zero points, as floats again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tconv import trees
from tconv.dtypes import dtype as named
from tconv.errors import TconvError, UsageError, raise_all
from tconv.quant import noted, stored
from tconv.quant.op import UNDECIDED, Dequantize, Numbers
from tconv.step import Step
from tconv.tensor import Tensor

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.step import Scan
    from tconv.tensor import Spec, Stream


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
        """With the scales and zero points read. Raises ``TconvError`` for scales that are none."""
        self.apply(stream)  # what is wrong with shapes and dtypes is told before anything is read
        bases = _bases(stream)
        numbers = [t for t in stream.tensors if t.spec.name in bases]
        read = {t.spec.name: np.empty(t.spec.size, t.spec.dtype.numpy) for t in numbers}

        def keep(i: int, lo: int, x: Array) -> None:
            read[numbers[i].spec.name][lo : lo + x.size] = x

        scan.values(numbers, keep)
        kinds = {t.spec.name: t.spec.dtype for t in stream.tensors}
        problems = (_refusal(t, read[t.spec.name], kinds[bases[t.spec.name]]) for t in numbers)
        raise_all([problem for problem in problems if problem])
        return _Settled(self.dtype, self.axis, {n: values.astype(np.float32) for n, values in read.items()}), ()

    def apply(self, stream: Stream) -> Stream:
        told = noted.told(stream.extra.metadata)
        spent = _bases(stream)
        bases = set(spent.values())
        raise_all([_bare(t) for t in stream.tensors if t.spec.name in told and t.spec.name not in bases])
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
        metadata = noted.noting(stream.extra.metadata, {n: how for n, how in told.items() if n not in bases})
        extra = replace(stream.extra, tree=trees.without(stream.extra.tree, spent), metadata=metadata)
        return replace(stream.with_tensors(made), extra=extra)

    def _back(self, tensor: Tensor, specs: Mapping[str, Spec], told: Any) -> Tensor:
        spec = tensor.spec
        scale, zero = specs[f"{spec.name}.scale"], specs.get(f"{spec.name}.zero_point")
        how = stored.grid_of(spec, scale, zero, told)
        axis, group = stored.shares(spec, scale.shape, told, self.axis)
        op = Dequantize(
            grid=how,
            numbers=self._numbers(spec.name),
            axis=axis,
            group=group,
            dtype=named(self.dtype),
            step=str(self),
        )
        return tensor.then(op)

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


def _refusal(tensor: Tensor, values: Array, base: DType) -> TconvError | None:
    """What is wrong with scales, or with zero points, of numbers of dtype ``base``."""
    try:
        if tensor.spec.name.endswith(noted.BESIDE[0]):
            stored.refuse_scales(values)
        else:
            stored.refuse_zeros(values, base)
    except TconvError as problem:
        return problem.at(file=tensor.source.path, tensor=tensor.spec.name)
    return None


def _bare(tensor: Tensor) -> TconvError:
    return TconvError(
        "it is quantized, as the metadata of the file say, and there is no scale beside it",
        remedy="take the file that quantize wrote, whole",
        file=tensor.source.path,
        tensor=tensor.spec.name,
    )


def _bases(stream: Stream) -> dict[str, str]:
    """Of each scale and zero point the tensor that it is beside."""
    names = {t.spec.name for t in stream.tensors}
    bases = {name.removesuffix(".scale") for name in names if name.endswith(".scale")} & names
    return {f"{base}{suffix}": base for base in bases for suffix in noted.BESIDE if f"{base}{suffix}" in names}
