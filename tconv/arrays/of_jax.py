"""JAX arrays. In its 32-bit mode JAX makes 32 bits of 64 without a word: that is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from tconv.dtypes import DTYPES
from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array


def dtype_of(x: Any) -> DType:
    if isinstance(x, jax.core.Tracer):
        raise TconvError("a traced array has no values", remedy="inside of jax.jit use x.astype")
    if x.dtype.name not in DTYPES:
        raise TconvError(f"an array of dtype {x.dtype.name} cannot be converted", remedy="tconv converts numbers")
    return DTYPES[x.dtype.name]


def device_of(x: Any) -> str:
    return ", ".join(sorted(str(device) for device in x.devices()))


def on_cpu(x: Any) -> bool:
    return all(device.platform == "cpu" for device in x.devices())


def is_contiguous(x: Any) -> bool:
    return True


def contiguous(x: Any) -> Any:
    return x


def requires_grad(x: Any) -> bool:
    return False


def to_numpy(x: Any) -> Array:
    dtype_of(x)
    values: Array = np.asarray(x)
    return values


def make(values: Array, device: str | None, copy: bool | None) -> Any:
    _refuse_narrowing(DTYPES[values.dtype.name])
    made = jnp.array(values, copy=True) if copy else jnp.asarray(values)
    return made if device is None else move(made, device)


def _refuse_narrowing(dtype: DType) -> None:
    if jax.dtypes.canonicalize_dtype(dtype.numpy) != dtype.numpy:
        raise TconvError(
            f"JAX is in its 32-bit mode and would narrow {dtype}",
            remedy='cast to 32 bits, or jax.config.update("jax_enable_x64", True)',
        )


def exported(x: Any) -> Any:
    return x


def adopt(x: Any, copy: bool | None) -> Any | None:
    try:
        shared = jax.dlpack.from_dlpack(x)
    except (RuntimeError, TypeError, ValueError, BufferError):
        return None
    return jnp.array(shared, copy=True) if copy else shared


def move(x: Any, device: str) -> Any:
    platform, _, number = device.lower().partition(":")
    try:
        return jax.device_put(x, jax.devices(platform)[int(number or 0)])
    except (RuntimeError, IndexError, ValueError) as problem:
        first = str(problem).partition("\n")[0]
        raise TconvError(f"cannot go to {device}: {first}", remedy="jax.devices() tells which there are") from None


def widen(x: Any, dtype: DType) -> Any:
    _refuse_narrowing(dtype)
    return x.astype(dtype.numpy)


def clip(x: Any, low: float, high: float) -> Any:
    return jnp.clip(x, low, high)
