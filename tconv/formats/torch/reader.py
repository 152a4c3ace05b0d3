"""PyTorch checkpoints (.pt, .pth, .bin, .ckpt) in and out, without torch: nothing in a file is ever executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from io import RawIOBase
from pathlib import Path
from typing import Any

from tconv.errors import NotTensor, TconvError
from tconv.formats import order
from tconv.formats.raw import file_size, opened, take
from tconv.formats.torch import legacy, zipped
from tconv.formats.torch.objects import StoredTensor
from tconv.formats.torch.sharing import identity, shared_places
from tconv.formats.torch.storage import Checkpoint, make_source
from tconv.formats.torch.tree import Flat, flatten
from tconv.tensor import Extra, Ref, Spec, Stream, Tensor
from tconv.writer import ReadOptions

# The magic number as a pickle: after two bytes that name the protocol and, from 4 on, the length of a frame.
_LEGACY = re.compile(rb"\x80[\x02-\x05](\x95[\s\S]{8})?\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.")
_HEAD = 24  # bytes that tell the layout


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """The tensors of a checkpoint by the keys that lead to them, joined by dots; a bare tensor is called ``name``.

    The tree has everything else: containers, numbers, texts, NumPy arrays (which are no tensors of the stream). Only
    the structure is read now. Tensors that share their bytes have one source, and ``alias_of`` names the first;
    ``attrs`` has "requires_grad", "parameter", "state" (Python attributes) and "place" (which storage was shared).
    """
    with opened(path) as file:
        checkpoint = _load(path, file)
        flat = flatten(checkpoint.value, name, checkpoint.pickled)
    tensors, others = _tensors(path, flat, checkpoint)
    tensors = _labelled(tensors, flat.tree)
    said = order.said_in(flat.tree)
    tensors = order.known(tensors, said) if said else tensors
    extra = Extra("data" if isinstance(flat.tree, Ref) else "weights", flat.tree)
    notes = tuple(f"{path}: {note}" for note in (*checkpoint.notes, *flat.notes))
    return Stream(tensors, extra, notes, others)


def _labelled(tensors: tuple[Tensor, ...], tree: Any) -> tuple[Tensor, ...]:
    """With the tensor known as labels that tconv has written: one by that name, of as many as there are paths."""
    paths = tree.get("paths") if isinstance(tree, Mapping) else None

    def known(spec: Spec) -> Spec:
        labels = spec.name == "labels" and isinstance(paths, list) and spec.shape[:1] == (len(paths),)
        return replace(spec, attrs={**spec.attrs, "label": True}) if labels else spec

    return tuple(replace(t, spec=known(t.spec)) for t in tensors)


def _load(path: Path, file: RawIOBase) -> Checkpoint:
    file_size(file)
    head = take(file, _HEAD)
    if head.startswith(b"PK"):
        return zipped.load(path, file)
    if _LEGACY.match(head):
        return legacy.load(file)
    if head.startswith(b"\x80"):
        raise TconvError(
            "a plain pickle and no checkpoint of torch.save: reading it would execute the code it holds",
            remedy="save the tensors as .safetensors, .npz or with torch.save",
        )
    raise TconvError("not a PyTorch checkpoint", remedy="it may be cut off or of another format")


def _tensors(path: Path, flat: Flat, checkpoint: Checkpoint) -> tuple[tuple[Tensor, ...], tuple[NotTensor, ...]]:
    """The tensors, and what stands among them and cannot be read."""
    places = shared_places(path, flat.tensors)
    firsts: dict[object, Tensor] = {}
    tensors, others = list[Tensor](), list(flat.others)
    for name, stored in flat.tensors.items():
        first = firsts.get(identity(stored))
        try:
            source = first.source if first else make_source(path, stored, checkpoint)
        except NotTensor as refusal:
            refusal.tensor = name
            others.append(refusal)
            continue
        except TconvError as problem:
            raise problem.at(file=path, tensor=name) from problem
        attrs = _attrs(stored)
        if name in places:
            attrs["place"] = places[name]
        alias_of = first.spec.name if first else None
        spec = Spec(name, stored.dtype, stored.shape, device=stored.storage.device, alias_of=alias_of, attrs=attrs)
        tensors.append(Tensor(spec, source))
        firsts.setdefault(identity(stored), tensors[-1])
    for other in others:
        other.at(file=path)
    return tuple(tensors), tuple(others)


def _attrs(stored: StoredTensor) -> dict[str, object]:
    attrs: dict[str, object] = {}
    if stored.requires_grad:
        attrs["requires_grad"] = True
    if stored.parameter:
        attrs["parameter"] = True
    if stored.state:
        attrs["state"] = dict(stored.state)
    return attrs
