"""to_numpy, to_torch, to_tensorflow: the same values in another library, in the same memory where that is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.arrays.casting import cast, is_plain
from tconv.arrays.device import device_named
from tconv.arrays.library import library, library_of
from tconv.arrays.of_numpy import as_frameworks_do
from tconv.errors import TconvError

if TYPE_CHECKING:
    import tensorflow as tf
    import torch

    from tconv.ops import Array


def to_numpy(x: Any, dtype: Any = None, *, copy: bool | None = None) -> Array:
    """``x`` as a NumPy array of its shape, in native byte order: from any device, and without its gradient.

    ``x``: a tensor of PyTorch, TensorFlow or JAX, an array, numbers, nested lists (see ``to_torch``). bfloat16, float8
    and 4-bit values keep their dtype, which is then one of ml_dtypes. ``dtype``: cast to it, as ``cast`` does.

    Memory: without ``copy=True`` the array of a tensor on the CPU is that tensor's own memory, so that what is written
    to one is seen in the other; of TensorFlow's and JAX's tensors, which are immutable, it is read-only. ``copy=False``
    raises ``TconvError`` where a copy is needed (another device, byte order or dtype).

    Raises ``TconvError`` for what has no values, see ``cast``.
    """
    x, copy = _cast(x, dtype, copy)
    adapter = library(library_of(x))
    values = adapter.to_numpy(x)
    # Whoever makes a copy makes another one the next time.
    shared = values is x or (adapter is not library("numpy") and np.may_share_memory(values, adapter.to_numpy(x)))
    if copy is False and not shared:
        raise TconvError("its memory cannot be shared", remedy="leave out copy=False")
    return values.copy() if copy and shared else values


def to_torch(x: Any, dtype: Any = None, device: str | None = None, *, copy: bool | None = None) -> torch.Tensor:
    """``x`` as a PyTorch tensor of its shape and dtype.

    ``x``: an array or tensor of any library; numbers and nested lists, of which integers become int64 and floats
    float32 (in PyTorch's ``Tensor([1, 2])`` integers become floats). ``dtype``: cast to it, as ``cast`` does, which
    refuses what does not fit. ``device``: ``"cpu"``, ``"cuda"``, ``"mps"`` …; None for where x is.

    Memory: without ``copy=True`` the tensor of a writable NumPy array is that array's own memory, so that what is
    written to one is seen in the other. A read-only array, and the immutable tensors of TensorFlow and JAX, are copied,
    as PyTorch has nothing read-only; ``copy=False`` shares the memory of these tensors all the same (then nothing may
    be written to it), and raises ``TconvError`` where sharing is not possible. ``shares_memory`` tells. A PyTorch
    tensor is returned as it is where nothing is to be done.

    Raises ``TconvError`` for what has no values (see ``cast``), for a dtype that PyTorch lacks (4-bit ones), and for a
    device that is not there.
    """
    x, copy = _cast(x, dtype, copy)
    return _to("torch", x, device_named(device), copy)  # type: ignore[no-any-return]  # the library is chosen by its name


def to_tensorflow(x: Any, dtype: Any = None, device: str | None = None, *, copy: bool | None = None) -> tf.Tensor:
    """``x`` as a TensorFlow tensor of its shape and dtype.

    ``x``, ``dtype``: see ``to_torch``; Python's integers become int64 here too (``tf.constant`` makes int32 of them).
    ``device``: ``"cpu"``, ``"gpu:0"`` (or ``"cuda:0"``); None for where x is, as far as TensorFlow has that device.

    Memory: without ``copy=True`` the tensor of a PyTorch tensor is that tensor's own memory, by DLPack, if it is
    contiguous and begins at a multiple of 64 bytes; TensorFlow takes its tensors for immutable, and whoever writes to x
    changes them. A NumPy array is copied, as by ``tf.constant``, since where it begins is up to chance;
    ``copy=False`` shares its memory too, and raises ``TconvError`` where that is not possible, saying why.
    ``shares_memory`` tells. A TensorFlow tensor is returned as it is where nothing is to be done.

    Raises ``TconvError`` for what has no values (see ``cast``) and for a device that is not there.
    """
    made, copy = _cast(x, dtype, copy)
    if made is x and copy is None and isinstance(x, np.ndarray):
        copy = True
    return _to("tensorflow", made, device_named(device), copy)


def shares_memory(x: Any, y: Any) -> bool:
    """Whether two arrays or tensors of any libraries, both on the CPU, have memory in common: writing to one changes
    the other. Judged by the span of addresses of each, as ``np.may_share_memory`` does.

    Raises ``TconvError`` for tensors on other devices.
    """
    return np.may_share_memory(_seen(x), _seen(y))


def _seen(x: Any) -> Array:
    """The memory of ``x`` as NumPy sees it."""
    adapter = library(library_of(x))
    if is_plain(x):
        return adapter.to_numpy(x)
    adapter.dtype_of(x)
    if not adapter.on_cpu(x):
        raise TconvError(f"a tensor on {adapter.device_of(x)}", remedy="memory is compared on the CPU only")
    return adapter.to_numpy(x)


def _to(name: str, x: Any, device: str | None, copy: bool | None) -> Any:
    if is_plain(x):
        x = as_frameworks_do(x)
    source, target = library(library_of(x)), library(name)
    source.dtype_of(x)  # refuses what has no values
    if source is target:
        made = target.make(source.to_numpy(x), target.device_of(x), True) if copy else x
        return made if device is None else target.move(made, device)
    immutable = library_of(x) in ("tensorflow", "jax")
    if not source.on_cpu(x) or (copy is False and immutable):
        adopted = target.adopt(source.exported(x), copy)
        if adopted is not None:
            return adopted if device is None else target.move(adopted, device)
    return target.make(source.to_numpy(x), device, copy)


def _cast(x: Any, dtype: Any, copy: bool | None) -> tuple[Any, bool | None]:
    """``x`` as ``dtype``, and what is still to be said of copies: what was cast has memory of its own."""
    made = x if dtype is None else cast(x, dtype)
    if made is x:
        return x, copy
    if copy is False:
        raise TconvError("another dtype needs memory of its own", remedy="leave out copy=False")
    return made, None
