"""The tensors that stand beside quantized ones: their scales and zero points."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.memory import ArraySource
from tconv.tensor import Spec, Tensor

if TYPE_CHECKING:
    from tconv.quant.op import Quantize


def numbers_of(tensor: Tensor, op: Quantize, step: str) -> list[Tensor]:
    """Its scales and zero points as tensors."""
    spec = tensor.spec
    shape = _shape(spec, op)
    made = [_given(tensor, "scale", op.numbers.scale, shape, step)]
    if op.grid.affine:
        zero = np.zeros(1) if op.numbers.zero is None else op.numbers.zero
        points = zero.astype(op.grid.holder.numpy).astype(op.grid.dtype.numpy)
        made.append(_given(tensor, "zero_point", points, shape, step))
    return made


def refuse_taken(tensor: Tensor, beside: Sequence[Tensor], names: Collection[str]) -> None:
    for other in beside:
        if other.spec.name in names:
            raise TconvError(
                f"there is a tensor {other.spec.name} already",
                remedy="leave it as it is (--keep), or rename that one",
                file=tensor.source.path,
                tensor=tensor.spec.name,
            )


def called(beside: Sequence[Tensor], first: Tensor, tensor: Tensor) -> list[Tensor]:
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
