"""The zip archive that a checkpoint or a TorchScript program is: its members in the one folder that all are in."""

from __future__ import annotations

import zlib
from collections import Counter
from io import RawIOBase

from tconv.errors import TconvError
from tconv.formats.raw import take
from tconv.formats.torch.objects import damaged
from tconv.formats.unzip import Entry, entries, surplus

# Bytes of a description or of code that are read: of what is stored, as it may be a hole in the file; of what is to be
# unpacked, some more for each of its packed bytes than any that people wrote has had.
MAX_STORED = 1 << 31
MAX_DEFLATED = 100_000_000
_ANY, _FOR_EACH = 1 << 24, 64

_OTHERS = {
    "model.json": (
        "a TorchScript archive of PyTorch before 1.4",
        "where you trust it, torch.save(torch.jit.load(file).state_dict(), …)",
    ),
    ".data/extern_modules": (
        "an archive of torch.package, which holds code and objects of any kind",
        "where you trust it, load it with PyTorch and torch.save(model.state_dict(), …)",
    ),
    "archive_format": (
        "a program of torch.export, and not a checkpoint",
        "where you trust it, torch.save(torch.export.load(file).state_dict, …)",
    ),
}


class Archive:
    """The members by their names in the folder. ``notes``: what the user should hear of the archive itself."""

    def __init__(self, file: RawIOBase) -> None:
        self._file = file
        found = entries(file)
        names = Counter(entry.name for entry in found)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise TconvError(f"its zip archive has two members named {twice[0]!r}")
        self._members = {entry.name: entry for entry in found}
        self._folder = self._find_folder()
        more = surplus(file)
        self.notes = (f"the {more:,} bytes after the end of its zip archive are ignored",) if more else ()

    def _find_folder(self) -> str:
        """It is called as the file was when it was saved, or "archive"."""
        pickles = [n for n in self._members if n.count("/") == 1 and n.endswith("/data.pkl")]
        if len(pickles) == 1:
            return pickles[0].removesuffix("data.pkl")
        for tail, (what, remedy) in _OTHERS.items():
            if any(name.partition("/")[2] == tail for name in self._members):
                raise TconvError(what, remedy=remedy)
        raise damaged("a zip archive, but not of a checkpoint: it has no data.pkl in its one folder")

    def has(self, name: str) -> bool:
        return self._folder + name in self._members

    def member(self, name: str) -> Entry:
        found = self._members.get(self._folder + name)
        if found is None:
            raise damaged(f"its archive has no {name!r}, which its pickle refers to")
        found.check()
        return found

    def content(self, name: str) -> bytes:
        """All of a small member, compared with its checksum; 0 stands for none, which torch.save can be told."""
        found = self.member(name)
        packed = min(MAX_DEFLATED, _ANY + _FOR_EACH * found.compressed)
        most = packed if found.deflated else MAX_STORED
        if found.size > most:
            how = "unpacks to" if found.deflated else "has"
            raise TconvError(f"its {name!r} {how} {found.size:,} bytes, and no more than {most:,} are read")
        data = take(found.content(self._file), found.size)
        if found.crc and zlib.crc32(data) != found.crc:
            raise damaged(f"the bytes of its {name!r} are not those that were written (bad CRC-32)")
        return data

    def big_endian(self) -> bool:
        order = self.content("byteorder") if self.has("byteorder") else b"little"
        if order not in (b"little", b"big"):
            raise damaged("its byteorder is neither little nor big")
        return order == b"big"
