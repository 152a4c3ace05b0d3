"""Values of every dtype as torch's tensors: those that torch computes with, and those that it only moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from tconv.dtypes import DType

_OWN = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64")
}
_MOVED = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def carrier(dtype: DType) -> torch.dtype:
    """What elements are on the device: the dtype itself, or integers of the same bits where torch has no arithmetic."""
    return _OWN.get(dtype.name, _MOVED[dtype.itemsize])  # type: ignore[no-any-return]  # looked up by name


def moved(dtype: DType) -> torch.dtype:
    """Integers of as many bits."""
    return _MOVED[dtype.itemsize]


def numbers(x: Tensor, dtype: DType) -> Tensor:
    """The values of elements as they are carried, in a dtype that torch computes with."""
    if dtype.name == "uint16":
        return x.to(torch.int32) & 0xFFFF
    if dtype.name == "uint32":
        return x.to(torch.int64) & 0xFFFFFFFF
    return x != 0 if dtype.kind == "bool" else x
