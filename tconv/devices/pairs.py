"""Which casts a device makes just as the CPU does; told from names, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tconv.dtypes import DType

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_INTEGERS = frozenset(("uint8", "int8", "uint16", "int16", "uint32", "int32"))


def computes(dtype: DType) -> bool:
    """Whether values of it are numbers there, exactly, in float64."""
    return dtype.name in _FLOATS or dtype.name in _INTEGERS


def exact(src: DType, dst: DType) -> bool:
    """Whether ``rounding`` has the cast."""
    return computes(src) and (computes(dst) or dst.name in ("int64", "bool"))
