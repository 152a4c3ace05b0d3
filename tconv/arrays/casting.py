"""cast and to_float32: another dtype for an array of any library, which stays of its library and on its device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from tconv import casts
from tconv.arrays.audit import rounded
from tconv.arrays.device import device_named
from tconv.arrays.dtype import dtype_named, holds
from tconv.arrays.library import library, library_of
from tconv.dtypes import dtype
from tconv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.arrays.library import Library
    from tconv.dtypes import DType
    from tconv.ops import Array

    T = TypeVar("T")
    Numbers = bool | int | float | complex | Sequence[Any]

FLOAT32 = dtype("float32")


@overload
def cast(x: Numbers, dtype: Any, on_overflow: str = ...) -> Array: ...
@overload
def cast(x: T, dtype: Any, on_overflow: str = ...) -> T: ...
def cast(x: Any, dtype: Any, on_overflow: str = "error") -> Any:
    """``x`` as ``dtype``, rounded once from the values of x, on its device and of its library.

    ``x``: a NumPy array or scalar, a PyTorch, TensorFlow or JAX tensor of any shape, which the result has too; numbers
    and nested lists become NumPy arrays. It is never changed. Where it has the dtype already, x itself is returned.

    ``dtype``: a name (``"float16"``, ``"half"``, ``"bf16"``, ``"fp8"`` …) or an object (``torch.float16``,
    ``np.float32``, ``tf.bfloat16`` …).

    Floats are rounded to nearest, ties to even; floats become integers toward zero; nothing wraps around. What does not
    fit is handled as ``on_overflow`` says:

    - ``"error"``: it is refused, with how many values and the largest of them.
    - ``"saturate"``: it becomes the largest (or lowest) value there is.
    - ``"inf"``: it becomes infinite, in dtypes that have an infinity.

    What became 0, and integers that a float dtype does not have, are told to the log ``tconv`` as a warning.

    PyTorch: the result is detached, and so is no ``Parameter`` and takes no part in autograd; for a cast that does, use
    ``x.to``. A tensor on a GPU stays there if the new dtype has all values of the old one (float16 to float32, say);
    else its values are counted and rounded on the CPU, and taken back.

    Raises ``TconvError`` for values that do not fit, for complex values that would become real, and for what is no
    dense tensor with values (sparse, quantized, symbolic, on the device meta); ``UsageError`` for an unknown dtype or
    policy.

    >>> cast(np.array([1.5, 70000.0]), "float16", on_overflow="saturate")
    array([1.5e+00, 6.55e+04], dtype=float16)
    """
    target = dtype_named(dtype)
    casts.check_policy(target, on_overflow)
    if is_plain(x):
        x = library("numpy").to_numpy(x)
    adapter = library(library_of(x))
    source = adapter.dtype_of(x)
    if source == target and _is_native(x):
        return x
    if not adapter.on_cpu(x) and holds(target, source):
        return adapter.widen(x, target)
    made = rounded(_values(adapter, x), source, target, on_overflow)
    return _back(adapter, x, made)


@overload
def to_float32(
    x: Numbers, device: str | None = ..., clip: tuple[float, float] | None = ...
) -> np.ndarray[Any, np.dtype[np.float32]]: ...
@overload
def to_float32(x: T, device: str | None = ..., clip: tuple[float, float] | None = ...) -> T: ...
def to_float32(x: Any, device: str | None = None, clip: tuple[float, float] | None = None) -> Any:
    """``x`` as a contiguous (C order) float32 tensor of its library on ``device``, in one go: what a model takes.

    ``device``: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` …; None for where x is. What is smaller than float32 moves as it is
    and is cast there, the rest is cast before it moves. NumPy arrays stay on the CPU: ``to_torch`` takes them farther.

    ``clip``: (low, high) in the unit of the values; they are held to that range before they are rounded, so that
    float64 values beyond float32 are no overflow. NaN stay NaN.

    The shape stays, and so do the values but for rounding: uint8 pixels are in 0…255 afterwards, as before. x itself is
    returned where nothing is to be done; else the result is detached, as that of ``cast``, and x is not changed.

    Raises what ``cast`` raises, and ``TconvError`` for a device that is not there.
    """
    bounds, device = None if clip is None else _checked(clip), device_named(device)
    if is_plain(x):
        x = library("numpy").to_numpy(x)
    adapter = library(library_of(x))
    source = adapter.dtype_of(x)
    small = holds(FLOAT32, source) and source.itemsize < FLOAT32.itemsize
    if device is not None and small:
        x = adapter.move(x, device)
    if not adapter.on_cpu(x) and holds(FLOAT32, source):
        x = adapter.widen(x, FLOAT32)
        x = adapter.contiguous(adapter.clip(x, *bounds) if bounds else x)
    elif bounds is not None or source != FLOAT32 or not adapter.is_contiguous(x):
        x = _back(adapter, x, _single(_values(adapter, x), source, bounds))
    return x if device is None else adapter.move(x, device)


def _single(values: Array, source: DType, bounds: tuple[float, float] | None) -> Array:
    """The values clipped, rounded, in C order. Only float64 goes beyond float32: of that the bounds come first, else
    rounding keeps the order of values and bounds, so that it makes no difference.
    """
    wide = source.name == "float64"
    if bounds is not None and wide:
        values = np.clip(values, *bounds)
    made = rounded(values, source, FLOAT32, "error")
    if bounds is not None and not wide:
        with np.errstate(over="ignore"):
            made = np.clip(made, *np.array(bounds).astype(np.float32))
    return np.asarray(made, order="C")


def _checked(clip: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = map(float, clip)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"clip is {clip!r}", remedy="give (low, high)") from None
    if not low <= high:
        raise UsageError(f"clip is {clip!r}: low is above high", remedy="give (low, high)")
    return low, high


def is_plain(x: Any) -> bool:
    """Whether x is no array of any library yet."""
    return library_of(x) == "numpy" and not isinstance(x, np.ndarray | np.generic)


def _is_native(x: Any) -> bool:
    return not isinstance(x, np.ndarray) or x.dtype.isnative


def _values(adapter: Library, x: Any) -> Array:
    return np.asarray(x) if isinstance(x, np.generic) else adapter.to_numpy(x)


def _back(adapter: Library, x: Any, made: Array) -> Any:
    """``made`` as what ``x`` is, and where it is."""
    if isinstance(x, np.generic):
        return made[()]
    if adapter.on_cpu(x):
        return adapter.make(made, None, None)
    return adapter.make(made, adapter.device_of(x), None)
