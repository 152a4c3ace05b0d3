"""The layout of checkpoints since torch 1.6: a zip archive of a pickle and one member for each storage."""

from __future__ import annotations

import io
from collections import Counter
from io import RawIOBase
from zipfile import ZIP_STORED

from tconv.errors import TconvError
from tconv.formats.raw import take
from tconv.formats.torch.objects import damaged
from tconv.formats.torch.storage import Checkpoint, Storages
from tconv.formats.torch.unpickle import Unpickler
from tconv.formats.unzip import Entry, entries


def load(file: RawIOBase) -> Checkpoint:
    """What ``file`` holds, without the bytes of its storages.

    Raises ``TconvError`` for broken archives, TorchScript programs and compressed members. Checksums are not
    compared: torch.save can be told not to compute them.
    """
    archive = _Archive(file)
    storages = Storages()
    data = archive.content("data.pkl")
    value = Unpickler(io.BytesIO(data), len(data), storages.load).load()
    members = {key: archive.member(f"data/{key}") for key in storages.found}
    return Checkpoint(value, len(data), {key: (m.start, m.size) for key, m in members.items()}, archive.big_endian())


class _Archive:
    """The members of a checkpoint, by their names in the one folder that all of them are in."""

    def __init__(self, file: RawIOBase) -> None:
        self._file = file
        found = entries(file)
        names = Counter(entry.name for entry in found)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise TconvError(f"its zip archive has two members named {twice[0]!r}")
        self._members = {entry.name: entry for entry in found}
        self._folder = self._find_folder()

    def _find_folder(self) -> str:
        """It is called as the file was when it was saved, or "archive"."""
        pickles = [n for n in self._members if n.count("/") == 1 and n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise damaged("a zip archive, but not of a checkpoint: it has no data.pkl in its one folder")
        folder = pickles[0].removesuffix("data.pkl")
        if folder + "constants.pkl" in self._members:
            raise TconvError(
                "a TorchScript archive, which is a program and not a checkpoint",
                remedy="where you trust it, torch.save(torch.jit.load(file).state_dict(), …)",
            )
        return folder

    def member(self, name: str) -> Entry:
        found = self._members.get(self._folder + name)
        if found is None:
            raise damaged(f"its archive has no {name!r}, which its pickle refers to")
        if found.method != ZIP_STORED and not found.encrypted:
            raise TconvError(
                f"its member {name!r} is compressed, which torch.save never does",
                remedy="unpack the archive, and zip its folder with zip -0 -r",
            )
        found.check()
        return found

    def content(self, name: str) -> bytes:
        found = self.member(name)
        return take(found.content(self._file), found.size)

    def big_endian(self) -> bool:
        order = self.content("byteorder") if self._folder + "byteorder" in self._members else b"little"
        if order not in (b"little", b"big"):
            raise damaged("its byteorder is neither little nor big")
        return order == b"big"
