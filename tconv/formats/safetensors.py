"""The safetensors format: a JSON header that says of each tensor what it is and where, and the bytes.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Mapping, Sequence
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tconv.dtypes import DTYPES, DType
from tconv.errors import NotTensor, TconvError, raise_all
from tconv.formats import mark, packed, strict_json, ties
from tconv.formats.flat import check_dtypes, check_names, left_out
from tconv.formats.positional import PositionalWriter, pwrite
from tconv.formats.raw import MAX_BYTES, RawSource, check_length, checked_bytes, file_size, opened, take, truncated
from tconv.formats.stamp import Stamp, stamp
from tconv.tensor import Extra, Source, Spec, Stream, Tensor
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array

MAX_HEADER = 100_000_000  # bytes, the library's own limit
METADATA = "__metadata__"

# In the order of the library, alignment growing: files are laid out by it, from the last to the first.
_NAMES = {
    "BOOL": "bool",
    "F4": "float4_e2m1fn",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_DTYPES = {code: DTYPES[name] for code, name in _NAMES.items()}
_CODES = {name: code for code, name in _NAMES.items()}
_RANK = {code: rank for rank, code in enumerate(_NAMES)}
_UNREAD = {"F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8}  # bits of the dtypes that only the library reads


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """Its tensors, lazily, in the order of the header, then those that the metadata tie to one of them; its metadata.

    They are weights, unless the file bears tconv's mark of data. Everything that the header says is checked: names
    are unique, dtypes known, sizes those of the shapes; the tensors fill the file without a hole or an overlap.
    Tensors of a dtype that tconv does not read are among the stream's others.
    """
    with opened(path) as file:
        seen, size = stamp(file), file_size(file)
        header, start = _header(file, size)
        metadata = _metadata(header.pop(METADATA, None))
        entries = _entries(header)
        check_length(start + _end(entries), size)
        halves, metadata = packed.taken(metadata)
        sources = {e.name: _source(path, seen, start, e, e.dtype, halves.get(e.name)) for e in entries if e.dtype}
        _refuse_unknown(halves, sources)
        specs = [Spec(name, source.dtype, source.shape) for name, source in sources.items()]
        check_names(specs)
    tied = ties.found(metadata, set(sources), header)
    plain = {key: text for key, text in metadata.items() if key not in tied}
    found, notes = mark.take_off(plain, specs)
    own = {spec.name: Tensor(spec, sources[spec.name]) for spec in found.specs}
    tensors = (*own.values(), *(ties.tied(name, own[base]) for name, base in tied.items()))
    extra = Extra(found.kind, metadata=found.metadata, texts=found.texts)
    others = tuple(_unread(path, entry) for entry in entries if not entry.dtype)
    return Stream(tensors, extra, tuple(f"{path}: {n}" for n in (*notes, *ties.told(tied))), others)


def _source(path: Path, seen: Stamp, start: int, entry: _Entry, dtype: DType, truth: packed.Packed | None) -> Source:
    """Where the elements of an entry are; ``truth`` is what its bytes are if they are packed."""
    if packed.is_packed(dtype):
        if truth not in (None, (dtype, entry.shape)):
            raise TconvError(
                f"a broken {packed.KEY}: it says {truth.dtype} {truth.shape}, and the header {dtype} {entry.shape}",
                tensor=entry.name,
            )
        length = entry.end - entry.start
        bytes_ = RawSource(path, DTYPES["uint8"], (length,), start + entry.start, seen=seen)
        return packed.HalfBytes(bytes_, dtype, entry.shape)
    source = RawSource(path, dtype, entry.shape, start + entry.start, seen=seen)
    if truth is None:
        return source
    try:
        return packed.unpacked(source, truth)
    except TconvError as problem:
        raise problem.at(tensor=entry.name) from None


def _refuse_unknown(halves: Collection[str], names: Collection[str]) -> None:
    for name in halves:
        if name not in names:
            raise TconvError(f"a broken {packed.KEY}: there is no such tensor", tensor=name)


def _unread(path: Path, entry: _Entry) -> NotTensor:
    return NotTensor(
        f"a tensor of dtype {entry.code}, which tconv cannot read",
        remedy="save it in another dtype",
        file=path,
        tensor=entry.name,
    )


def _header(file: RawIOBase, size: int) -> tuple[dict[str, Any], int]:
    """The header, and the offset of the first byte after it."""
    if size < 8:
        raise truncated(8, size)
    length = int.from_bytes(take(file, 8), "little")
    if length > MAX_HEADER:
        raise TconvError(f"a header of {length:,} bytes, and at most {MAX_HEADER:,} are allowed")
    if 8 + length > size:
        raise truncated(8 + length, size)
    header = strict_json.parse(take(file, length), "a broken header")
    return header, 8 + length


def _broken(how: str) -> TconvError:
    return TconvError(f"a broken header: {how}")


def _metadata(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise _broken(f"{METADATA} must be a map of strings")
    return value


class _Entry(NamedTuple):
    """A tensor as the header describes it: bytes [start, end) after it. ``dtype`` is None if tconv does not read it."""

    name: str
    code: str
    dtype: DType | None
    shape: tuple[int, ...]
    start: int
    end: int


def _entries(header: Mapping[str, Any]) -> list[_Entry]:
    entries, problems = list[_Entry](), list[TconvError]()
    for name, fields in header.items():
        try:
            entries.append(_entry(name, fields))
        except TconvError as problem:
            problems.append(problem.at(tensor=name))
    raise_all(problems)
    return entries


def _entry(name: str, fields: object) -> _Entry:
    if not isinstance(fields, dict) or not fields.keys() >= {"dtype", "shape", "data_offsets"}:
        raise _broken("dtype, shape or data_offsets is missing")
    code, shape, span = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(code, str) or not (code in _DTYPES or code in _UNREAD):
        raise TconvError(f"an unknown dtype: {str(code)[:40]}")
    if not _naturals(shape):
        raise _broken("the shape is not a list of sizes")
    if not _naturals(span) or len(span) != 2 or span[0] > span[1]:
        raise _broken("data_offsets are not a beginning and an end")
    dtype = _DTYPES.get(code)
    checked_bytes(tuple(shape), dtype or DTYPES["uint8"])
    bits = dtype.bits if dtype else _UNREAD[code]
    nbytes, rest = divmod(math.prod(shape) * bits, 8)
    if rest:
        raise _broken(f"its elements of {bits} bits do not fill its last byte")
    if span[1] - span[0] != nbytes:
        raise _broken(f"its shape takes {nbytes:,} bytes and its data_offsets leave {span[1] - span[0]:,}")
    return _Entry(name, code, dtype, tuple(shape), *span)


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n <= MAX_BYTES for n in value)


def _end(entries: Sequence[_Entry]) -> int:
    """Where the last tensor ends; each must begin where another one ends."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        if entry.start != end:
            how = "bytes between it and the tensor before" if entry.start > end else "bytes shared with another tensor"
            raise TconvError(f"a broken header: {abs(entry.start - end):,} {how}", tensor=entry.name)
        end = entry.end
    return end


