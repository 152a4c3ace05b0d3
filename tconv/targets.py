"""Where the outputs go: one file, one for each input, one for each tensor; nothing is overwritten by accident."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tconv import registry
from tconv.errors import TconvError, UsageError, raise_all
from tconv.inputs import Input
from tconv.registry import Format


@dataclass(frozen=True)
class Target:
    """A file to write from ``inputs``. ``root``: the folder it appears in; ``shown``: what stdout says of it.

    ``split``: ``path`` is a folder that gets one file for each tensor.
    """

    path: Path
    root: Path
    shown: str
    format: Format
    inputs: tuple[Input, ...]
    split: bool = False


def choose(
    inputs: Sequence[Input],
    output: str | None,
    format_name: str | None,
    tag: str,
    extension_dtype: bool = False,
    split: bool = False,
) -> list[Target]:
    """A target for every input, several inputs to a target where they belong together.

    ``tag`` goes into default names ("float16" for a cast to it, empty where no dtype changes); ``extension_dtype``
    says that NumPy lacks that dtype, so that an array's default format is safetensors.
    """
    row = check_words(output, format_name, split)
    if output is None:
        return _beside(inputs, row, tag, extension_dtype)
    place = Path(output)
    if row is None or _is_folder(output) or split:
        return _in_folder(inputs, place, row, output, split)
    path = _resolved(place)
    return [Target(path, path.parent, output, row, tuple(inputs))]


def check_words(output: str | None, format_name: str | None, split: bool) -> Format | None:
    """The format that these options name, None if they leave it to the inputs. Raises ``UsageError``."""
    row = registry.by_name(format_name) if format_name is not None else None
    if output is None:
        if split:
            raise UsageError("--split writes one file for each tensor", remedy="say where with -o DIR/")
        return row
    if _is_folder(output):
        return row
    if split and registry.by_suffix(Path(output), output=True):
        raise UsageError(f"{output}: --split writes a folder", remedy=f"write -o {output}/ if that is its name")
    row = row or registry.by_suffix(Path(output), output=True)
    if row is None and not split:
        suffixes = ", ".join(s for r in registry.writable() for s in r.suffixes[:1])
        raise UsageError(
            f"{output}: the suffix {Path(output).suffix!r} names no format that tconv writes",
            remedy=f"use {suffixes}, or --format, or end a folder's name with /",
        )
    return row


def _is_folder(output: str) -> bool:
    return output.endswith("/") or Path(output).is_dir()


def _resolved(path: Path) -> Path:
    """Where links lead; unlike Path.resolve, without an exception where they lead in a circle."""
    return Path(os.path.realpath(path))


def _beside(inputs: Sequence[Input], row: Format | None, tag: str, extension_dtype: bool) -> list[Target]:
    """No -o: images of a folder become one file beside it; everything else one file beside each."""
    safetensors = registry.FORMATS["safetensors"]
    roots = {i.root for i in inputs}
    if all(i.format.group == "image" for i in inputs):
        if len(roots) > 1 or (None in roots and len(inputs) > 1):
            raise UsageError("several images need a place to go", remedy="say -o FILE or -o DIR/")
        row = row or safetensors
        (root,) = roots
        base = (root or inputs[0].path.with_suffix("")).absolute()
        base = _resolved(base) if root else base
        shown = (root or inputs[0].path).with_suffix("") if root is None else root
        path = base.with_name(base.name + row.suffixes[0])
        text = str(path) if shown.name in ("", "..") else str(shown.with_name(shown.name + row.suffixes[0]))
        return [Target(path, path.parent, text, row, tuple(inputs))]
    if roots != {None}:
        raise UsageError("a folder of arrays or checkpoints needs a place to go", remedy="say -o DIR/ or -o FILE")
    targets = []
    for one in inputs:
        kept = one.format if one.format.writer else safetensors
        if kept.name == "npy" and extension_dtype:
            kept = safetensors
        kept = row or kept
        suffix = one.path.suffix if one.path.suffix.lower() in kept.suffixes else kept.suffixes[0]
        if not tag and suffix == one.path.suffix:
            raise UsageError(
                f"{one.path}: nothing to do",
                remedy="say what it shall become (--half, --to DTYPE …) or where (-o PATH)",
            )
        shown = one.path.with_name(f"{one.path.stem}{'.' if tag else ''}{tag}{suffix}")
        path = one.path.absolute().with_name(shown.name)
        targets.append(Target(path, path.parent, str(shown), kept, (one,)))
    return targets


def _in_folder(inputs: Sequence[Input], place: Path, row: Format | None, shown: str, split: bool) -> list[Target]:
    """One file for each input at the same place below the folder, its suffix replaced."""
    root = _resolved(place)
    targets = []
    for one in inputs:
        kept = row or (one.format if one.format.writer else registry.FORMATS["safetensors"])
        inner = one.path.relative_to(one.root) if one.root else Path(one.path.name)
        path = root if split else root / inner.with_suffix(kept.suffixes[0])
        targets.append(Target(path, root, shown, kept, (one,), split))
    return targets


def below(target: Target, name: str) -> Path:
    """The file for the tensor of that name in a ``split`` target; a name that is no plain path below it is refused."""
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
    return target.root.joinpath(*parts[:-1], parts[-1] + suffix)


def check(paths: Sequence[tuple[Path, Sequence[Input]]]) -> list[TconvError]:
    """Refuse, naming all of them: two inputs for one file, a target that is no file. Files there already are returned,
    each as the refusal that it is unless it may be replaced.
    """
    problems: list[TconvError] = []
    existing: list[TconvError] = []
    taken: dict[Path, Sequence[Input]] = {}
    for path, inputs in paths:
        if path in taken:
            first, second = taken[path][0].path, inputs[0].path
            problems.append(TconvError(f"{first} and {second} would both become it", remedy="rename one", file=path))
            continue
        taken[path] = inputs
        if path.is_file():
            existing.append(_existing(path, inputs))
        else:
            problems += _unfit(path)
    raise_all(problems)
    return existing


def _unfit(path: Path) -> list[TconvError]:
    if path.is_symlink():
        return [TconvError("is a link that leads back to itself", remedy="give another output", file=path)]
    if not path.exists():
        blocked = next((p for p in path.parents if p.exists() and not p.is_dir()), None)
        return [TconvError(f"{blocked} is not a folder", file=path)] if blocked else []
    if path.is_dir():
        return [TconvError("is a folder", remedy="give a file, or end a folder's name with /", file=path)]
    return [TconvError("is neither a file nor a folder", remedy="give a file to write", file=path)]


def _existing(path: Path, inputs: Sequence[Input]) -> TconvError:
    if any(i.path.exists() and i.path.samefile(path) for i in inputs):
        return TconvError("is an input too", remedy="give another output, or --force to replace it", file=path)
    return TconvError("exists already", remedy="--force replaces it once the new file is whole", file=path)
