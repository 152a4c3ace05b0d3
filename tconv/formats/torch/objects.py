"""What a PyTorch checkpoint holds that neither Python nor NumPy has, as plain data; torch is never imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar

from tconv.dtypes import DTYPES, DType
from tconv.errors import NotTensor, TconvError

DAMAGED = "the file is damaged or was not written by torch.save: fetch or save it again"


def damaged(reason: str) -> TconvError:
    """The file is not what torch.save writes."""
    return TconvError(reason, remedy=DAMAGED)


def unsupported(what: str, remedy: str = "save it as a plain tensor with PyTorch") -> NotTensor:
    """The file is sound, but holds what tconv has no use for."""
    return NotTensor(f"{what}, which tconv cannot read", remedy=remedy)


@dataclass(frozen=True)
class Named:
    """Something that a checkpoint only names, by its full dotted path: ``torch.float16``, a class, a function."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, eq=False)
class Maker:
    """Stands for a class or function that a pickle calls: ``make`` is what tconv does instead."""

    path: str
    make: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        return self.make(*args)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, eq=False)
class Blank(Maker):
    """Of a class whose instances a pickle makes empty before it sets their state."""


@dataclass(frozen=True, eq=False)
class Foreign:
    """Stands in the place of what tconv cannot read, such as a sparse tensor; ``remedy``: how to save it instead."""

    what: str
    remedy: str = "save it as a plain tensor with PyTorch"

    def refusal(self) -> NotTensor:
        return unsupported(self.what, self.remedy)


@dataclass(eq=False)
class Record:
    """An instance of class ``path``, which is never run. ``state`` is what the pickle sets: attributes, mostly."""

    path: str
    state: Any = None


@dataclass(frozen=True)
class FilePath:
    """A path of a class of pathlib's, as text."""

    KINDS: ClassVar[Mapping[str, type[PurePath]]] = {
        "Path": PurePosixPath,
        "PosixPath": PurePosixPath,
        "PurePath": PurePosixPath,
        "PurePosixPath": PurePosixPath,
        "WindowsPath": PureWindowsPath,
        "PureWindowsPath": PureWindowsPath,
    }
    path: str
    text: str

    @classmethod
    def of(cls, path: str, parts: tuple[Any, ...]) -> FilePath:
        """``path`` is that of the class; ``parts`` are what its constructor was called with."""
        if not all(type(part) is str for part in parts):
            raise TypeError("a path of what is no text")
        return cls(path, str(cls.KINDS[path.rpartition(".")[2]](*parts)))


@dataclass(frozen=True)
class Layout:
    """A torch.layout such as ``torch.strided``."""

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class Device:
    """A torch.device."""

    kind: str
    index: int | None = None

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"


class Size(tuple[int, ...]):
    """A torch.Size."""

    __slots__ = ()


@dataclass(frozen=True)
class StorageType:
    """A class of storages. ``dtype`` is None for the untyped one, whose elements are bytes, and for quantized ones."""

    path: str
    dtype: DType | None
    itemsize: int


@dataclass(frozen=True)
class Storage:
    """A run of elements that tensors are views of. ``key`` finds its bytes; ``count`` elements from ``first`` on.

    ``root_count`` is the number of elements that the file holds under ``key``: more than ``count`` for the views of
    storages that very old files have.
    """

    key: str
    type: StorageType
    root_count: int
    device: str
    first: int
    count: int


@dataclass(frozen=True, eq=False)
class StoredTensor:
    """A tensor as the pickle describes it: a view of a storage. ``offset`` and ``stride`` count elements.

    ``conj`` and ``neg``: the values are to be conjugated or negated when read. ``state``: Python attributes that
    somebody hung on it.
    """

    storage: Storage
    dtype: DType
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool = False
    parameter: bool = False
    conj: bool = False
    neg: bool = False
    state: Mapping[str, Any] | None = None


# The names of the storage classes that torch.save writes, and the dtype of their elements. Newer dtypes have none:
# they are saved as bytes (UntypedStorage) beside the name of the dtype.
STORAGE_DTYPES: dict[str, DType] = {
    "DoubleStorage": DTYPES["float64"],
    "FloatStorage": DTYPES["float32"],
    "HalfStorage": DTYPES["float16"],
    "BFloat16Storage": DTYPES["bfloat16"],
    "LongStorage": DTYPES["int64"],
    "IntStorage": DTYPES["int32"],
    "ShortStorage": DTYPES["int16"],
    "CharStorage": DTYPES["int8"],
    "ByteStorage": DTYPES["uint8"],
    "BoolStorage": DTYPES["bool"],
    "ComplexFloatStorage": DTYPES["complex64"],
    "ComplexDoubleStorage": DTYPES["complex128"],
}
UNTYPED = "torch.storage.UntypedStorage"

# Every dtype that torch has a name for; tconv reads tensors of those that it has as well.
TORCH_DTYPES: frozenset[str] = frozenset(
    (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
        *("qint8", "quint8", "qint32", "quint4x2", "quint2x4"),
        *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
        *(f"{sign}{bits}" for sign in ("int", "uint") for bits in range(1, 8)),
    )
)
