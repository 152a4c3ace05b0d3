"""PyTorch tensors. What NumPy has no name for goes through as bits: ``.numpy()`` refuses bfloat16 and float8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tconv.arrays.device import NAME_IT
from tconv.dtypes import DTYPES
from tconv.errors import TconvError, UsageError

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

_NAMES = {found: name for name in DTYPES if isinstance(found := getattr(torch, name, None), torch.dtype)}
_NAMES = {dtype: name for dtype, name in _NAMES.items() if DTYPES[name].bits >= 8}  # int4 is a name without tensors
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_BITS = {1: torch.uint8, 2: torch.int16}  # by the size of an element: integers that NumPy has too


def dtype_of(x: Any) -> DType:
    _refuse_without_elements(x)
    if x.dtype not in _NAMES:
        raise TconvError(f"a tensor of dtype {x.dtype} cannot be converted", remedy="take it to a plain dtype first")
    return DTYPES[_NAMES[x.dtype]]


def _refuse_without_elements(x: Any) -> None:
    if x.device.type == "meta":
        raise TconvError("a tensor on the device meta has no values", remedy="load its weights first")
    if x.is_quantized:
        raise TconvError("a quantized tensor", remedy="take x.dequantize(), or x.int_repr() for the integers")
    if x.is_nested:
        raise TconvError("a nested tensor", remedy="take x.unbind(), or x.to_padded_tensor(0)")
    if x.layout != torch.strided:
        raise TconvError(f"a sparse tensor ({x.layout})", remedy="take x.to_dense()")


def device_of(x: Any) -> str:
    return str(x.device)


def on_cpu(x: Any) -> bool:
    return bool(x.device.type == "cpu")


def is_contiguous(x: Any) -> bool:
    return bool(x.is_contiguous())


def contiguous(x: Any) -> Any:
    return x.contiguous()


def requires_grad(x: Any) -> bool:
    return bool(x.requires_grad)


def to_numpy(x: Any) -> Array:
    dtype = dtype_of(x)
    plain = x.detach().cpu().resolve_conj().resolve_neg()
    if dtype.is_extension:
        plain = plain.view(_BITS[dtype.itemsize])
    try:
        values: Array = plain.numpy()
    except (RuntimeError, TypeError) as problem:  # what stands for a tensor while a program is traced
        raise TconvError(f"it has no values: {problem}", remedy="convert it outside of traced functions") from None
    return values.view(dtype.numpy)


def make(values: Array, device: str | None, copy: bool | None) -> torch.Tensor:
    name = values.dtype.name
    if name not in _DTYPES:
        raise TconvError(f"PyTorch has no tensors of {name}", remedy="choose another dtype")
    obstacle = _obstacle(values)
    if copy is False and obstacle:
        raise TconvError(f"its memory cannot be shared: {obstacle}", remedy="leave out copy=False")
    if copy or obstacle:
        values = np.array(values, order="C", copy=True)
    # NumPy has two names for some integers, of which PyTorch knows one.
    plain = np.dtype(f"u{values.itemsize}") if DTYPES[name].is_extension else DTYPES[name].numpy
    made = torch.from_numpy(values.view(plain))
    if DTYPES[name].is_extension:
        made = made.view(_BITS[values.itemsize]).view(_DTYPES[name])
    return made if device is None else move(made, device)


def _obstacle(values: Array) -> str:
    """Why PyTorch cannot look at this memory as its own."""
    if not values.flags.writeable:
        return "it is read-only, and PyTorch has no read-only tensors"
    if any(stride < 0 or stride % values.itemsize for stride in values.strides):
        return "PyTorch has no strides like these"
    return "" if values.flags.aligned else "its elements are not aligned"


def exported(x: Any) -> Any:
    return x.detach().resolve_conj().resolve_neg()


def adopt(x: Any, copy: bool | None) -> torch.Tensor | None:
    try:
        shared = torch.utils.dlpack.from_dlpack(x)
    except (RuntimeError, TypeError, ValueError, BufferError):
        return None
    return shared if copy is False else shared.clone()


def move(x: Any, device: str) -> Any:
    if device.lower() == "cpu:0" and on_cpu(x):  # of which PyTorch makes a copy
        return x
    if device.lower().partition(":")[0] == "meta":
        raise TconvError("the device meta holds no values")
    try:
        there = torch.device(device.lower())
    except RuntimeError:
        raise UsageError(f"PyTorch has no device {device!r}", remedy=NAME_IT) from None
    try:
        return x.to(there)
    except (RuntimeError, AssertionError) as problem:  # no such device, or none that this build knows
        first = str(problem).partition("\n")[0]
        raise TconvError(f"cannot go to {device}: {first}", remedy="torch.cuda.is_available() tells") from None


def widen(x: Any, dtype: DType) -> Any:
    return x.detach().to(_DTYPES[dtype.name])


def clip(x: Any, low: float, high: float) -> Any:
    return x.detach().clamp(low, high)
