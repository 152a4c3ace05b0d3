"""Which tensors are the same: those of one source to which the same is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tconv.ops import CastTo, Promise, anywhere

if TYPE_CHECKING:
    from tconv.ops import Op
    from tconv.tensor import Spec, Stream, Tensor


def firsts(tensors: Sequence[Tensor]) -> list[Tensor]:
    """For each tensor the first that is the same, mostly itself."""
    known: dict[tuple[object, ...], list[tuple[Tensor, tuple[Op, ...]]]] = {}
    found = []
    for tensor in tensors:
        alike = known.setdefault((id(tensor.source), tensor.spec.dtype, tensor.spec.shape), [])
        done = anywhere(tensor.ops)
        first = next((t for t, ops in alike if ops == done), None)
        if first is None:
            alike.append((tensor, done))
        found.append(first or tensor)
    return found


def settled(stream: Stream) -> Stream:
    """The stream saying what is the same, and what a part of what, now that steps have been at it.

    ``alias_of`` names the first that is the same. ``place``, where a tensor lay when it was read, tells apart by
    ``chain`` what differs in what is done to it: only among those of one chain is one a part of another. It is gone
    where more than a cast is done: numbers by channel or a permutation do not do the same to a part and to the whole.
    """
    chains: dict[tuple[Op, ...], int] = {}
    made = []
    for tensor, first in zip(stream.tensors, firsts(stream.tensors), strict=True):
        spec = _aliasing(tensor.spec, None if first is tensor else first.spec.name)
        if "place" in spec.attrs:
            spec = _placed(spec, anywhere(tensor.ops), chains)
        made.append(tensor if spec is tensor.spec else replace(tensor, spec=spec))
    return stream.with_tensors(made)


def _aliasing(spec: Spec, name: str | None) -> Spec:
    return spec if spec.alias_of == name else replace(spec, alias_of=name)


def _placed(spec: Spec, ops: tuple[Op, ...], chains: dict[tuple[Op, ...], int]) -> Spec:
    attrs = {key: value for key, value in spec.attrs.items() if key != "place"}
    if all(isinstance(op, CastTo | Promise) for op in ops):
        attrs["place"] = {**spec.attrs["place"], "chain": chains.setdefault(ops, len(chains))}
    return replace(spec, attrs=attrs)
