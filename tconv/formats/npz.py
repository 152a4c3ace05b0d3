"""NumPy's .npz: a zip archive of .npy members, stored or deflated."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import NotTensor, TconvError, raise_all
from tconv.formats import npy, order
from tconv.formats.crc import PiecewiseCrc32
from tconv.formats.deflated import Cursor, DeflatedSource, corrupt
from tconv.formats.flat import check_dtypes, check_names, left_out
from tconv.formats.positional import PositionalWriter
from tconv.formats.raw import CHUNK, Around, check_length, fill, opened, take, to_native
from tconv.formats.stamp import Stamp, stamp
from tconv.formats.texts import LISTS, read_texts, text_array
from tconv.formats.unzip import Entry, entries, surplus
from tconv.formats.zip import directory, place
from tconv.tensor import Extra, Spec, Stream, Tensor
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array


_ORDERS = [(word,) for word in order.ATTRS]


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """Its arrays, lazily, under the names that ``numpy.load`` gives them. Members that hold no array are noted as
    ignored. What is read is checked against the checksums. The lists of texts that tconv puts beside labels ride along;
    other text is no tensor.
    """
    tensors, ignored, problems, others = list[Tensor](), list[str](), list[TconvError](), list[NotTensor]()
    texts, said = dict[str, tuple[str, ...]](), tuple[str, ...]()
    with opened(path) as file:
        seen = stamp(file)
        members = entries(file)
        more = surplus(file)
        _check_unique(members)
        for member in members:
            try:
                found = _tensor(path, file, member, seen)
            except NotTensor as other:
                if _name(member) in LISTS and (listed := read_texts(file, member)) is not None:
                    texts[_name(member)] = listed
                    continue
                if _name(member) == order.NAME and (listed := read_texts(file, member)) in _ORDERS:
                    said = listed
                    continue
                other.at(file=path, tensor=_name(member))
                others.append(other)
                continue
            except TconvError as problem:
                problems.append(problem.at(file=path, tensor=_name(member)))
                continue
            if found is None:
                ignored.append(member.name)
            else:
                tensors.append(found)
    raise_all(problems)
    notes = [f"{path}: ignored {_listed(ignored)}, which hold no array"] if ignored else []
    if more:
        notes.append(f"{path}: the {more:,} bytes after the end of the archive are ignored")
    known = _labelled(tensors, texts)
    for word in said or ():
        known = order.known(known, word)
    return Stream(known, Extra("data", texts=texts), tuple(notes), tuple(others))


def _labelled(tensors: Sequence[Tensor], texts: Mapping[str, tuple[str, ...]]) -> tuple[Tensor, ...]:
    """With the array known as labels that tconv has written: one by that name, of as many as there are paths."""

    def known(spec: Spec) -> Spec:
        labels = spec.name == "labels" and "paths" in texts and spec.shape[:1] == (len(texts["paths"]),)
        return replace(spec, attrs={"label": True}, range=None) if labels else spec

    return tuple(replace(t, spec=known(t.spec)) for t in tensors)


def _name(member: Entry) -> str:
    return member.name.removesuffix(".npy")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _check_unique(members: Sequence[Entry]) -> None:
    twice = [name for name, count in Counter(map(_name, members)).items() if count > 1]
    raise_all([TconvError("two members have this name (apart from the suffix .npy)", tensor=name) for name in twice])


def _tensor(path: Path, file: RawIOBase, member: Entry, seen: Stamp) -> Tensor | None:
    """The array of a member, or None if it is none."""
    if member.name.endswith("/"):
        return None
    member.check()
    if not member.name.endswith(".npy") and take(member.content(file), len(npy.MAGIC)) != npy.MAGIC:
        return None
    layout = npy.parse(member.content(file), member.size)
    check_length(layout.start + layout.nbytes, member.size)
    spec = layout.spec(_name(member))
    if member.deflated:
        order = None if layout.strides is None else tuple(reversed(range(len(layout.shape))))
        cursor = Cursor(path, member, seen)
        return Tensor(spec, DeflatedSource(layout.dtype, layout.shape, cursor, layout.start, layout.swap, order))
    checksum = PiecewiseCrc32(member.size)
    checksum.add(0, take(member.content(file), layout.start))
    return Tensor(spec, StoredSource(layout.source(path, member.start, seen), member, checksum))


@dataclass(frozen=True, slots=True)
class StoredSource(Around):
    """The elements of a stored member.

    The checksum grows with what is read, and is compared once all has been; where elements are strided, that is
    before the first is given out.
    """

    member: Entry
    checksum: PiecewiseCrc32

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        if self.elements.strides is not None:
            self._check_all()
            return self.elements.read(lo, hi, out)
        if out is None:
            out = np.empty(hi - lo, self.dtype.numpy)
        with opened(self.path, self.seen) as file:
            self._fill(file, self.elements.offset + lo * self.dtype.itemsize, out)
        to_native(out, self.elements.swap)
        return out

    def _check_all(self) -> None:
        if self.checksum.total == self.member.crc:
            return
        end = self.member.start + self.member.size
        with opened(self.path, self.seen) as file:
            for offset in range(self.elements.offset, end, CHUNK):
                self._fill(file, offset, np.empty(min(CHUNK, end - offset), np.uint8))

    def _fill(self, file: RawIOBase, offset: int, out: Array) -> None:
        fill(file, offset, out)
        if self.checksum.total is None:
            self.checksum.add(offset - self.member.start, out.view(np.uint8).data)
        if self.checksum.total not in (None, self.member.crc):
            raise corrupt()


class NpzWriter(PositionalWriter):
    """Writes an archive of stored members that ``numpy.load`` reads and maps: their elements are 64-byte aligned.

    Lists of texts are arrays of text, and so is ``channels``, of BGR or CMYK. Metadata and structure are left out.
    Refuses dtypes that NumPy lacks and names that it could not look up.
    """

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        check_dtypes(specs, npy.NAMEABLE, ".npz")
        check_names(specs)
        texts = dict(extra.texts)
        if said := order.common(specs, texts):
            texts[order.NAME] = (said,)
        _check_lookup([*(spec.name for spec in specs), *texts])
        self.specs = specs
        self._headers = [npy.header(spec) for spec in specs]
        sizes = [len(h) + spec.nbytes for h, spec in zip(self._headers, specs, strict=True)]
        self._checksums = [PiecewiseCrc32(size) for size in sizes]
        for checksum, header in zip(self._checksums, self._headers, strict=True):
            checksum.add(0, header)
        self._texts = [text_array(listed) for listed in texts.values()]
        names = [*(spec.name for spec in specs), *texts]
        sizes += [len(data) for data in self._texts]
        self._members = place((f"{name}.npy", size) for name, size in zip(names, sizes, strict=True))
        self.offsets = [m.start + len(h) for m, h in zip(self._members, self._headers, strict=False)]
        start, end = directory(self._members, [0] * len(self._members))
        self.size = start + len(end)
        self.left_out = left_out(extra) + (() if said else order.untold(specs))

    def header(self) -> list[tuple[int, bytes]]:
        records = zip(self._members, [*self._headers, *self._texts], strict=True)
        return [item for m, h in records for item in ((m.header, m.local_header()), (m.start, h))]

    def write(self, i: int, lo: int, array: Array) -> None:
        before = len(self._headers[i]) + lo * self.specs[i].dtype.itemsize
        flat = np.ascontiguousarray(array).reshape(-1)
        self._checksums[i].add(before, flat.view(np.uint8).data)
        super().write(i, lo, flat)

    def trailer(self) -> list[tuple[int, bytes]]:
        totals = [checksum.total for checksum in self._checksums]
        known = [total for total in totals if total is not None]
        assert len(known) == len(totals), "a tensor was not written whole"
        known += [zlib.crc32(data) for data in self._texts]
        patches = [(m.crc_offset, struct.pack("<I", crc)) for m, crc in zip(self._members, known, strict=True)]
        return [*patches, directory(self._members, known)]


def _check_lookup(names: Sequence[str]) -> None:
    """Refuse names that ``numpy.load`` would take for others, or that zip cannot hold."""
    every = set(names)
    problems = []
    for name in names:
        if f"{name}.npy" in every:
            problems.append(TconvError(f"an .npz cannot hold it beside {name + '.npy'!r}", tensor=name))
        if "\0" in name or len(name.encode()) + 4 > 0xFFFF:
            reason = "the name holds a NUL character" if "\0" in name else "the name is longer than 65,531 bytes"
            problems.append(TconvError(f"{reason}, which an .npz cannot hold", tensor=name[:60]))
    raise_all(problems)
