"""The layout of checkpoints before torch 1.6: pickles one after the other, then the bytes of the storages."""

from __future__ import annotations

import io
import struct
from io import RawIOBase
from typing import Any, BinaryIO

from tconv.formats.raw import file_size, truncated
from tconv.formats.stamp import stamp
from tconv.formats.torch.objects import Storage, damaged
from tconv.formats.torch.storage import Checkpoint, Place, Storages
from tconv.formats.torch.unpickle import Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_COUNT = struct.Struct("<q")  # before each storage: its number of elements


def load(raw: RawIOBase) -> Checkpoint:
    """What the file holds, without the bytes of its storages, which are little endian whatever machine wrote them."""
    seen, size = stamp(raw), file_size(raw)
    file = io.BufferedReader(raw)
    storages = Storages()

    def next_pickle() -> Any:
        return Unpickler(file, size, storages.load).load()

    try:
        magic, protocol, _ = next_pickle(), next_pickle(), next_pickle()
        if magic != MAGIC or protocol != _PROTOCOL:
            raise damaged("it does not begin as torch.save begins a file")
        value, keys = next_pickle(), next_pickle()
        pickled = file.tell()
        places = _places(file, size, keys, storages.found)
        more = size - file.tell()
        notes = (f"the {more:,} bytes after its end are ignored",) if more else ()
        return Checkpoint(value, pickled, places, False, notes, seen)
    finally:
        file.detach()


def _places(file: BinaryIO, size: int, keys: Any, storages: dict[str, Storage]) -> dict[str, Place]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise damaged("it has no list of storages")
    if len(set(keys)) != len(keys) or set(keys) != set(storages):
        raise damaged("its list of storages is not that of its tensors")
    places = dict[str, Place]()
    for key in keys:
        header, start = file.read(_COUNT.size), file.tell()
        if len(header) < _COUNT.size:
            raise truncated(start, size)
        storage = storages[key]
        if _COUNT.unpack(header) != (storage.root_count,):
            raise damaged(f"the storage {key!r} has another size than its tensors say")
        count = storage.root_count * storage.type.itemsize
        if start + count > size:
            raise truncated(start + count, size)
        places[key] = Place(start, count)
        file.seek(start + count)
    return places
