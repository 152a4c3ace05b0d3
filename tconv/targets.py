"""Where the outputs go: one file, one for each input, one for each tensor; nothing is overwritten by accident."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tconv import registry
from tconv.errors import TconvError, UsageError
from tconv.inputs import Input
from tconv.registry import Format

# By format, how Hugging Face's libraries call the file of a model, and with numbers after the stem its shards.
SHARD_NAMES = {
    "safetensors": ("model", ".safetensors"),
    "pt": ("pytorch_model", ".bin"),
    "compressed-tensors": ("model", ".safetensors"),
}


@dataclass(frozen=True)
class Target:
    """A file to write from ``inputs``. ``root``: the folder it appears in; ``shown``: what stdout says of it.

    ``split``: ``path`` is a folder that gets one file for each tensor. ``sharded``: it is a folder that gets the shards
    of the one input, their index, and what that input carries. ``batched``: it is one of
    several files into which what was stacked is divided, all of them or none.
    """

    path: Path
    root: Path
    shown: str
    format: Format
    inputs: tuple[Input, ...]
    split: bool = False
    sharded: bool = False
    batched: bool = False


def choose(
    inputs: Sequence[Input],
    output: str | None,
    format_name: str | None,
    tag: str,
    beyond_npy: bool = False,
    split: bool = False,
    pack: bool = False,
    batch: bool = False,
) -> list[Target]:
    """A target for every input, several inputs to a target where they belong together.

    ``tag`` goes into default names ("float16" for a cast to it, empty where no dtype changes); ``beyond_npy``
    says that an .npy cannot hold what comes of an array, so that its default format is safetensors. ``pack``: every
    input is written in shards, not only what is read in shards. ``batch``: a folder gets all inputs together, for
    ``batches`` to divide.
    """
    row = check_words(output, format_name, split, pack)
    if output is None:
        return _beside(inputs, row, tag, beyond_npy)
    place = Path(output)
    if batch and is_folder(output):
        kept = row or _kept(inputs[0])
        root = _resolved(place)
        return [Target(root / f"batch{kept.suffixes[0]}", root, output, kept, tuple(inputs))]
    if row is None or is_folder(output) or split or pack:
        return _in_folder(inputs, place, row, output, split, pack)
    path = _resolved(place)
    return [Target(path, path.parent, output, row, tuple(inputs))]


def check_words(output: str | None, format_name: str | None, split: bool, pack: bool = False) -> Format | None:
    """The format that these options name, None if they leave it to the inputs. Raises ``UsageError``."""
    row = registry.by_name(format_name) if format_name is not None else None
    if split and pack:
        raise UsageError("--split and --shard-size exclude each other", remedy="one is a file for each tensor")
    folder = row is not None and row.group == "weights" and registry.writer(row).folder
    if folder and row is not None and (split or (output is not None and not (pack or is_folder(output)))):
        raise UsageError(f"{row.name} is a folder: weights and their config.json", remedy="say where with -o DIR/")
    if output is None:
        if split:
            raise UsageError("--split writes one file for each tensor", remedy="say where with -o DIR/")
        if pack:
            raise UsageError("--shard-size writes a folder", remedy="say where with -o DIR/")
        return row
    if not output:
        raise UsageError("the output is an empty text", remedy="give a path; -o ./ is the current folder")
    if is_folder(output):
        return row or _named_like(Path(output).name)
    if (split or pack) and registry.by_suffix(Path(output), output=True):
        option = "--split" if split else "--shard-size"
        raise UsageError(f"{output}: {option} writes a folder", remedy=f"write -o {output}/ if that is its name")
    row = row or registry.by_suffix(Path(output), output=True)
    if row is None and not (split or pack):
        suffixes = ", ".join(dict.fromkeys(s for r in registry.every_writable() for s in r.suffixes[:1]))
        raise UsageError(
            f"{output}: the suffix {Path(output).suffix!r} names no format that tconv writes",
            remedy=f"use {suffixes}, or --format, or end a folder's name with /",
        )
    return row


def _named_like(folder: str) -> Format | None:
    """The format of pictures that a folder is called by: ``png/``, ``jpg/``."""
    named = (r for r in registry.writable() if r.group == "image" and (folder == r.name or f".{folder}" in r.suffixes))
    return next(named, None)


def is_folder(output: str) -> bool:
    """Whether that word, of -o, names a folder."""
    return output.endswith("/") or Path(output).is_dir()


def _resolved(path: Path) -> Path:
    """Where links lead; unlike Path.resolve, without an exception where they lead in a circle."""
    return Path(os.path.realpath(path))


def _beside(inputs: Sequence[Input], row: Format | None, tag: str, beyond_npy: bool) -> list[Target]:
    """No -o: images of a folder become one file beside it; everything else one file beside each."""
    roots = {i.root for i in inputs if not _is_folder_of_shards(i)}
    if all(i.format.group == "image" for i in inputs):
        if len(roots) > 1 or (None in roots and len(inputs) > 1):
            raise UsageError("several images need a place to go", remedy="say -o FILE or -o DIR/")
        row = row or registry.FORMATS["safetensors"]
        (root,) = roots
        base = (root or inputs[0].path.with_suffix("")).absolute()
        base = _resolved(base) if root else base
        shown = (root or inputs[0].path).with_suffix("") if root is None else root
        path = base.with_name(base.name + row.suffixes[0])
        text = str(path) if shown.name in ("", "..") else str(shown.with_name(shown.name + row.suffixes[0]))
        return [Target(path, path.parent, text, row, tuple(inputs))]
    if roots - {None}:
        raise UsageError("a folder of arrays or checkpoints needs a place to go", remedy="say -o DIR/ or -o FILE")
    targets = []
    for one in inputs:
        if one.format.name == "index":
            targets.append(_folder_beside(one, row, tag))
            continue
        if row is not None and registry.writer(row).folder:
            raise UsageError(f"{one.path}: {row.name} needs a folder to go to", remedy="say -o DIR/")
        kept = _kept(one)
        if kept.name == "npy" and beyond_npy:
            kept = registry.FORMATS["safetensors"]
        kept = row or kept
        suffix = one.path.suffix if one.path.suffix.lower() in kept.suffixes else kept.suffixes[0]
        if not tag and suffix == one.path.suffix:
            raise _nothing_to_do(one.path)
        shown = one.path.with_name(f"{one.path.stem}{'.' if tag else ''}{tag}{suffix}")
        path = one.path.absolute().with_name(shown.name)
        targets.append(Target(path, path.parent, str(shown), kept, (one,)))
    return targets


def _nothing_to_do(path: Path) -> UsageError:
    remedy = "say what it shall become (--half, --to DTYPE …) or where (-o PATH)"
    return UsageError(f"{path}: nothing to do", remedy=remedy)


def _kept(one: Input) -> Format:
    """The format of an input, if tconv writes it and it is none of pictures, which become tensors; of an index that of
    its shards, as its name tells.
    """
    if one.format.name == "index":
        shards = registry.by_suffix(Path(one.path.name[: -len(".index.json")]), output=True)
        return shards or registry.FORMATS["safetensors"]
    return one.format if one.format.writer and one.format.group != "image" else registry.FORMATS["safetensors"]


def _is_folder_of_shards(one: Input) -> bool:
    """Whether it is the index for which its whole folder was named."""
    return one.format.name == "index" and one.root == one.path.parent


def _folder_beside(one: Input, row: Format | None, tag: str) -> Target:
    """``model.float16`` for the folder ``model``."""
    if one.root is None or not _is_folder_of_shards(one):
        raise UsageError(
            f"{one.path}: a sharded checkpoint needs a place to go",
            remedy="say -o DIR/ or -o FILE; of a folder that you name, the result appears beside it",
        )
    if not tag and row in (None, _kept(one)):
        raise _nothing_to_do(one.root)
    base = _resolved(one.root)
    name = f"{base.name}.{tag or (row or _kept(one)).name}"
    path = base.with_name(name)
    shown = str(path) if one.root.name in ("", "..") else str(one.root.with_name(name))
    return _sharded(one, path, path, shown, row)


def _sharded(one: Input, path: Path, root: Path, shown: str, row: Format | None) -> Target:
    form = row or _kept(one)
    if form.name not in SHARD_NAMES:
        raise UsageError(
            f"{one.path}: shards are safetensors or PyTorch checkpoints, not {form.name}",
            remedy=f"--format safetensors or pt, or one file with -o FILE{form.suffixes[0]}",
        )
    return Target(path, root, shown, form, (one,), sharded=True)


def _in_folder(
    inputs: Sequence[Input], place: Path, row: Format | None, shown: str, split: bool, pack: bool
) -> list[Target]:
    """One file for each input at the same place below the folder, its suffix replaced; of shards all of its files. A
    file of a picture holds just one, so that there is one for each tensor.
    """
    root = _resolved(place)
    split = split or (not pack and row is not None and row.group == "image")
    targets = []
    for one in inputs:
        inner = one.path.relative_to(one.root) if one.root else Path(one.path.name)
        if not split and (pack or one.format.name == "index" or one.carried or (row and registry.writer(row).folder)):
            targets.append(_sharded(one, root / inner.parent, root, shown, row))
            continue
        kept = row or _kept(one)
        path = root if split else root / inner.with_suffix(kept.suffixes[0])
        targets.append(Target(path, root, shown, kept, (one,), split))
    return targets


def below(target: Target, name: str) -> Path:
    """The file for the tensor of that name in a ``split`` target; a name that is no plain path below it is refused.

    A picture that is called by its file, ``cats/a.jpg``, changes its suffix.
    """
    inner = PurePosixPath(name)
    parts = name.split("/")
    if not name or inner.is_absolute() or any(p in ("", ".", "..") for p in parts) or "\\" in name or "\0" in name:
        raise TconvError(
            "the name is no path inside the output folder",
            remedy="write one file that holds all tensors (-o x.safetensors), or leave it out with --skip",
            tensor=name,
        )
    suffix = target.format.suffixes[0]
    if any(len(os.fsencode(p)) + len(suffix) > 255 for p in parts):
        raise TconvError("the name is too long for a file name", remedy="write one file with -o", tensor=name[:60])
    picture = target.format.group == "image" and _is_image(inner)
    return target.root.joinpath(*parts[:-1], (inner.stem if picture else parts[-1]) + suffix)


def _is_image(path: PurePosixPath) -> bool:
    row = registry.by_suffix(Path(path))
    return row is not None and row.group == "image"
