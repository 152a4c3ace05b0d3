"""Tied tensors on their way out: once with all their names (``--tie``), or whole under each, as the user wishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tconv.errors import UsageError
from tconv.formats.ties import OWN_KEYS, TIED, is_tied, tied
from tconv.selection import first_few
from tconv.twins import firsts

if TYPE_CHECKING:
    from tconv.targets import Target
    from tconv.tensor import Spec, Stream, Tensor

ABLE = "safetensors"  # the format that can do it
ALWAYS = "pt"  # the one that does nothing else


def refuse_unable(chosen: Sequence[Target]) -> None:
    """Refuse ``--tie`` where no target can do it."""
    if any(target.split for target in chosen):
        raise UsageError("--tie and --split exclude each other", remedy="one is a file for each tensor")
    if not any(target.format.name in (ABLE, ALWAYS) for target in chosen):
        names = " and ".join(sorted({target.format.title for target in chosen}))
        raise UsageError(
            f"--tie is for .safetensors, and nothing in a {names} can be tied",
            remedy="leave it out, or -o x.safetensors",
        )


def settle(stream: Stream, target: Target, *, wanted: bool) -> Stream:
    """The tensors that ``target`` holds by name only, marked so; a note on what is written twice or cannot be tied.

    Twins are tied: tensors of the same bytes, read in the same way, to which the same is done. Those that share a
    part of their bytes, or read them in another order, are written whole.
    """
    tensors = [_whole(tensor) for tensor in stream.tensors]
    if target.format.name != ABLE or target.split:
        idle = ("--tie is idle: a PyTorch checkpoint holds tied weights once anyway",) if wanted else ()
        return stream.with_tensors(tensors, *idle)
    twins = _twins(tensors)
    if not wanted:
        note = f"{target.shown}: tied weights are written whole: {_listed(twins)}; --tie writes them once"
        return stream.with_tensors(tensors, *([note] if twins else []))
    clashing = {name for name in twins if name in OWN_KEYS or name in stream.extra.metadata}
    made = [tied(t.spec.name, twins[t.spec.name]) if t.spec.name in twins.keys() - clashing else t for t in tensors]
    return stream.with_tensors(made, *(f"{target.shown}: {note}" for note in _untied(made, clashing)))


def _whole(tensor: Tensor) -> Tensor:
    """As one with bytes of its own in the file."""
    if not is_tied(tensor.spec):
        return tensor
    attrs = {key: value for key, value in tensor.spec.attrs.items() if key != TIED}
    return replace(tensor, spec=replace(tensor.spec, attrs=attrs))


def _twins(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """By name, the tensors whose values are those of an earlier one, with that one."""
    pairs = zip(tensors, firsts(tensors), strict=True)
    return {tensor.spec.name: first for tensor, first in pairs if first is not tensor}


def _listed(twins: Mapping[str, Tensor]) -> str:
    return first_few(f"{name} (as {first.spec.name})" for name, first in twins.items())


def _untied(tensors: Sequence[Tensor], clashing: set[str]) -> Iterator[str]:
    """What ``--tie`` does not do."""
    if clashing:
        yield f"written whole, as the metadata have something else by the name: {first_few(sorted(clashing))}"
    views = [name for name in _views(tensors) if name not in clashing]
    if views:
        yield f"written whole, as they share bytes with others without being the same tensor: {first_few(views)}"
    if not views and not clashing and not any(is_tied(tensor.spec) for tensor in tensors):
        yield "--tie is idle: no two tensors in it are the same"


def _views(tensors: Sequence[Tensor]) -> list[str]:
    """Those that lay in one storage with a larger tensor, or in another order."""
    by_storage: dict[str, list[Spec]] = {}
    for tensor in tensors:
        if "place" in tensor.spec.attrs and not is_tied(tensor.spec):
            by_storage.setdefault(tensor.spec.attrs["place"]["storage"], []).append(tensor.spec)
    found = []
    for specs in by_storage.values():
        largest = max(specs, key=lambda spec: spec.size)
        found += [spec.name for spec in specs if spec is not largest]
    return found
