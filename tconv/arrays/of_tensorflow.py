"""TensorFlow tensors and variables, eager ones: a symbolic tensor has no values yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tconv.dtypes import DTYPES
from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

_DENSE = {"SparseTensor": "tf.sparse.to_dense(x)", "IndexedSlices": "tf.convert_to_tensor(x)"}
ALIGNED = 64  # bytes: TensorFlow's kernels read memory that begins at a multiple of it


def dtype_of(x: Any) -> DType:
    if not isinstance(x, tf.Tensor | tf.Variable):
        kind = type(x).__name__
        dense = _DENSE.get(kind, "x.to_tensor(), for example")
        raise TconvError(f"{kind} is no dense tensor", remedy=f"take it to one first ({dense})")
    if not isinstance(x, tf.Variable) and not hasattr(x, "numpy"):
        raise TconvError("a symbolic tensor has no values", remedy="inside of tf.function use tf.cast")
    if x.dtype.name not in DTYPES:
        raise TconvError(f"a tensor of dtype {x.dtype.name} cannot be converted", remedy="tconv converts numbers")
    return DTYPES[x.dtype.name]


def device_of(x: Any) -> str:
    return str(x.device)


def on_cpu(x: Any) -> bool:
    return "CPU" in (x.device or "CPU")


def is_contiguous(x: Any) -> bool:
    return True


def contiguous(x: Any) -> Any:
    return x


def requires_grad(x: Any) -> bool:
    return isinstance(x, tf.Variable) and bool(x.trainable)


def to_numpy(x: Any) -> Array:
    dtype_of(x)
    values: Array = np.asarray(tf.convert_to_tensor(x))
    return values


def make(values: Array, device: str | None, copy: bool | None) -> Any:
    place = None if device is None else _place(device)
    obstacle = _obstacle(values)
    if place not in (None, "CPU:0"):
        obstacle = f"it is not on {device}"
    if copy is False and obstacle:
        raise TconvError(f"its memory cannot be shared: {obstacle}", remedy="leave out copy=False")
    if not (copy or obstacle):
        return _shared(values)
    return _on(place, lambda: tf.constant(values, dtype=_dtype(values)))


def _dtype(values: Array) -> Any:
    try:
        return tf.as_dtype(values.dtype)
    except TypeError:
        raise TconvError(f"TensorFlow has no tensors of {values.dtype.name}", remedy="choose another dtype") from None


def _obstacle(values: Array) -> str:
    """Why TensorFlow cannot look at this memory as its own."""
    if DTYPES[values.dtype.name].is_extension and values.dtype.name != "bfloat16":
        return f"TensorFlow cannot look at {values.dtype.name} by DLPack"
    if not values.flags.c_contiguous:
        return "it is not contiguous"
    if not values.flags.writeable:
        return "it is read-only, which DLPack cannot say"
    return "" if values.ctypes.data % ALIGNED == 0 else f"it does not begin at a multiple of {ALIGNED} bytes"


def _shared(values: Array) -> Any:
    if values.dtype.name != "bfloat16":
        return tf.experimental.dlpack.from_dlpack(values.__dlpack__())
    bits = values.view(np.uint16)  # NumPy's DLPack has no name for it
    return tf.bitcast(tf.experimental.dlpack.from_dlpack(bits.__dlpack__()), tf.bfloat16)


def exported(x: Any) -> Any:
    return tf.convert_to_tensor(x)


def adopt(x: Any, copy: bool | None) -> Any | None:
    try:
        shared = tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    except (RuntimeError, TypeError, ValueError, BufferError, tf.errors.OpError):
        return None
    return tf.raw_ops.DeepCopy(x=shared) if copy else shared


def move(x: Any, device: str) -> Any:
    return _on(_place(device), lambda: tf.identity(x))


def _place(device: str) -> str:
    """``GPU:0``, which PyTorch calls ``cuda:0`` and TensorFlow itself ``/job:localhost/…/device:GPU:0``.

    Raises ``TconvError`` for a device that is not there, for which TensorFlow would take the CPU.
    """
    place = device.upper().rpartition("DEVICE:")[2].strip("/").replace("CUDA", "GPU")
    place = place if ":" in place else f"{place}:0"
    there = [found.name.rpartition("device:")[2] for found in tf.config.list_logical_devices()]
    if place not in there:
        raise TconvError(f"cannot go to {place}", remedy=f"TensorFlow has {', '.join(there)}")
    return place


def _on(place: str | None, make: Callable[[], Any]) -> Any:
    if place is None:
        return make()
    with tf.device(place):
        return make()


def widen(x: Any, dtype: DType) -> Any:
    return tf.cast(x, dtype.name)


def clip(x: Any, low: float, high: float) -> Any:
    return tf.clip_by_value(x, low, high)
