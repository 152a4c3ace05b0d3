"""Checkpoints for tests: saved by the real torch, read and written by tconv, compared value by value."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tconv.dtypes import DTYPES
from tconv.formats.torch.reader import read
from tconv.formats.torch.writer import TorchWriter
from tconv.tensor import Ref, Stream
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array


def saved(path: Path, value: object, *, legacy: bool = False, protocol: int = 2) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=not legacy, pickle_protocol=protocol)
    return path


def read_pt(path: Path) -> Stream:
    return read(path, "x", ReadOptions())


def written(path: Path, stream: Stream, piece: int = 5) -> TorchWriter:
    """The stream as tconv writes it, in shuffled pieces of a few elements."""
    writer = TorchWriter([t.spec for t in stream.tensors], stream.extra)
    writer.open(path)
    pieces = [
        (i, lo, min(lo + piece, t.spec.size))
        for i, t in enumerate(stream.tensors)
        if writer.stored(i)
        for lo in range(0, t.spec.size, piece)
    ]
    random.Random(0).shuffle(pieces)
    for i, lo, hi in pieces:
        writer.write(i, lo, stream.tensors[i].source.read(lo, hi))
    writer.commit()
    assert path.stat().st_size == writer.size
    return writer


def to_numpy(tensor: torch.Tensor) -> Array:
    """Its values in C order, also of the dtypes that torch itself cannot hand to NumPy."""
    plain = torch.empty(tensor.shape, dtype=tensor.dtype)
    plain.copy_(tensor.detach().resolve_conj().resolve_neg())
    dtype = DTYPES[str(tensor.dtype).removeprefix("torch.")].numpy
    bits: Array = plain.reshape(-1).view(torch.uint8).numpy()
    return bits.view(dtype).reshape(tuple(tensor.shape))


def tensors_of(value: Any, tree: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of ``value`` at the places where ``tree`` has references, by the names these give."""
    if isinstance(tree, Ref):
        yield tree.name, value
        return
    assert not isinstance(value, torch.Tensor)
    if isinstance(tree, dict):
        assert list(value) == list(tree)
        for key in tree:
            yield from tensors_of(value[key], tree[key])
    elif isinstance(tree, list | tuple):
        assert len(value) == len(tree)
        for item, part in zip(value, tree, strict=True):
            yield from tensors_of(item, part)


def assert_alike(got: Any, want: Any, place: str = "") -> None:
    """The same types, keys, values and attributes, and of tensors the same bits."""
    assert type(got) is type(want), place
    if isinstance(want, torch.Tensor):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), place
        assert (got.requires_grad, vars(got)) == (want.requires_grad, vars(want)), place
        assert to_numpy(got).tobytes() == to_numpy(want).tobytes(), place
    elif isinstance(want, dict):
        assert list(got) == list(want), place
        assert getattr(got, "__dict__", {}) == getattr(want, "__dict__", {}), place
        if isinstance(want, defaultdict):
            assert got.default_factory is want.default_factory, place
        for key in want:
            assert_alike(got[key], want[key], f"{place}[{key!r}]")
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), place
        for n, (item, other) in enumerate(zip(got, want, strict=True)):
            assert_alike(item, other, f"{place}[{n}]")
    elif isinstance(want, np.ndarray):
        assert got.dtype.newbyteorder("=") == want.dtype.newbyteorder("="), place  # NumPy may make it native
        assert got.shape == want.shape, place
        assert got.flags.f_contiguous == want.flags.f_contiguous, place
        assert got.tolist() == want.tolist(), place
    else:
        assert got == want, place


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
