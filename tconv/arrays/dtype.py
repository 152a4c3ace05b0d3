"""The dtypes of all libraries, by name or as objects, as tconv's own; and which of them hold each other's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tconv.dtypes import DType, dtype
from tconv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np


def dtype_named(given: Any) -> DType:
    """The dtype that is meant by a name, a ``torch.dtype``, a ``tf.DType``, or what NumPy takes for a dtype.

    Python's ``float`` and ``int`` are refused: to PyTorch they have other sizes than to NumPy.
    """
    if isinstance(given, str | DType):
        return dtype(given)
    if any(given is kind for kind in (float, int, complex)):  # to NumPy its dtypes are equal to these
        name, (small, large) = given.__name__, (64, 128) if given is complex else (32, 64)
        raise UsageError(
            f"Python's {name} is not the same size to all libraries", remedy=f"say {name}{small} or {name}{large}"
        )
    if type(given).__module__.partition(".")[0] in ("torch", "tensorflow"):
        return dtype(getattr(given, "name", None) or str(given))
    if given is None:  # to NumPy it is float64
        raise UsageError("None is no dtype", remedy="write its name, as in 'float16'")
    import numpy as np

    try:
        if not isinstance(given, type | np.dtype):  # of None, {} and the like NumPy makes a dtype too
            raise TypeError
        return dtype(np.dtype(given).name)
    except TypeError:
        raise UsageError(f"{given!r} is no dtype", remedy="write its name, as in 'float16'") from None


def native(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype as NumPy itself calls it: ``float32``, which files call ``<f4``."""
    found: np.dtype[Any] = dtype.numpy.newbyteorder("=")
    return found


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``: then a cast loses nothing, whoever makes it."""
    if narrow == wide or narrow.kind == "bool":
        return True
    if narrow.is_integer and wide.is_integer:
        return wide.min <= narrow.min and narrow.max <= wide.max
    if narrow.is_integer and wide.is_float:
        return narrow.bits - (narrow.kind == "int") <= wide.digits and narrow.max <= wide.max
    if narrow.is_float and wide.is_float:
        kinds = wide.has_inf >= narrow.has_inf and wide.has_nan >= narrow.has_nan
        return kinds and narrow.digits <= wide.digits and narrow.max <= wide.max and narrow.tiny >= wide.tiny
    return narrow.kind == "complex" == wide.kind and narrow.bits <= wide.bits
