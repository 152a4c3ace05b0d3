"""Arrays in memory as a stream, through steps, and back to arrays of the library that they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tconv import arguments
from tconv.api.ahead import arrays
from tconv.api.passing import passed
from tconv.api.words import in_python
from tconv.arrays.audit import log
from tconv.arrays.library import library, library_of
from tconv.beside import with_tensors_beside
from tconv.errors import TconvError, UsageError
from tconv.memory import ArraySource
from tconv.ops import Promise, anywhere
from tconv.request import Request
from tconv.step import Step
from tconv.tensor import Extra, Spec, Stream, Tensor

if TYPE_CHECKING:
    from tconv.tensor import Range

_RANGES: dict[str, Range] = {"bool": (0, 1), "uint8": (0, 255), "uint16": (0, 65535)}  # as those of .npy files
_PLACE = Path("memory")  # what messages call the file of what is in none


class Said(NamedTuple):
    """What the caller says of arrays: see ``Pipeline.__call__``."""

    axes: str | None = None
    range: Range | None = None
    fields: str | None = None
    weights: bool = False


def said(axes: Any, range: Any, fields: Any, weights: Any) -> Said:  # noqa: A002  # as the option is called
    """What the caller says, checked. Raises ``UsageError``."""
    if not isinstance(fields, str | None):
        raise UsageError(f"fields is {fields!r}", remedy="give a glob, '' for none of the integer fields")
    return Said(
        None if axes is None else arguments.axes(axes, "axes"),
        None if range is None else arguments.interval(range),
        fields,
        bool(weights),
    )


def through(steps: Sequence[Step], named: Mapping[str, Any], said: Said) -> dict[str, Any]:
    """Every array after the steps, by name; those that nothing was done to are the same objects."""
    if not named:
        raise TconvError("there is no array")
    keys = {str(key): key for key in named}
    if len(keys) < len(named):
        raise TconvError("two of the keys are the same text", remedy="give texts as keys")
    named = {str(key): x for key, x in named.items()}
    extra = Extra("weights" if said.weights else "data", fields=said.fields)
    stream = Stream(tuple(_tensor(name, x, said) for name, x in named.items()), extra)
    with in_python(input_layout="axes"):
        stream = with_tensors_beside(passed(Request(inputs=()), steps, stream))
    for note in stream.notes:
        log.warning("%s", note)
    touched = [t for t in stream.tensors if not _is_as_it_was(t, named)]
    made = dict(zip((t.spec.name for t in touched), (values for _, values in arrays(touched)), strict=True))
    like = next(iter(named.values()))
    return {
        keys.get(t.spec.name, t.spec.name): _back(made[t.spec.name], named.get(t.spec.name, like))
        if t.spec.name in made
        else named[t.spec.name]
        for t in stream.tensors
    }


def _tensor(name: str, x: Any, said: Said) -> Tensor:
    try:
        values = library(library_of(x)).to_numpy(x)
        dtype = library("numpy").dtype_of(values)
    except TconvError as problem:
        raise problem.at(tensor=name) from None
    axes = said.axes
    if axes is not None and len(axes) != values.ndim:
        raise TconvError(f"axes={axes!r} names {len(axes)} axes, and the shape is {values.shape}", tensor=name)
    spec = Spec(name, dtype, values.shape, axes=axes, range=None if said.weights else _RANGES.get(dtype.name))
    flat = np.ascontiguousarray(values).reshape(-1)
    tensor = Tensor(spec, ArraySource(_PLACE, dtype, values.shape, flat))
    return tensor if said.range is None else tensor.then(Promise(range=said.range))


def _is_as_it_was(tensor: Tensor, named: Mapping[str, Any]) -> bool:
    return tensor.spec.name in named and all(isinstance(op, Promise) for op in anywhere(tensor.ops))


def _back(values: np.ndarray[Any, Any], like: Any) -> Any:
    """An array of the library of ``like``, where that is."""
    adapter = library(library_of(like))
    if isinstance(like, np.generic) and not values.shape:
        return values[()]
    return adapter.make(values, None if adapter.on_cpu(like) else adapter.device_of(like), None)
