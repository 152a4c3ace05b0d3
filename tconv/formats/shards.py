"""Sharded checkpoints: an index says which tensor is in which of the files beside it, and must agree with them.

Layout: https://huggingface.co/docs/transformers/big_models#sharded-checkpoints
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from tconv import registry
from tconv.errors import TconvError, raise_all
from tconv.formats import strict_json, ties
from tconv.formats.flat import left_out
from tconv.formats.raw import file_size, opened, take
from tconv.tensor import Extra, Stream, Tensor
from tconv.writer import ReadOptions

MAX_INDEX = 100_000_000  # bytes: ten times what the largest public models need
_BROKEN = "a broken index"
_LISTED = 20


@dataclass(frozen=True)
class Index:
    """``shards``: the names of the files, sorted, each with the tensors that are in it."""

    shards: Mapping[str, Sequence[str]]
    metadata: Mapping[str, Any]


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """The tensors of all shards, lazily, in the order of the shards' names; ``attrs["shard"]`` is whose each is.

    Shards lie beside the index, which names each tensor of theirs: whatever is missing, unknown, elsewhere or there
    twice is refused, all of it at once. Names that the metadata of a shard or of the index tie to a tensor are read
    too; these the index need not know.
    """
    index = load(path)
    _refuse_missing(path.parent, index)
    shards = {shard: _read_shard(path.parent / shard, name, options) for shard in index.shards}
    _refuse_disagreement(index, shards)
    metadata, notes = _shared_metadata(shards)
    tensors = tuple(_placed(tensor, shard) for shard, stream in shards.items() for tensor in stream.tensors)
    others = tuple(other for stream in shards.values() for other in stream.others)
    by_name = {tensor.spec.name: tensor for tensor in tensors}
    tied = ties.found(index.metadata, by_name, {*by_name, *(other.tensor for other in others)})
    tensors += tuple(ties.tied(alias, by_name[base]) for alias, base in tied.items())
    said = {key: value for key, value in index.metadata.items() if key not in tied}
    told = tuple(f"{path}: {note}" for note in ties.told(tied))
    return Stream(tensors, Extra("weights", metadata=metadata, index=said), (*notes, *told), others)


def load(path: Path) -> Index:
    """The index at ``path``. Raises ``TconvError`` for what is none, and for shards that are not named as files
    beside it are.
    """
    with opened(path) as file:
        size = file_size(file)
        if size > MAX_INDEX:
            raise TconvError(f"an index of {size:,} bytes, and at most {MAX_INDEX:,} are allowed")
        found = strict_json.parse(take(file, size), _BROKEN)
        weight_map, metadata = found.get("weight_map"), found.get("metadata")
        if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
            raise TconvError(
                f"{_BROKEN}: it has no weight_map from the names of tensors to files",
                remedy="name another file: this is not the index of a sharded checkpoint",
            )
        if not isinstance(metadata, dict | None):
            raise TconvError(f"{_BROKEN}: its metadata are no map")
        if not weight_map:
            raise TconvError(f"{_BROKEN}: its weight_map is empty")
        shards: dict[str, list[str]] = {shard: [] for shard in sorted(set(weight_map.values()))}
        raise_all([refusal for shard in shards if (refusal := _misnamed(shard, path))])
    for tensor, shard in weight_map.items():
        shards[shard].append(tensor)
    return Index(shards, metadata or {})


def files(path: Path) -> tuple[str, ...]:
    """The names of the shards of the index at ``path``."""
    return tuple(load(path).shards)


def _misnamed(shard: str, index: Path) -> TconvError | None:
    """Why a name cannot be that of a file beside the index, on whatever system."""
    plain = PurePosixPath(shard).name == shard == PureWindowsPath(shard).name
    if not plain or shard in ("", "..") or "\0" in shard or shard == index.name:
        return TconvError(
            f"the index names the shard {shard[:200]!r}, which leads outside its folder or is no file in it",
            remedy="shards lie beside their index; do not trust whoever made this one",
        )
    return None


def _refuse_missing(folder: Path, index: Index) -> None:
    missing = [shard for shard in index.shards if not (folder / shard).exists()]
    if not missing:
        return
    listed = ", ".join(f"{shard} ({_named(index.shards[shard])})" for shard in missing[:_LISTED])
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    verb = "is" if len(missing) == 1 else "are"
    raise TconvError(
        f"{len(missing)} of {len(index.shards)} shards {verb} missing: {listed}{more}",
        remedy="fetch the checkpoint again; part of a model is not the model",
    )


def _named(tensors: Sequence[str]) -> str:
    return f"tensor {tensors[0]}" + (f" and {len(tensors) - 1} more" if len(tensors) > 1 else "")


def _read_shard(path: Path, name: str, options: ReadOptions) -> Stream:
    try:
        row = registry.detect(path)
        if row.group != "weights" or not row.writer:
            raise TconvError(f"its format is {row.title}, and shards are safetensors or PyTorch checkpoints")
        stream = registry.reader(row)(path, name, options)
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}", file=path) from problem
    except TconvError as problem:
        raise problem.at(file=path) from None
    left = left_out(stream.extra, metadata=True)
    note = (f"{path}: left out, as shards hold tensors only: {', '.join(left[:_LISTED])}",) if left else ()
    return replace(stream, notes=(*stream.notes, *note))


def _refuse_disagreement(index: Index, shards: Mapping[str, Stream]) -> None:
    """The index and the shards must know the same tensors, each in the same one shard."""
    found: dict[str, list[str]] = {}
    for shard, stream in shards.items():
        for tensor in (*(t.spec.name for t in stream.tensors), *(o.tensor for o in stream.others)):
            found.setdefault(tensor, []).append(shard)
    tied = {tensor.spec.name for stream in shards.values() for tensor in stream.tensors if ties.is_tied(tensor.spec)}
    promised = {tensor: shard for shard, tensors in index.shards.items() for tensor in tensors}
    problems = []
    for tensor, shard in promised.items():
        if shard not in found.get(tensor, ()):
            elsewhere = f"; it is in {' and '.join(found[tensor])}" if tensor in found else ""
            problems.append(TconvError(f"the index puts it into {shard}, where it is not{elsewhere}", tensor=tensor))
    for tensor, places in found.items():
        if tensor not in promised and not (tensor in tied and len(places) == 1):
            problems.append(TconvError(f"is in {' and '.join(places)}, and the index does not know it", tensor=tensor))
        elif len(places) > 1 and promised.get(tensor) in places:
            problems.append(TconvError(f"is in more than one shard: {' and '.join(places)}", tensor=tensor))
    raise_all(problems, remedy="fetch the checkpoint again, the index and its shards" if problems else "")


def _shared_metadata(shards: Mapping[str, Stream]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The metadata of all shards together, and all that is to be told."""
    metadata: dict[str, str] = {}
    notes = [note for stream in shards.values() for note in stream.notes]
    for shard, stream in shards.items():
        for key, value in stream.extra.metadata.items():
            if metadata.setdefault(key, value) != value:
                notes.append(f"{shard}: its metadata {key!r} differs from that of an earlier shard, which is kept")
    return metadata, tuple(notes)


def _placed(tensor: Tensor, shard: str) -> Tensor:
    return replace(tensor, spec=replace(tensor.spec, attrs={**tensor.spec.attrs, "shard": shard}))
