"""NumPy's .npy: one array behind a header that is a Python literal, which is parsed and never run."""

from __future__ import annotations

import ast
import io
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from tconv.dtypes import DTYPES, DType
from tconv.errors import NotTensor, TconvError
from tconv.formats.flat import check_dtypes, left_out
from tconv.formats.order import untold
from tconv.formats.positional import PositionalWriter
from tconv.formats.raw import RawSource, check_length, checked_bytes, file_size, opened, take, truncated
from tconv.formats.stamp import Stamp, stamp
from tconv.tensor import Extra, Range, Spec, Stream, Tensor
from tconv.writer import ReadOptions

MAGIC = b"\x93NUMPY"
MAX_HEADER = 1 << 20  # bytes, padding and all
MAX_LITERAL = 10_000  # characters, NumPy's own limit: beyond it Python's parser is no longer safe
NAMEABLE = frozenset(d.name for d in DTYPES.values() if not d.is_extension)
_BY_CODE = {DTYPES[name].numpy.str[1:]: DTYPES[name] for name in NAMEABLE}
_RANGES: dict[str, Range] = {"bool": (0, 1), "uint8": (0, 255), "uint16": (0, 65535)}


@dataclass(frozen=True, slots=True)
class Layout:
    """What a header says. ``start``: its own size in bytes; ``nbytes``: that of the elements after it."""

    dtype: DType
    shape: tuple[int, ...]
    fortran: bool
    swap: bool
    start: int
    nbytes: int

    @property
    def strides(self) -> tuple[int, ...] | None:
        """In elements; None where C order and Fortran order are the same."""
        if not self.fortran or sum(n > 1 for n in self.shape) < 2:
            return None
        return tuple(math.prod(self.shape[:i]) for i in range(len(self.shape)))

    def spec(self, name: str) -> Spec:
        return Spec(name, self.dtype, self.shape, range=_RANGES.get(self.dtype.name))

    def source(self, path: Path, at: int = 0, seen: Stamp | None = None) -> RawSource:
        """Its elements, where the header is at byte ``at`` of the file."""
        return RawSource(path, self.dtype, self.shape, at + self.start, self.swap, self.strides, seen)


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """The array, lazily; ``TconvError`` for what is no tensor (objects, fields, text, dates …) or not a whole file.

    Bytes after the array are refused: a shape that lost a digit, or further arrays, would go unnoticed.
    """
    with opened(path) as file:
        seen, size = stamp(file), file_size(file)
        layout = parse(file, size)
        check_length(layout.start + layout.nbytes, size)
    return Stream((Tensor(layout.spec(name), layout.source(path, seen=seen)),), Extra("data"))


def parse(stream: RawIOBase, size: int) -> Layout:
    """What the header at the start of ``stream``, which has ``size`` bytes, says of a tensor. Raises ``TconvError``."""
    found = header_of(stream, size)
    dtype, swap = _element_type(found.descr)
    return Layout(dtype, found.shape, found.fortran, swap, found.start, checked_bytes(found.shape, dtype))


class Header(NamedTuple):
    """As it is written, of elements of any kind. ``start``: its own size in bytes."""

    descr: Any
    shape: tuple[int, ...]
    fortran: bool
    start: int


