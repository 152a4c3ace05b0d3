"""From the words a user typed to the files that are meant: files, folders, globs, in natural order."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tconv import registry
from tconv.checkpoint_files import holds_weights, is_index, shards_of
from tconv.errors import TconvError, UsageError, raise_all
from tconv.folders import listed
from tconv.patterns import Patterns
from tconv.registry import Format

EVERYTHING = Patterns()
ROWS = "rows of an array have names once it is taken apart: --step unstack -o FILE.safetensors"


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read: where it is, what it is, and the name its tensor gets where it holds just one.

    ``root`` is the folder it was found in, None for a file that was named itself. ``carried``: what else is in that
    folder and goes along when the checkpoint in it does (its configuration, its tokenizer).
    """

    path: Path
    format: Format
    name: str
    root: Path | None = None
    carried: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Found:
    """``failures``: files that are of no use (empty, say), for the policy on bad files to judge. ``ignored``: files in
    folders that are not taken, of which ``notes`` tell too. ``unwanted``: what --only and --skip leave out, unopened.
    """

    inputs: tuple[Input, ...]
    failures: tuple[TconvError, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[Path, ...] = ()
    unwanted: tuple[Input, ...] = ()


def find(
    words: Sequence[str], *, every: bool = False, apart: Path | None = None, wanted: Patterns = EVERYTHING
) -> Found:
    """Every file that ``words`` name; ``every`` takes files of all kinds from a folder, but never the file ``apart``.

    A file of a single tensor, whose name is that of the file, is not even opened if it is not ``wanted``; of others it
    is no failure that they are of no use, if they are named to be skipped. Raises ``TconvError`` for a word that names
    nothing, and if nothing is wanted of all that there is.
    """
    found = _named(words, every, apart, wanted)
    if not wanted:
        return found
    taken = tuple(one for one in found.inputs if _is_wanted(one, wanted))
    left = tuple(one for one in found.inputs if not _is_wanted(one, wanted))
    if left and not taken and not found.failures:
        names = [one.name for one in left]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        rows = f"; {ROWS}" if any(one.format.group == "array" for one in left) else ""
        raise TconvError(f"no tensor is left by {wanted}", remedy=f"names here are {shown}{rows}")
    return replace(found, inputs=taken, unwanted=left)


def _is_wanted(one: Input, wanted: Patterns) -> bool:
    """Of others only their tensors have names."""
    return not _is_single(one.format) or wanted.wants(one.name)


def _is_single(row: Format) -> bool:
    """Whether such a file is one tensor, which is called like it."""
    return row.group == "image" or row.name == "npy"


def _named(words: Sequence[str], every: bool, apart: Path | None, wanted: Patterns) -> Found:
    inputs: list[Input] = []
    failures: list[TconvError] = []
    notes: list[str] = []
    ignored: list[Path] = []
    missing: list[TconvError] = []
    for word in dict.fromkeys(words):
        if not word:
            raise UsageError("an input is an empty text", remedy="give a path; '.' is the current folder")
        path = Path(word)
        if os.path.isdir(word):  # noqa: PTH112  # which raises nothing for a name that no file can have
            found = _in_folder(path, every, apart, wanted)
            inputs += found.inputs
            failures += found.failures
            notes += found.notes
            ignored += found.ignored
            continue
        matches = [path] if os.path.lexists(path) else _glob(word)
        if not matches:
            missing.append(TconvError("there is no such file or folder", remedy=_meant(word, words), file=word))
        for match in sorted(matches, key=natural):
            if match.is_dir():
                continue
            try:
                inputs.append(_file(match, None, wanted))
            except TconvError as problem:
                failures += [] if is_skipped(match, None, wanted) else [problem]
    raise_all(missing)
    once: dict[str, Input] = {}
    here = os.getcwd()  # noqa: PTH109  # it is joined to texts
    for one in inputs:
        place = os.path.normpath(os.path.join(here, one.path))  # noqa: PTH118  # Path.absolute keeps the ..
        if once.setdefault(place, one) is not one:
            notes.append(f"{one.path}: named more than once, and taken once")
    return Found(tuple(once.values()), tuple(failures), tuple(notes), tuple(ignored))


def _meant(word: str, words: Sequence[str]) -> str:
    """What a word that names no file may have been meant for."""
    if word in ("imagenet", "clip"):
        return f"statistics are chosen with --stats {word}"
    row = registry.by_suffix(Path(word), output=True) if len(words) > 1 and not re.search(r"[*?[]", word) else None
    if row is not None and (row.group != "image" or word == words[-1]):
        return f"to write it say -o {word}"
    return ""


def _glob(pattern: str) -> list[Path]:
    """What the shell would have found, had the pattern not been quoted."""
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207  # Path.glob takes no absolute pattern
    return [Path(f) for f in found]


def natural(path: Path) -> list[int | str]:
    """The order of people: ``2.png`` before ``10.png``, folder by folder."""
    return _natural(str(path))


def _natural(path: str) -> list[int | str]:
    """Three items for each piece of the name, in one list: of a hundred thousand names each item that is a list of its
    own takes as much memory as an image does.
    """
    key: list[int | str] = []
    for part in path.split(os.sep):  # noqa: PTH206  # the parts would stay in memory too
        for text in filter(None, re.split(r"([0-9]+)", part)):
            key += (0, int(text), text) if text[0] in "0123456789" else (1, 0, text)
        key += (-1, 0, "")
    return key


def is_skipped(path: Path, root: Path | None, wanted: Patterns) -> bool:
    """Whether a file that is of no use, so that nobody knows what is in it, is named to be skipped."""
    name = _inner(path, root) if root else path.name
    return wanted.skips(name) or wanted.skips(Path(name).with_suffix("").as_posix())


def _file(path: Path, root: Path | None, wanted: Patterns) -> Input:
    """What is at ``path``; that it is what its suffix says is believed of what is not ``wanted``."""
    promised = registry.by_suffix(path) if wanted else None
    if promised and _is_single(promised) and not _is_wanted(believed := _input(path, promised, root), wanted):
        return believed
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TconvError("neither a file nor a folder", remedy="tconv reads files it can seek in", file=path)
        row = registry.detect(path)
    except OSError as problem:
        dangling = path.is_symlink() and not path.exists()
        reason = "a link to nothing" if dangling else f"cannot be read: {problem.strerror}"
        raise TconvError(reason, file=path) from problem
    return _input(path, row, root)


def _input(path: Path, row: Format, root: Path | None) -> Input:
    name = _inner(path, root) if root else path.name
    return Input(path, row, name if row.group == "image" else Path(name).with_suffix("").as_posix(), root)


def _inner(path: Path, root: Path) -> str:
    """The path below ``root``, with slashes, as ``relative_to`` tells it, which leaves a tuple behind."""
    above = "" if str(root) == "." else os.path.join(root, "")  # noqa: PTH118  # it is a text, with a slash at its end
    inner = str(path).removeprefix(above).replace(os.sep, "/")
    return path.name if inner == path.name else inner  # which is there already


def _in_folder(root: Path, every: bool, apart: Path | None, wanted: Patterns) -> Found:
    """What a folder stands for, and what else is in it."""
    there = listed(root)
    paths, hidden = _in_order(there.paths, root), _in_order(there.hidden, root)
    if apart is not None and apart.exists():
        paths = [path for path in paths if path.name != apart.name or not path.samefile(apart)]
    found = _meant_in(root, paths, there.failures, every, wanted)
    if not (found.inputs or found.failures):
        raise TconvError(
            f"the folder holds no file that tconv reads{' but hidden ones' if hidden else ''}",
            remedy=f"rename {hidden[0].relative_to(root)}" if hidden else "`tconv formats` lists them",
            file=root,
        )
    ignored = (*found.ignored, *hidden)
    return replace(found, ignored=ignored, notes=_ignored(root, ignored))


def _in_order(paths: list[Path], root: Path) -> list[Path]:
    """In natural order. The root, with which all begin, would be in every key, and take memory."""
    shared = 0 if str(root) == "." else len(str(root))
    return sorted(paths, key=lambda path: _natural(str(path)[shared:]))


def _meant_in(root: Path, paths: Sequence[Path], failures: list[TconvError], every: bool, wanted: Patterns) -> Found:
    """A folder stands for the sharded checkpoint in it; else for its images if it has any, else for its arrays, else
    for its checkpoints. With ``every`` it stands for all of them.
    """
    by_group: dict[str, list[Input]] = {}
    others: list[Path] = []
    indexes = [path for path in paths if is_index(path) and path.parent == root]
    if indexes:
        return _sharded(root, indexes, paths, failures, wanted)
    for path in paths:
        if registry.by_suffix(path) is None:
            others.append(path)
            continue
        try:
            found = _file(path, root, wanted)
            by_group.setdefault(found.format.group, []).append(found)
        except TconvError as problem:
            failures += [] if is_skipped(path, root, wanted) else [problem]
    model = _model(root, by_group)
    if model is not None and not every:
        carried = tuple(path for path in others if path.is_file() and not holds_weights(path))
        left = [path for path in others if path not in carried]
        return Found((replace(model, carried=carried),), tuple(failures), ignored=tuple(left))
    if weights := by_group.get("weights"):
        shards = set[Path]().union(*(shards_of(m.path) for m in weights if is_index(m.path)))
        by_group["weights"] = [m for m in weights if m.path not in shards]
    group = next((g for g in ("image", "array", "weights") if g in by_group), None)
    if every:
        readable = sorted((m for members in by_group.values() for m in members), key=lambda m: natural(m.path))
        return Found(tuple(readable), tuple(failures), ignored=tuple(others))
    for name, members in by_group.items():
        if name != group:
            others += [m.path for m in members]
    return Found(tuple(by_group.get(group or "", ())), tuple(failures), ignored=tuple(others))


def _model(root: Path, by_group: Mapping[str, Sequence[Input]]) -> Input | None:
    """The weights of a folder that holds a model in one file, as Hugging Face's libraries write it, and its
    configuration.
    """
    weights = by_group.get("weights", ())
    alone = len(by_group) == 1 and len(weights) == 1 and weights[0].path.parent == root
    named = alone and weights[0].path.name in ("model.safetensors", "pytorch_model.bin")
    return weights[0] if named and (root / "config.json").is_file() else None


def _sharded(
    root: Path, indexes: Sequence[Path], paths: Sequence[Path], failures: Sequence[TconvError], wanted: Patterns
) -> Found:
    """The index alone, its shards being part of it. What is in the folder besides is carried, other weights are not."""
    if len(indexes) > 1:
        names = " and ".join(path.name for path in indexes)
        raise TconvError(
            f"it holds more than one sharded checkpoint: {names}", remedy="name one of these files", file=root
        )
    (index,) = indexes
    try:
        found = _file(index, root, wanted)
    except TconvError as problem:
        return Found((), (*failures, problem))
    shards = shards_of(index)
    besides = [path for path in paths if path != index and path not in shards]
    left = [path for path in besides if not path.is_file() or holds_weights(path)]
    carried = tuple(path for path in besides if path not in left)
    return Found((replace(found, carried=carried),), tuple(failures), ignored=tuple(left))


def _ignored(root: Path, others: Sequence[Path]) -> tuple[str, ...]:
    if not others:
        return ()
    names = [p.relative_to(root).as_posix() + "/" * p.is_dir() for p in others[:5]]
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    return (f"{root}: ignored {', '.join(names)}{more}",)
