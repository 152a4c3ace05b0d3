"""inspect: what an array, a mapping of arrays or the tensors of files are, and what their values are like."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tconv.arrays.library import library, library_of
from tconv.errors import TconvError, raise_all
from tconv.inputs import find
from tconv.measure.statistics import Measure
from tconv.measure.survey import survey
from tconv.registry import reader
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.inputs import Input
    from tconv.measure.statistics import Summary
    from tconv.tensor import Range, Stream

BLOCK = 1 << 20  # elements measured in one go


@dataclass(frozen=True)
class Info:
    """A tensor's description.

    ``kind``: its library (``numpy``, ``torch``, ``tensorflow``, ``jax``), or the format of its file. ``nbytes``: of its
    elements. ``axes`` (``HWC``, ``NCHW``) and ``range`` are None where nobody said them, as of all arrays in memory.
    ``contiguous``: in C order without gaps, and in native byte order. ``values``: counts, extremes, mean and quantiles,
    if they were asked for.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    device: str = "cpu"
    axes: str | None = None
    range: Range | None = None
    contiguous: bool = True
    requires_grad: bool = False
    values: Summary | None = None


@overload
def inspect(x: str | os.PathLike[str] | Mapping[str, Any], *, values: bool = ...) -> dict[str, Info]: ...
@overload
def inspect(x: Any, *, values: bool = ...) -> Info: ...
def inspect(x: Any, *, values: bool = False) -> Info | dict[str, Info]:
    """What ``x`` is: an array or tensor of any library; or, by name, what is in a mapping of such or in files.

    ``x`` as text or a path is a file, a folder or a glob, of which only headers are read unless ``values`` asks what
    the values are like; names are then ``FILE: NAME`` if there are several files.

    Raises ``TconvError`` for what is no tensor and for files that cannot be read.

    >>> inspect(torch.ones(2, 3, dtype=torch.bfloat16))
    Info(name='', kind='torch', dtype='bfloat16', shape=(2, 3), nbytes=12, device='cpu', …)
    """
    if isinstance(x, str | os.PathLike):
        return _of_files(os.fspath(x), values)
    if isinstance(x, Mapping):
        return {name: _of_array(value, str(name), values) for name, value in x.items()}
    return _of_array(x, "", values)


def _of_array(x: Any, name: str, values: bool) -> Info:
    kind = library_of(x)
    adapter = library(kind)
    try:
        if kind == "numpy" and not isinstance(x, np.ndarray):
            x = adapter.to_numpy(x)
        dtype = adapter.dtype_of(x)
        shape = tuple(map(int, x.shape))
        return Info(
            name,
            kind,
            dtype.name,
            shape,
            dtype.nbytes(math.prod(shape)),
            adapter.device_of(x),
            contiguous=adapter.is_contiguous(x),
            requires_grad=adapter.requires_grad(x),
            values=_summary(x) if values else None,
        )
    except TconvError as problem:
        raise problem.at(tensor=name) from None


def _summary(x: Any) -> Summary:
    adapter = library(library_of(x))
    measure, flat = Measure(adapter.dtype_of(x)), adapter.to_numpy(x).reshape(-1)
    for lo in range(0, flat.size, BLOCK):
        measure.update(np.ascontiguousarray(flat[lo : lo + BLOCK]))
    return measure.summary()


def _of_files(word: str, values: bool) -> dict[str, Info]:
    found = find([word], every=True)
    raise_all(found.failures)
    infos: dict[str, Info] = {}
    for one in found.inputs:
        stream = _read(one)
        summaries = _surveyed(stream) if values else [None] * len(stream.tensors)
        for tensor, summary in zip(stream.tensors, summaries, strict=True):
            spec = tensor.spec
            name = spec.name if len(found.inputs) == 1 else f"{one.path}: {spec.name}"
            grad = bool(spec.attrs.get("requires_grad"))
            infos[name] = Info(
                spec.name, one.format.name, spec.dtype.name, spec.shape, spec.nbytes, spec.device, spec.axes,
                spec.range, requires_grad=grad, values=summary,
            )  # fmt: skip
    return infos


def _read(one: Input) -> Stream:
    try:
        return reader(one.format)(one.path, one.name, ReadOptions(channels="keep", frames="all"))
    except TconvError as problem:
        raise problem.at(file=one.path) from None
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path) from problem


def _surveyed(stream: Stream) -> list[Summary | None]:
    summaries, problems = survey(stream.tensors)
    raise_all(problems)
    return summaries
