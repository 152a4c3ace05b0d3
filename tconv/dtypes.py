"""The dtypes tconv knows: their names, the aliases people type, their limits, their NumPy twins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from tconv.errors import UsageError
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "int", "uint", "float", "complex"]


@dataclass(frozen=True)
class DType:
    """One element type.

    ``max`` and ``min`` are the largest and smallest finite values (of each part, for complex); ``tiny`` is the
    smallest positive value, subnormals included; ``digits`` counts the significant bits of a float.
    """

    name: str
    kind: Kind
    bits: int
    min: float
    max: float
    digits: int = 0
    tiny: float = 0.0
    has_inf: bool = False
    has_nan: bool = False

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; bool is not an integer."""
        return self.kind in ("int", "uint")

    @property
    def itemsize(self) -> int:
        """Bytes an element takes in memory (4-bit types take one there, half of one in a file)."""
        return max(1, self.bits // 8)

    def nbytes(self, count: int) -> int:
        """Bytes that ``count`` elements take in a file, 4-bit types packed two a byte."""
        return (count * self.bits + 7) // 8 if self.bits < 8 and self.kind != "bool" else count * self.itemsize

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype, little endian; ml_dtypes has those that NumPy lacks."""
        import numpy as np

        if self.name in _EXTENSION:
            import ml_dtypes

            extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.name))
            return extension
        plain: np.dtype[Any] = np.dtype(self.name).newbyteorder("<")
        return plain

    @property
    def is_extension(self) -> bool:
        """Whether NumPy itself lacks it, so that .npy cannot name it."""
        return self.name in _EXTENSION

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)  # it is looked up by in caches for every block of values


def _float(name: str, bits: int, digits: int, top: float, tiny: float, inf: bool = True, nan: bool = True) -> DType:
    return DType(name, "float", bits, -top, top, digits, tiny, inf, nan)


def _integers() -> list[DType]:
    found = [DType("int4", "int", 4, -8, 7), DType("uint4", "uint", 4, 0, 15)]
    for bits in (8, 16, 32, 64):
        found.append(DType(f"int{bits}", "int", bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        found.append(DType(f"uint{bits}", "uint", bits, 0, 2**bits - 1))
    return found


_F32_MAX = (2 - 2.0**-23) * 2.0**127
_F64_MAX = (2 - 2.0**-52) * 2.0**1023
_EXTENSION = frozenset(
    ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn", "int4", "uint4")
)

DTYPES: dict[str, DType] = {
    d.name: d
    for d in [
        DType("bool", "bool", 8, 0, 1),
        *_integers(),
        _float("float16", 16, 11, 65504.0, 2.0**-24),
        _float("float32", 32, 24, _F32_MAX, 2.0**-149),
        _float("float64", 64, 53, _F64_MAX, 2.0**-1074),
        _float("bfloat16", 16, 8, (2 - 2.0**-7) * 2.0**127, 2.0**-133),
        _float("float8_e4m3fn", 8, 4, 448.0, 2.0**-9, inf=False),
        _float("float8_e5m2", 8, 3, 57344.0, 2.0**-16),
        _float("float8_e4m3fnuz", 8, 4, 240.0, 2.0**-10, inf=False),
        _float("float8_e5m2fnuz", 8, 3, 57344.0, 2.0**-17, inf=False),
        _float("float4_e2m1fn", 4, 2, 6.0, 0.5, inf=False, nan=False),
        DType("complex64", "complex", 64, -_F32_MAX, _F32_MAX, 24, 2.0**-149, True, True),
        DType("complex128", "complex", 128, -_F64_MAX, _F64_MAX, 53, 2.0**-1074, True, True),
    ]
}

ALIASES: dict[str, str] = {
    "half": "float16", "fp16": "float16", "f16": "float16",
    "float": "float32", "single": "float32", "fp32": "float32", "f32": "float32",
    "double": "float64", "fp64": "float64", "f64": "float64",
    "bf16": "bfloat16", "brain": "bfloat16",
    "fp8": "float8_e4m3fn", "f8_e4m3": "float8_e4m3fn", "e4m3": "float8_e4m3fn", "e4m3fn": "float8_e4m3fn",
    "float8_e4m3": "float8_e4m3fn", "fp8_e4m3": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2", "e5m2": "float8_e5m2", "fp8_e5m2": "float8_e5m2",
    "fp4": "float4_e2m1fn", "float4": "float4_e2m1fn", "e2m1": "float4_e2m1fn",
    "byte": "uint8", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "u4": "uint4",
    "char": "int8", "i8": "int8", "short": "int16", "i16": "int16", "int": "int32", "i32": "int32",
    "long": "int64", "i64": "int64", "i4": "int4", "boolean": "bool", "bool_": "bool",
    "cfloat": "complex64", "c64": "complex64", "cdouble": "complex128", "c128": "complex128", "complex": "complex128",
}  # fmt: skip


def dtype(name: str | DType) -> DType:
    """Look a dtype up by any name that people type: ``half``, ``torch.float16``, ``np.float16``, ``bf16`` …

    Raises ``UsageError`` with the nearest names for what is none.
    """
    if isinstance(name, DType):
        return name
    plain = name.strip().lower()
    for prefix in ("torch.", "numpy.", "np.", "tf.", "jnp.", "ml_dtypes."):
        plain = plain.removeprefix(prefix)
    found = DTYPES.get(ALIASES.get(plain, plain))
    if found is None:
        raise UsageError(f"there is no dtype {name!r}", remedy=_hint(plain))
    return found


_TYPESTR = re.compile(r"[<>|=]?([biufc])([0-9]{1,2})")  # as NumPy writes it: kind and bytes
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def _hint(plain: str) -> str:
    typed = _TYPESTR.fullmatch(plain)
    if typed:
        kind, size = _KINDS[typed[1]], int(typed[2])
        called = "bool" if kind == "bool" else f"{kind}{8 * size}"
        if called in DTYPES:
            eight = "; floats of 8 bits are float8_e4m3fn and float8_e5m2" if plain == "f8" else ""
            return f"NumPy's {plain!r} is called {called} here{eight}"
    return did_you_mean(plain, [*DTYPES, *ALIASES], _others(plain))


def _others(plain: str) -> str:
    if plain in ("npy", "npz", "safetensors", "pt", "pth"):
        return f"the format is chosen by the name of the output: -o x.{plain}"
    return f"there are {', '.join(d.name for d in DTYPES.values())}"


def from_numpy(np_dtype: Any) -> DType | None:
    """The dtype of a NumPy array, whatever its byte order; None for what is no tensor element (object, str …)."""
    return DTYPES.get(np_dtype.name)
