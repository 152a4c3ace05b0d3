"""What files were when they were opened, so that nobody takes half of its values from another file of that name.

A header is read first and values much later. What replaces the file meanwhile, as a training run does with its latest
checkpoint, may have the same layout, and then nothing else would tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tconv import registry
from tconv.errors import TconvError, raise_all
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.inputs import Input
    from tconv.tensor import Tensor


class Stamp(NamedTuple):
    """Which file it is, and in which state: time in ns."""

    device: int
    inode: int
    size: int
    written: int


Stamps = Mapping[Path, Stamp]


def stamps(inputs: Iterable[Input]) -> dict[Path, Stamp]:
    """Of the files that are to be read, the shards of an index too. To be taken before their headers are read, which
    tells what is wrong with those that are not here.
    """
    found = ((path, _stamp(path)) for one in inputs for path in (one.path, *_shards(one)))
    return {path: stamp for path, stamp in found if stamp is not None}


def refuse_changed(known: Stamps, paths: Iterable[Path] | None = None) -> None:
    """Raise ``TconvError`` if any file, or any of ``paths``, is not what it was."""
    asked = known if paths is None else [path for path in paths if path in known]
    raise_all([_changed(path) for path in asked if _stamp(path) != known[path]])


def paths_of(tensor: Tensor) -> set[Path]:
    """The files that its values are in."""
    source = tensor.source
    return set().union(*map(paths_of, source.parts)) if isinstance(source, Parts) else {source.path}


def _changed(path: Path) -> TconvError:
    return TconvError(
        "changed while it was read, so that values of two files may be mixed",
        remedy="start again when nothing writes to it any more",
        file=path,
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _shards(one: Input) -> list[Path]:
    if one.format.name != "index":
        return []
    try:
        names = registry.load("tconv.formats.shards:files")(one.path)
    except TconvError:
        return []
    return [one.path.with_name(name) for name in names]
