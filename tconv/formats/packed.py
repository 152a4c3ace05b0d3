"""4-bit elements, two to a byte: the first in the lower half, a last half byte 0; what no format has a name for.

Where a format names no such dtype, they are written as flat uint8, and metadata says what they are: under ``KEY``, JSON
``{"w": {"dtype": "int4", "shape": [3, 5]}}``.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tconv.dtypes import DTYPES, DType
from tconv.errors import TconvError
from tconv.formats import strict_json
from tconv.formats.raw import MAX_AXES, checked_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.formats.raw import RawSource
    from tconv.ops import Array
    from tconv.tensor import Spec

KEY = "tconv.packed"


class Packed(NamedTuple):
    """What flat bytes are in truth."""

    dtype: DType
    shape: tuple[int, ...]


def is_packed(dtype: DType) -> bool:
    """Whether its elements take half a byte in a file."""
    return dtype.bits < 8


def noted(specs: Sequence[Spec]) -> dict[str, str]:
    """The metadata that tell what those of ``specs`` are that are written as bytes."""
    fields = {spec.name: {"dtype": spec.dtype.name, "shape": list(spec.shape)} for spec in specs}
    return {KEY: json.dumps(fields, ensure_ascii=False)} if fields else {}


def taken(metadata: Mapping[str, str]) -> tuple[dict[str, Packed], dict[str, str]]:
    """What the metadata say is packed, and the rest of them. ``TconvError`` for a note that makes no sense."""
    rest = {key: value for key, value in metadata.items() if key != KEY}
    if KEY not in metadata:
        return {}, rest
    fields = strict_json.parse(metadata[KEY].encode(), f"a broken {KEY}")
    return {name: _packed(name, value) for name, value in fields.items()}, rest


def _packed(name: str, value: object) -> Packed:
    kinds = [kind.name for kind in DTYPES.values() if is_packed(kind)]
    match value:
        case {"dtype": str(dtype), "shape": list(shape)} if dtype in kinds and len(shape) <= MAX_AXES:
            if all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
                return _checked(name, Packed(DTYPES[dtype], tuple(shape)))
    raise TconvError(f"a broken {KEY}: it says neither a 4-bit dtype nor a shape", tensor=name)


def _checked(name: str, packed: Packed) -> Packed:
    """The same, if there can be such an array; an empty one too may have a shape that is too large."""
    try:
        checked_bytes(packed.shape, packed.dtype)
    except TconvError as problem:
        raise problem.at(tensor=name) from None
    return packed


def unpacked(source: RawSource, packed: Packed) -> HalfBytes:
    """The elements in ``source``, flat bytes that must be as many as they take."""
    count = packed.dtype.nbytes(math.prod(packed.shape))
    if source.dtype.name != "uint8" or math.prod(source.shape) != count:
        raise TconvError(
            f"{packed.dtype} {packed.shape} takes {count:,} bytes of uint8, and it has {source.dtype} {source.shape}"
        )
    return HalfBytes(source, packed.dtype, packed.shape)


@dataclass(frozen=True, slots=True)
class HalfBytes:
    """A ``Source`` of the 4-bit elements in ``bytes_``, uint8."""

    bytes_: RawSource
    dtype: DType
    shape: tuple[int, ...]

    @property
    def path(self) -> Path:
        return self.bytes_.path

    @property
    def seekable(self) -> bool:
        return True

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        first = lo // 2
        data = self.bytes_.read(first, max(first, (hi + 1) // 2))
        halves = np.empty(2 * data.size, np.uint8)
        np.bitwise_and(data, 15, out=halves[0::2])
        np.right_shift(data, 4, out=halves[1::2])
        found = halves[lo - 2 * first : hi - 2 * first].view(self.dtype.numpy)
        if out is None:
            return found
        np.copyto(out, found)
        return out


class Packer:
    """Packs the pieces of one tensor of ``size`` elements, in any order and from any thread: a byte that two pieces
    share is finished by the later of them.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: dict[int, int] = {}  # by the number of the byte: the half that came first, in its place
        self._lock = threading.Lock()

    def pack(self, lo: int, x: Array) -> tuple[int, Array]:
        """The bytes that elements [lo, lo + x.size) make up or finish, and the number of the first of them."""
        hi = lo + x.size
        if not x.size:
            return 0, np.empty(0, np.uint8)
        first, last = lo // 2, (hi - 1) // 2
        halves = np.zeros(2 * (last - first + 1), np.uint8)
        np.bitwise_and(x.reshape(-1).view(np.uint8), 15, out=halves[lo - 2 * first : hi - 2 * first])
        data = halves[0::2] | halves[1::2] << 4
        begin, end = first, last + 1
        if lo % 2 and not self._whole(first, data[:1]):
            begin += 1
        if hi % 2 and hi < self._size and not self._whole(last, data[-1:]):
            end -= 1
        return begin, data[begin - first : end - first]

    def _whole(self, number: int, byte: Array) -> bool:
        """Whether the other half has come before: then it is put in."""
        with self._lock:
            if number in self._waiting:
                byte |= self._waiting.pop(number)
                return True
            self._waiting[number] = int(byte[0])
            return False
