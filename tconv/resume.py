"""What is done of a run that may be interrupted: whole shards, each with its hash, which --resume need not make again.

It is written down in the staging folder after each shard::

    {
      "tconv": "0.1.0",
      "steps": ["cast(float16)"],
      "options": {"range": null, "input_layout": null},
      "inputs": {"/models/m/model.safetensors.index.json": [1234, 1700000000000000000]},
      "outputs": {"model-00001-of-00002.safetensors": "…"},
      "done": {"model-00001-of-00002.safetensors": {"sha256": "…", "notes": ["…"]}}
    }

All but ``done`` says which run it was: of inputs the size and the time of the last change, of outputs a hash of what
the plan says of their tensors, of what is done to these, and of what the file says of itself. ``notes`` is what its
casts lost, which is told when the run is whole.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import __version__
from tconv.errors import TconvError
from tconv.formats.positional import PositionalWriter
from tconv.hashing import sha256, sha256_of
from tconv.staging import kept_for
from tconv.writer import Writer

if TYPE_CHECKING:
    from tconv.fold import Planned
    from tconv.ops import Array
    from tconv.planner import Plan

STATE = ".tconv-state.json"
_SAYS = {
    "tconv": "the version of tconv",
    "steps": "the steps",
    "options": "what is said of the values",
    "inputs": "the inputs",
    "outputs": "the tensors, what is done to them or the shards they go into",
}


class AnotherRun(TconvError):  # noqa: N818  # it says what was found, and is no failure of the run that left it
    """What an interrupted run has left is of no use to this one."""


def is_begun(folder: Path) -> bool:
    """Whether there is anything to resume in that staging folder."""
    return (folder / STATE).exists()


def complete(planned: Plan) -> list[TconvError]:
    """That there is nothing to resume, for each folder in which all is there that was to be made, and nothing that an
    interrupted run has left.
    """
    if not planned.request.resume or planned.request.force:
        return []
    by_root: dict[Path, list[Path]] = {}
    for file in planned.files:
        by_root.setdefault(file.target.root, []).append(file.path)
    done = [root for root, paths in by_root.items() if all(p.is_file() for p in paths) and not kept_for(root)]
    return [
        TconvError(
            f"is complete: its {len(by_root[root])} shards are there, and no interrupted run is left to resume",
            remedy="nothing needs doing; --force makes it anew",
            file=root,
        )
        for root in done
    ]


class Done(Writer):
    """Stands for a file that is whole already: nothing is written."""

    def __init__(self) -> None:
        self.size = 0

    def open(self, path: Path) -> None: ...
    def write(self, i: int, lo: int, array: Array) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class Ledger:
    """The account of what is done in one staging folder. Thread-safe."""

    def __init__(self, folder: Path, planned: Plan, files: Sequence[Planned]) -> None:
        """``files``: those of the plan that are staged in ``folder``."""
        self._folder = folder
        self._run = _run(planned, files)
        self._targets = {_name(file): file.path for file in files}
        self._done: dict[str, dict[str, Any]] = {}
        self._earlier: list[str] = []
        self._lock = threading.Lock()

    @property
    def earlier(self) -> list[str]:
        """What the casts of shards lost that an earlier run has made."""
        return self._earlier

    def resume(self) -> list[str]:
        """Take over what an earlier run has done, and remove what it left unfinished. Returns what the user should
        hear. Raises ``TconvError`` if it was another run.
        """
        kept = self._load()
        for name, done in kept.items():
            self._take_back(name, done["sha256"])
        bad = [name for name, done in kept.items() if not _is(self._folder / name, done["sha256"])]
        self._done = {name: done for name, done in kept.items() if name not in bad}
        for path in self._folder.rglob("*"):
            if not path.is_dir() and path.relative_to(self._folder).as_posix() not in {STATE, *self._done}:
                path.unlink()
        self._earlier = [note for done in self._done.values() for note in done["notes"]]
        told = [f"{name}: is not what was written, and is made again" for name in bad]
        total = len(self._run["outputs"])
        if not kept:
            return ["there is nothing to resume here, so all shards are made"]
        return [*told, f"{len(self._done)} of {total} shards were done already"]

    def _take_back(self, name: str, digest: str) -> None:
        """A run that was killed while it put its shards in place has some of them there already."""
        staged, target = self._folder / name, self._targets[name]
        if not staged.exists() and _is(target, digest):
            with suppress(OSError):  # a file system without hard links: then it is made again
                staged.parent.mkdir(parents=True, exist_ok=True)
                os.link(target, staged)

    def has(self, file: Planned) -> bool:
        """Whether it is done."""
        return _name(file) in self._done

    def add(self, file: Planned, notes: Iterable[str]) -> None:
        """``file`` is whole, and on the disk."""
        name = _name(file)
        digest = sha256(self._folder / name)
        with self._lock:
            self._done[name] = {"sha256": digest, "notes": list(notes)}
            fresh = self._folder / f"{STATE}.new"
            with fresh.open("w", encoding="utf8") as out:
                json.dump({**self._run, "done": self._done}, out)
                out.flush()
                os.fsync(out.fileno())
            fresh.replace(self._folder / STATE)

    def _load(self) -> dict[str, dict[str, Any]]:
        """What the state says is done; nothing if there is none, or none that makes sense."""
        try:
            found = json.loads((self._folder / STATE).read_text(encoding="utf8"))
            then = {key: found[key] for key in self._run}
            kept = {n: {"sha256": d["sha256"], "notes": list(d["notes"])} for n, d in found["done"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        changed = [_SAYS[key] for key in self._run if then[key] != self._run[key]]
        if changed:
            raise AnotherRun(
                f"cannot go on with the run that was interrupted: {' and '.join(changed)} changed since",
                remedy="without --resume it starts afresh",
                file=self._folder,
            )
        return {name: done for name, done in kept.items() if name in self._run["outputs"]}


def _run(planned: Plan, files: Sequence[Planned]) -> dict[str, Any]:
    inputs = sorted({path for file in files for path in file.sources()})
    request = planned.request
    return {
        "tconv": __version__,
        "steps": [str(step) for step in planned.steps],
        "options": {"range": list(request.range) if request.range else None, "input_layout": request.input_layout},
        "inputs": {os.path.realpath(path): [(s := path.stat()).st_size, s.st_mtime_ns] for path in inputs},
        "outputs": {_name(file): _digest(file) for file in files},
    }


def _name(file: Planned) -> str:
    return file.path.relative_to(file.target.root).as_posix()


def _digest(file: Planned) -> str:
    """Of all that decides its bytes but the values: operations are descriptions, and print in full."""
    tensors = [
        (t.spec.name, str(t.spec.dtype), t.spec.shape, t.spec.alias_of, repr(t.ops)) for t in file.stream.tensors
    ]
    known = file.writer.header() if isinstance(file.writer, PositionalWriter) else []
    header = [(offset, data.hex()) for offset, data in known]
    return sha256_of(json.dumps([tensors, dict(file.stream.extra.metadata), file.writer.size, header]))


def _is(path: Path, digest: str) -> bool:
    try:
        return sha256(path) == digest
    except OSError:
        return False