class SafetensorsWriter(PositionalWriter):
    """Lays tensors out as the library does, byte for byte: by dtype, then by name, so that each is aligned.

    4-bit elements are packed: float4 as ``F4`` if its rows take whole bytes, as PyTorch wants them, the rest as U8.
    Weights get the metadata ``format: pt`` where there is no ``format``: Hugging Face's transformers refuse files
    without. Data get tconv's mark, and their lists of texts are metadata in JSON. Tensors with the attribute "tied" are
    written into the metadata, by name only.
    """

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        check_dtypes(specs, [*_CODES, "int4", "uint4"], ".safetensors")
        check_names(specs)
        for spec in specs:
            if spec.name == METADATA:
                raise TconvError("the name is the format's own, of its metadata", tensor=spec.name)
        self.specs = specs
        own = [spec for spec in specs if not ties.is_tied(spec)]
        metadata = mark.put_on(extra, own) | ties.to_metadata(specs) | packed.noted([s for s in own if _hidden(s)])
        self._header, starts = _planned(own, metadata)
        self._packers = {i: packed.Packer(s.size) for i, s in enumerate(specs) if packed.is_packed(s.dtype)}
        at = {spec.name: len(self._header) + start for spec, start in zip(own, starts, strict=True)}
        self.offsets = [at[spec.alias_of if ties.is_tied(spec) and spec.alias_of else spec.name] for spec in specs]
        self.size = len(self._header) + sum(spec.nbytes for spec in own)
        self.left_out = left_out(extra, metadata=True)

    def stored(self, i: int) -> bool:
        """Whether tensor ``i`` is to be written; the others are tied to one that is."""
        return not ties.is_tied(self.specs[i])

    def header(self) -> list[tuple[int, bytes]]:
        return [(0, self._header)]

    def write(self, i: int, lo: int, array: Array) -> None:
        packer = self._packers.get(i)
        if packer is None:
            super().write(i, lo, array)
            return
        at, data = packer.pack(lo, array)
        pwrite(self._fd, memoryview(np.ascontiguousarray(data).data), self.offsets[i] + at)


def _hidden(spec: Spec) -> bool:
    """Whether it goes as bytes that only the metadata tell the truth about. PyTorch takes F4 whose rows are bytes."""
    named = spec.dtype.name in _CODES and spec.shape and spec.shape[-1] % 2 == 0
    return packed.is_packed(spec.dtype) and not named


def _code(spec: Spec) -> str:
    return "U8" if _hidden(spec) else _CODES[spec.dtype.name]


def _planned(specs: Sequence[Spec], metadata: Mapping[str, str]) -> tuple[bytes, list[int]]:
    """The header with the length before it, and where after it each tensor starts."""
    starts, end = [0] * len(specs), 0
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    for i in sorted(range(len(specs)), key=lambda i: (-_RANK[_code(specs[i])], specs[i].name)):
        spec = specs[i]
        starts[i], end = end, end + spec.nbytes
        header[spec.name] = {
            "dtype": _code(spec),
            "shape": [spec.nbytes] if _hidden(spec) else list(spec.shape),
            "data_offsets": [starts[i], end],
        }
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as problem:  # the names have been checked
        raise TconvError("the metadata are not valid Unicode text") from problem
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise TconvError(f"the header takes {len(text):,} bytes, and .safetensors allows {MAX_HEADER:,}")
    return struct.pack("<Q", len(text)) + text, starts
