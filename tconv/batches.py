"""Batches: the tensors of one target N by N, each batch in a file of its own, by names that sort and that a glob finds.

``-o out.npy`` becomes ``out-00000.npy``, ``out-00001.npy`` …; in all of them the array has the same name, ``out``.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.errors import TconvError, UsageError
from tconv.parts import Parts
from tconv.selection import first_few
from tconv.targets import Target, is_folder

if TYPE_CHECKING:
    from tconv.tensor import Stream

DIGITS = 5  # of the number of a batch; more where there are more batches


def check_options(size: int | None, drop_last: bool, *, split: bool, pack: bool) -> None:
    """Refuse options that do not go together."""
    if size is None:
        if drop_last:
            raise UsageError("--drop-last without batches", remedy="say how large they are: --batch-size N")
        return
    other = "--split" if split else "--shard-size" if pack else ""
    if other:
        raise UsageError(f"--batch-size and {other} exclude each other", remedy="a batch is a file already")


def cut(stream: Stream, size: int, *, drop_last: bool) -> list[Stream]:
    """The tensors in order, ``size`` to a stream, the last one of what is left unless ``drop_last``; what the user
    should hear stays with the first. Raises ``TconvError`` for weights, and if nothing is left.
    """
    if stream.extra.kind == "weights":
        raise TconvError(
            "--batch-size is for data, and this holds the weights of a model",
            remedy="--shard-size puts weights into several files",
        )
    tensors, notes = stream.tensors, stream.notes
    kept = len(tensors) - len(tensors) % size if drop_last else len(tensors)
    if not kept:
        raise TconvError(
            f"--drop-last leaves nothing: there is no batch of {size}, only {len(tensors)}", remedy="leave it out"
        )
    if kept < len(tensors):
        names = first_few(t.spec.name for t in tensors[kept:])
        notes += (f"--drop-last leaves out {len(tensors) - kept} of {len(tensors)}: {names}",)
    first, *others = (tensors[lo : lo + size] for lo in range(0, kept, size))
    return [replace(stream, tensors=first, notes=notes), *(replace(stream, tensors=t, notes=()) for t in others)]


def numbered(target: Target, streams: Sequence[Stream]) -> list[Target]:
    """A target for each batch, made of those inputs that its tensors are from."""
    inputs = {one.path: one for one in target.inputs}
    digits = max(DIGITS, len(str(len(streams) - 1)))
    made = []
    for n, stream in enumerate(streams):
        path = target.path.with_name(f"{target.path.stem}-{n:0{digits}d}{target.path.suffix}")
        shown = target.shown if is_folder(target.shown) else str(Path(target.shown).with_name(path.name))
        own = tuple(inputs[source] for source in dict.fromkeys(_sources(stream)))
        made.append(replace(target, path=path, shown=shown, inputs=own, batched=True))
    return made


def _sources(stream: Stream) -> Iterator[Path]:
    for tensor in stream.tensors:
        parts = tensor.source.parts if isinstance(tensor.source, Parts) else (tensor,)
        yield from (part.source.path for part in parts)


def from_earlier(targets: Iterable[Target]) -> list[TconvError]:
    """Files that lie where the batches go and differ from their names in the number only, each as a refusal: who looks
    for the batches finds them too.
    """
    planned = {target.path for target in targets if target.batched}
    digits = "[0-9]" * DIGITS
    patterns = {(p.parent, re.sub("[0-9]+$", digits, glob.escape(p.stem)) + glob.escape(p.suffix)) for p in planned}
    found = sorted({path for folder, pattern in patterns for path in folder.glob(pattern)} - planned)
    reason = "is there already, and would pass for one of these batches"
    return [TconvError(reason, remedy="remove it, or give the batches another name", file=path) for path in found]
