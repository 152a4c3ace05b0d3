"""A checkpoint in the folder that another is written to: whoever loads from there would find the old one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from tconv import registry
from tconv.errors import TconvError
from tconv.targets import SHARD_NAMES, Target

_SUFFIXES = tuple(suffix for form in SHARD_NAMES for suffix in registry.FORMATS[form].suffixes)


@dataclass(frozen=True)
class Superseded:
    """``head``: the file that makes it a checkpoint, its index or all of it; ``replaced``: another is written there.
    ``shards``: what that index names and nothing is written to.
    """

    target: Target
    head: Path
    replaced: bool
    shards: tuple[Path, ...]

    def refusal(self) -> TconvError:
        """Why it is in the way."""
        reason = "is of another checkpoint, which would be taken for the new one"
        remedy = "--force removes it once the new one is in place, or give another folder"
        return TconvError(reason, remedy=remedy, file=self.head)

    def note(self) -> str:
        """That it goes."""
        count = len(self.shards)
        shards = f"{count} shard{'s' * (count > 1)} that it names" if count else ""
        gone = " and ".join(filter(None, ("" if self.replaced else "it", shards)))
        return f"{self.head}: is of the checkpoint before: {gone} will be removed once the new one is in place"

    @property
    def gone(self) -> tuple[Path, ...]:
        """The files that go."""
        return self.shards if self.replaced else (self.head, *self.shards)

    def remove(self) -> None:
        """Do it. Raises ``TconvError``."""
        for path in self.gone:
            try:
                path.unlink(missing_ok=True)
            except OSError as problem:
                reason = f"is of the checkpoint before and cannot be removed: {problem.strerror}"
                raise TconvError(reason, remedy="remove it, the new one is in place", file=path) from problem


def superseded(targets: Iterable[Target], written: Collection[Path], read: Iterable[Path]) -> list[Superseded]:
    """What stands in the folders of sharded ``targets`` in place of the files ``written`` there, or beside them.

    Nothing that is ``read`` is ever removed: ``TconvError`` where it would be taken for the new checkpoint.
    """
    sharded = dict.fromkeys(target for target in targets if target.sharded)
    if not sharded:
        return []
    places, inputs = set(written), {os.path.realpath(path) for head in read for path in (head, *_shards(head))}
    found = []
    for target in sharded:
        for head in _heads(target):
            shards = (path for path in _shards(head) if path not in places and os.path.realpath(path) not in inputs)
            old = Superseded(target, head, head in places, tuple(shards))
            if not old.replaced and os.path.realpath(head) in inputs:
                raise TconvError(
                    "is what is read, and would be taken for the new checkpoint beside it",
                    remedy="give another folder",
                    file=head,
                )
            if old.shards or not old.replaced:
                found.append(old)
    return found


def _heads(target: Target) -> list[Path]:
    """Every index in the folder, and whole models that are looked for before the new one, or in its place."""
    suffix = SHARD_NAMES[target.format.name][1]
    wholes = {f"{stem}{of}" for stem, of in SHARD_NAMES.values() if of in (suffix, ".safetensors")}
    indexes = registry.FORMATS["index"].suffixes
    names = sorted(path.name for path in target.path.glob("*") if path.name.lower().endswith(indexes)) + sorted(wholes)
    return [path for name in names if (path := target.path / name).is_file()]


def _shards(head: Path) -> tuple[Path, ...]:
    """Those that it names and that are there; none if it is no index, or a broken one. An index may name anything, and
    what is not called as weights are is not removed because of that.
    """
    if head.suffix != ".json":
        return ()
    try:
        named = registry.load("tconv.formats.shards:files")(head)
    except TconvError:
        return ()
    shards = (head.with_name(name) for name in named if Path(name).suffix in _SUFFIXES)
    return tuple(path for path in shards if path.is_file())
