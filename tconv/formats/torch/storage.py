"""The storages of a checkpoint: which there are, where their bytes lie, and the tensors that are views of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tconv.formats.deflated import Cursor, DeflatedSource
from tconv.formats.raw import Around, RawSource
from tconv.formats.stamp import Stamp
from tconv.formats.torch.objects import Storage, StorageType, StoredTensor, damaged, unsupported

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Source

_LIMIT = 1 << 63


class Place(NamedTuple):
    """Where the ``size`` bytes of a storage are: at offset ``start``, or what a deflated member unpacks to."""

    start: int
    size: int
    deflated: Cursor | None = None


class Checkpoint(NamedTuple):
    """What a file holds. ``places``: where each storage is; ``pickled``: the size in bytes of the description;
    ``notes``: what the user should hear; ``seen``: which state of the file it is.
    """

    value: Any
    pickled: int
    places: Mapping[str, Place]
    big_endian: bool
    notes: tuple[str, ...] = ()
    seen: Stamp | None = None


class Storages:
    """Collects the storages that a pickle refers to. ``found``: one of those under each key."""

    def __init__(self) -> None:
        self.found: dict[str, Storage] = {}

    def load(self, identity: object) -> Storage:
        """The storage of a "persistent id": ("storage", class, key, device, count) and, in the legacy layout, what
        part of it is meant: (key of the part, first, count) or None.
        """
        if not isinstance(identity, tuple) or len(identity) not in (5, 6) or _text(identity[0]) != "storage":
            raise damaged("its pickle refers to something that is no storage")
        _, kind, key, device, count, *part = identity
        if not isinstance(kind, StorageType):
            raise damaged("its pickle refers to a storage of no type")
        count = _count(count)
        first, length = _part(part[0], count) if part and part[0] is not None else (0, count)
        storage = Storage(_text(key), kind, count, _text(device), first, length)
        other = self.found.setdefault(storage.key, storage)
        alike = (kind.dtype, kind.itemsize, count) == (other.type.dtype, other.type.itemsize, other.root_count)
        if not alike and count + other.root_count > 0:  # empty ones are of no type
            raise damaged(f"the storage {storage.key!r} is described in two ways")
        return storage


def _part(part: object, whole: int) -> tuple[int, int]:
    if not isinstance(part, tuple) or len(part) != 3:
        raise damaged("its pickle refers to a part of a storage that is none")
    first, count = _count(part[1]), _count(part[2])
    if first + count > whole:
        raise damaged("its pickle refers to a part beyond the end of a storage")
    return first, count


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise damaged("its pickle refers to a storage of an impossible size")
    return value


def _text(value: object) -> str:
    """Text, which Python 2 wrote as bytes."""
    if isinstance(value, bytes):
        value = value.decode("ascii")
    if not isinstance(value, str):
        raise damaged("its pickle refers to a storage by something that is no text")
    return value


def make_source(path: Path, tensor: StoredTensor, checkpoint: Checkpoint) -> Source:
    """Where the values of ``tensor`` are. Raises ``TconvError`` if they go beyond the storage, or that beyond what
    the file holds of it.
    """
    storage, itemsize = tensor.storage, tensor.dtype.itemsize
    unit = storage.type.itemsize
    start, held, deflated = checkpoint.places[storage.key]
    if storage.root_count * unit > held:
        raise damaged(f"its storage should have {storage.root_count * unit:,} bytes and has {held:,}")
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride, strict=True))
    if 0 not in tensor.shape and (tensor.offset + last + 1) * itemsize > storage.count * unit:
        raise damaged("it reaches beyond the end of its storage")
    offset = storage.first * unit + tensor.offset * itemsize
    swap = checkpoint.big_endian != (sys.byteorder == "big")
    used = tuple(s if n > 1 else 0 for n, s in zip(tensor.shape, tensor.stride, strict=True))
    strides = None if in_c_order(tensor.shape, tensor.stride) else used
    if deflated:
        return _deflated(tensor, deflated, offset, swap, strides)
    elements = RawSource(path, tensor.dtype, tensor.shape, start + offset, swap, strides, checkpoint.seen)
    return Marked(elements, tensor.conj, tensor.neg) if tensor.conj or tensor.neg else elements


def _deflated(
    tensor: StoredTensor, cursor: Cursor, offset: int, swap: bool, strides: tuple[int, ...] | None
) -> DeflatedSource:
    """torch.save never compresses; people who unpack a checkpoint and zip it again do. Raises ``NotTensor`` for views
    that leave out or repeat elements, which lie too far apart to be decoded in order.
    """
    order = None
    if strides is not None:
        order = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
        stored = tuple(tensor.shape[axis] for axis in order)
        if not in_c_order(stored, tuple(strides[axis] for axis in order)):
            order = ()
    if order == () or tensor.conj or tensor.neg:
        raise unsupported("a view of a compressed storage", "unpack the archive, and zip its folder with zip -0 -r")
    return DeflatedSource(tensor.dtype, tensor.shape, cursor, offset, swap, order)


def in_c_order(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether the elements lie one after the other; the stride of an axis of size 1 says nothing."""
    expected = 1
    for size, step in zip(reversed(shape), reversed(stride), strict=True):
        if size != 1 and step != expected:
            return 0 in shape
        expected *= size
    return True


@dataclass(frozen=True, slots=True)
class Marked(Around):
    """Elements that torch has marked instead of changing them: to be conjugated, or negated, when they are read."""

    conj: bool
    neg: bool

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        out = self.elements.read(lo, hi, out)
        if self.conj:
            np.conjugate(out, out=out)
        if self.neg:
            np.negative(out, out=out)
        return out
