"""The layout of checkpoints since torch 1.6: a zip archive of a pickle and one member for each storage."""

from __future__ import annotations

import io
from io import RawIOBase
from pathlib import Path

from tconv.formats.deflated import Cursor
from tconv.formats.stamp import stamp
from tconv.formats.torch import script
from tconv.formats.torch.archive import Archive
from tconv.formats.torch.storage import Checkpoint, Place, Storages
from tconv.formats.torch.unpickle import Unpickler

_UNPACKED = 4  # how many bytes one of a compressed description counts for: they differ less than they are many


def load(path: Path, file: RawIOBase) -> Checkpoint:
    """What ``file`` at ``path`` holds, without the bytes of its storages: of a TorchScript program its state dict.

    Raises ``TconvError`` for broken archives. The checksums of stored storages are not compared, those of descriptions
    are: torch.save can be told not to compute them, and torch.load compares none.
    """
    seen = stamp(file)
    archive = Archive(file)
    storages = Storages()
    data = archive.content("data.pkl")
    program = archive.has("constants.pkl")
    find = {"find": script.find_global} if program else {}
    paid = min(len(data), _UNPACKED * archive.member("data.pkl").compressed)
    value = Unpickler(io.BytesIO(data), len(data), storages.load, **find, paid=paid).load()
    members = {key: archive.member(f"data/{key}") for key in storages.found}
    places = {key: Place(m.start, m.size, Cursor(path, m, seen) if m.deflated else None) for key, m in members.items()}
    notes = archive.notes
    if program:
        value, note = script.state_dict(value, archive)
        notes = (*notes, note)
    return Checkpoint(value, len(data), places, archive.big_endian(), notes, seen)