def header_of(stream: RawIOBase, size: int) -> Header:
    """The header at the start of ``stream``, which has ``size`` bytes; format versions 1.0, 2.0 and 3.0.

    Raises ``TconvError``. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    head = take(stream, 8)
    if not head.startswith(MAGIC[: len(head)]):
        raise TconvError("not an .npy file: it starts otherwise")
    if len(head) < 8:
        raise truncated(8, size)
    version = head[6], head[7]
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise TconvError(f"an .npy file of version {version[0]}.{version[1]}; tconv reads 1.0, 2.0 and 3.0")
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(take(stream, width), "little")
    start = 8 + width + length
    if start > size:
        raise truncated(start, size)
    if length > MAX_HEADER:
        raise TconvError(f"a header of {length:,} bytes, and no array needs more than {MAX_HEADER:,}")
    try:
        text = take(stream, length).decode("utf8" if version == (3, 0) else "latin1")
    except UnicodeDecodeError as problem:
        raise TconvError("a broken header: not UTF-8") from problem
    fields = _literal(text.strip())
    descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if not isinstance(fortran, bool):
        raise TconvError("a broken header: fortran_order is neither True nor False")
    if not isinstance(shape, tuple) or not all(type(n) is int for n in shape):
        raise TconvError("a broken header: the shape is not a tuple of integers")
    return Header(descr, shape, fortran, start)


def _literal(text: str) -> dict[str, Any]:
    """The dictionary that a header is, with just the keys that it must have."""
    if len(text) > MAX_LITERAL:
        raise TconvError(f"a header of {len(text):,} characters, too large to be parsed safely")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)  # it is nobody's code
            try:
                value = ast.literal_eval(text)
            except SyntaxError:
                value = ast.literal_eval(re.sub(r"(?<=\d)L\b", "", text))  # Python 2 wrote long integers so
    except (SyntaxError, SyntaxWarning, ValueError, TypeError, MemoryError, RecursionError) as problem:
        raise TconvError("a broken header: not the literal of a dictionary") from problem
    if not isinstance(value, dict) or value.keys() != {"descr", "fortran_order", "shape"}:
        raise TconvError("a broken header: it must have descr, fortran_order and shape, and nothing else")
    return value


def _element_type(descr: object) -> tuple[DType, bool]:
    """The dtype, and whether its bytes are to be swapped."""
    if isinstance(descr, list):
        _refuse_fields(descr)
    found = re.fullmatch(r"([<>=|]?)([A-Za-z?])(\d{0,9})(\[.{1,20}\])?", descr) if isinstance(descr, str) else None
    if found is None:
        raise TconvError(f"an unknown dtype: {_short(descr)}")
    order, kind, size, _ = found.groups()
    code = "b1" if kind == "?" else kind + size
    if code not in _BY_CODE:
        raise _no_tensor(kind, _short(descr))
    dtype = _BY_CODE[code]
    return dtype, np.dtype(order + code) != dtype.numpy


def _no_tensor(kind: str, descr: str) -> TconvError:
    """Why an array of that kind is refused, and what to do about it."""
    if kind == "O":
        return NotTensor(
            "the array holds Python objects (dtype object): reading it would need pickle, which executes code",
            remedy="save its numbers as plain arrays",
        )
    if kind in "USa":
        return NotTensor(f"an array of text (dtype {descr}) is no tensor", remedy="save it as numbers")
    if kind in "Mm":
        return NotTensor(f"an array of dates or times (dtype {descr}) is no tensor", remedy="save its .view('int64')")
    if kind == "V":
        return NotTensor(
            f"the elements are bytes of unknown meaning (dtype {descr}), as when NumPy saves bfloat16 or float8",
            remedy="save it as float32, or as .safetensors",
        )
    if kind in "fc":
        return NotTensor(
            f"a float of a size that tensors do not have (dtype {descr}, as float128)",
            remedy="save it as float64 or complex128",
        )
    return TconvError(f"an unknown dtype: {descr}")


def _refuse_fields(descr: Sequence[object]) -> NoReturn:
    names = [f[0][-1] if isinstance(f[0], tuple) and f[0] else f[0] for f in descr if isinstance(f, tuple) and f]
    named = [n for n in names if n != ""]  # a field without a name is padding
    shown = ", ".join(n if isinstance(n, str) and n.isprintable() else repr(n) for n in named)
    raise NotTensor(
        f"a structured array with the fields {shown[:2000]} is no tensor",
        remedy="save each field as an array of its own, in an .npz",
    )


def _short(descr: object) -> str:
    text = repr(descr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def header(spec: Spec) -> bytes:
    """The header that ``numpy.save`` writes: version 1.0, which holds any shape, padded to a multiple of 64 bytes."""
    text = io.BytesIO()
    fields = {"descr": spec.dtype.numpy.str, "fortran_order": False, "shape": spec.shape}
    np.lib.format.write_array_header_1_0(text, fields)
    return text.getvalue()


class NpyWriter(PositionalWriter):
    """Writes one array as ``numpy.save`` would, byte for byte; its name, metadata and structure are left out."""

    single: ClassVar[bool] = True

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        if len(specs) != 1:
            raise NotTensor(
                f"an .npy file holds one array, and there are {len(specs)}",
                remedy="write .npz or .safetensors, or --stack",
            )
        check_dtypes(specs, NAMEABLE, ".npy")
        self.specs = specs
        self._header = header(specs[0])
        self.offsets = [len(self._header)]
        self.size = len(self._header) + specs[0].nbytes
        self.left_out = left_out(extra, texts=False) + tuple(f"{text} (an .npz says it)" for text in untold(specs))

    def header(self) -> list[tuple[int, bytes]]:
        return [(0, self._header)]
