"""A checkpoint in shards: which tensor goes into which file, and what comes with them (the index, what is carried)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import registry
from tconv.errors import TconvError
from tconv.formats.ties import is_tied
from tconv.small_files import read_small
from tconv.targets import SHARD_NAMES, Target

if TYPE_CHECKING:
    from tconv.registry import Format
    from tconv.tensor import Stream, Tensor

CONFIG = "config.json"
OF_THE_SHARDS = ("total_size", "total_parameters")  # what an index says that holds for just these tensors


@dataclass(frozen=True)
class Companion:
    """A file of the plan that is written as it is: ``content`` itself, or a copy of the file that it names."""

    path: Path
    target: Target
    content: bytes | Path

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def write(self, path: Path) -> None:
        """Create it at ``path``, on the disk when this returns. Raises ``TconvError``."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                if isinstance(self.content, bytes):
                    file.write(self.content)
                else:
                    with self.content.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise TconvError(f"cannot be written: {problem.strerror or problem}", file=self.path) from problem


def divide(stream: Stream, form: Format, limit: int | None) -> dict[str, Stream]:
    """The stream of each shard by its file name: as they were read, or packed anew into shards of ``limit`` bytes.

    A tensor that has no bytes of its own goes where those are that it has. Raises ``TconvError`` for data.
    """
    if stream.extra.kind == "data":
        raise TconvError("shards are for the weights of a model, and this holds data", remedy="write one file with -o")
    own = [tensor for tensor in stream.tensors if not is_tied(tensor.spec)]
    if limit is None:
        shards = _as_read(own)
        if not all(Path(name).suffix in form.suffixes for name in shards):
            shards = _numbered(list(shards.values()), form)
    else:
        shards = _numbered(pack(_bundles(own, form), limit), form)
    shards = {name: [*tensors, *_tied_to(tensors, stream)] for name, tensors in shards.items()}
    extra = replace(stream.extra, tree=None)
    return {name: replace(stream, tensors=_standing(tensors), extra=extra) for name, tensors in shards.items()}


def _as_read(tensors: Sequence[Tensor]) -> dict[str, list[Tensor]]:
    """Each in the shard that it was read from; what a step has made goes with what stands before it."""
    known = [tensor.spec.attrs["shard"] for tensor in tensors if "shard" in tensor.spec.attrs]
    shard = known[0] if known else ""
    shards: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        shard = tensor.spec.attrs.get("shard", shard)
        shards.setdefault(shard, []).append(tensor)
    return shards


def _tied_to(tensors: Sequence[Tensor], stream: Stream) -> list[Tensor]:
    names = {tensor.spec.name for tensor in tensors}
    return [tensor for tensor in stream.tensors if is_tied(tensor.spec) and tensor.spec.alias_of in names]


def _bundles(tensors: Sequence[Tensor], form: Format) -> list[list[Tensor]]:
    """Each tensor that has bytes in a file of that format, and after it those that are in there with it."""
    holders = registry.writer(form).holders([tensor.spec for tensor in tensors])
    bundles = {i: [tensors[i]] for i, holder in enumerate(holders) if holder == i}
    for i, holder in enumerate(holders):
        if holder != i:
            bundles[holder].append(tensors[i])
    return list(bundles.values())


def pack(bundles: Sequence[list[Tensor]], limit: int) -> list[list[Tensor]]:
    """Tensors in order, a new shard where the next one would make it larger than ``limit`` bytes; a tensor that is
    larger has a shard of its own. Of each bundle the first has the bytes of all.

    Source: ``split_state_dict_into_shards_factory`` of huggingface_hub.
    """
    shards: list[list[Tensor]] = []
    current: list[Tensor] = []
    size = 0
    for bundle in bundles:
        nbytes = bundle[0].spec.nbytes
        if nbytes > limit:
            shards.append(bundle)
            continue
        if size + nbytes > limit:
            shards.append(current)
            current, size = [], 0
        current += bundle
        size += nbytes
    return [*shards, current] if current else shards


def _numbered(shards: Sequence[list[Tensor]], form: Format) -> dict[str, list[Tensor]]:
    """By the names that transformers look for."""
    stem, suffix = SHARD_NAMES[form.name]
    if len(shards) == 1:
        return {f"{stem}{suffix}": shards[0]}
    return {f"{stem}-{n:05d}-of-{len(shards):05d}{suffix}": shard for n, shard in enumerate(shards, 1)}


def _standing(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """An alias of a tensor that is in another shard stands on its own."""
    here = {tensor.spec.name for tensor in tensors}
    return tuple(t if t.spec.alias_of in here else replace(t, spec=replace(t.spec, alias_of=None)) for t in tensors)


def companions(target: Target, shards: Mapping[str, Stream], *, whole: bool) -> list[Companion]:
    """What is written beside ``shards``: what the input carries, and last an index, which a single file needs not.

    ``whole``: no tensor was left out, so that what the old index says of all of them holds.
    """
    found = [Companion(path, target, source) for path, source in _carried(target)]
    config = registry.writer(target.format).config(
        [t.spec for s in shards.values() for t in s.tensors], _config(target)
    )
    if config is not None:
        place = target.path / CONFIG
        found = [*(one for one in found if one.path != place), Companion(place, target, config)]
    stem, suffix = SHARD_NAMES[target.format.name]
    if set(shards) != {f"{stem}{suffix}"}:
        content = index(shards, target.format, whole=whole)
        found.append(Companion(target.path / _index_name(target, shards), target, content))
    return found


def _config(target: Target) -> bytes | None:
    """What the configuration beside the weights that are read says, if there is one."""
    path = target.inputs[0].path.parent / CONFIG
    return read_small(path, "configuration") if path.exists() else None


def _carried(target: Target) -> list[tuple[Path, Path]]:
    """Where to, and from where; without what lies in the target itself, where that is in the folder that is read."""
    (one,) = target.inputs
    if one.root is None:
        return []
    real = Path(os.path.realpath(one.root))
    pairs = [(path.relative_to(one.root), path) for path in one.carried]
    inside = target.path.is_relative_to(real)
    return [(target.path / to, path) for to, path in pairs if not (inside and (real / to).is_relative_to(target.path))]


def _index_name(target: Target, shards: Mapping[str, Stream]) -> str:
    """That of the index that was read, if the shards have kept their names."""
    (one,) = target.inputs
    stem, suffix = SHARD_NAMES[target.format.name]
    kept = all(t.spec.attrs.get("shard", name) == name for name, stream in shards.items() for t in stream.tensors)
    return one.path.name if kept and one.format.name == "index" else f"{stem}{suffix}.index.json"


def index(shards: Mapping[str, Stream], form: Format, *, whole: bool) -> bytes:
    """The index of these shards as transformers write it, with what the old one said besides; names that are tied to
    a tensor are not in it.
    """
    places = {
        tensor.spec.name: shard
        for shard, stream in shards.items()
        for tensor in stream.tensors
        if not is_tied(tensor.spec)
    }
    metadata: dict[str, Any] = dict(next(iter(shards.values())).extra.index)
    for key in () if whole else OF_THE_SHARDS:
        metadata.pop(key, None)
    bundles = [bundle for stream in shards.values() for bundle in _bundles(stream.tensors, form)]
    metadata["total_size"] = sum(bundle[0].spec.nbytes for bundle in bundles if not is_tied(bundle[0].spec))
    found = {"metadata": metadata, "weight_map": places}
    return (json.dumps(found, indent=2, sort_keys=True) + "\n").encode()
