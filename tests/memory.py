"""A source of tensors that lie in memory, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.dtypes import DType, from_numpy
from tconv.ops import Permute, Whole
from tconv.tensor import Extra, Range, Spec, Stream, Tensor

if TYPE_CHECKING:
    from tconv.ops import Array


@dataclass(frozen=True, eq=False)
class ArraySource:
    """The elements of ``array``."""

    array: Array
    path: Path = field(default=Path("memory"))
    seekable: bool = True

    @property
    def dtype(self) -> DType:
        found = from_numpy(self.array.dtype)
        assert found is not None
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        values: Array = self.array.reshape(-1)[lo:hi]
        if out is None:
            return values
        np.copyto(out, values)
        return out


def tensor(array: Array, name: str = "x", axes: str | None = None, known: Range | None = None) -> Tensor:
    """A tensor of the values of ``array``, with nothing to be done to it yet."""
    source = ArraySource(array)
    return Tensor(Spec(name, source.dtype, source.shape, axes, known), source)


def stream(*tensors: Tensor) -> Stream:
    return Stream(tensors, Extra("data"))


def rearranged(made: Tensor) -> Array:
    """What the geometric operations of ``made`` do to its array; checks that its spec foretold it."""
    assert isinstance(made.source, ArraySource)
    x = made.source.array
    for op in made.ops:
        if isinstance(op, Permute):
            x = x.transpose(op.perm)
        else:
            assert isinstance(op, Whole)
            before = x.copy()
            x, given = op.apply(x), x
            np.testing.assert_array_equal(given, before)  # what goes in is not changed
    assert (x.shape, x.dtype) == (made.spec.shape, made.spec.dtype.numpy)
    return x
