"""Which tensors of a stream arithmetic touches: all of data; of weights the floating ones, but no optimizer state."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tconv.errors import TconvError, raise_all
from tconv.quant import noted
from tconv.tensor import Tensor
from tconv.training import training_state

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.step import Step
    from tconv.tensor import Stream


SETTLED = frozenset(("quantized", "made"))  # attributes of tensors that are what they are to be


def on_touched(
    stream: Stream,
    step: Step,
    change: Callable[[Tensor], Tensor],
    *,
    all_fields: bool = False,
    complex_too: bool = False,
    inert: Collection[str] = (),
) -> Stream:
    """Every tensor that ``step`` touches changed, the others as they are.

    ``all_fields``: integers beside other fields are touched too where the user said nothing of them. ``complex_too``:
    so are complex weights, which ``module.half()`` leaves alone. ``inert``: the names of tensors that ``change`` leaves
    as they are, so that nobody need be asked about them. Refusals are told together, each with its file, its tensor
    and the step. Raises ``TconvError`` if no tensor is touched, unless an
    earlier step has settled some. Notes tell of an optimizer's state and of complex
    weights that were passed over.
    """
    made: list[Tensor] = []
    problems: list[TconvError] = []
    state = _training_state(stream)
    weights = stream.extra.kind == "weights"
    alone = [t.spec.name for t in stream.tensors if weights and t.spec.dtype.kind == "complex" and not complex_too]
    # Those that it passes over: the names of a hundred thousand images that it touches take memory to no purpose.
    spared = {t.spec.name for t in stream.tensors if weights and not is_floating(t.spec.dtype)}.union(state, alone)
    there = {t.spec.name for t in stream.tensors if SETTLED.intersection(t.spec.attrs)}
    settled = noted.settled(stream) - there - spared
    earlier = {t.spec.name for t in stream.tensors if t.spec.name in settled}
    spared |= there | earlier | labels(stream)
    if not all_fields or stream.extra.fields is not None:
        spared |= _spared_fields(stream, step, inert)
    touched = any(t.spec.name not in spared for t in stream.tensors)
    for tensor in stream.tensors:
        name = tensor.spec.name
        try:
            made.append(tensor if name in spared else change(tensor))
        except TconvError as problem:
            found = problem.at(file=tensor.source.path, tensor=name, step=str(step), by_itself=True)
            problems.append(found)
    raise_all(problems)
    if not touched and not there:
        raise _nothing(stream, step, quantized=bool(earlier))
    notes = [f"{step}: nothing is left for it to do"] if not touched else []
    notes += [f"{step}: the optimizer's state stays as it is ({_count(state)})"] if state else []
    notes += [f"{step}: complex weights stay as they are ({_count(alone)})"] if alone else []
    notes += [f"{step}: what is quantized stays as it is ({_count(sorted(earlier))})"] if earlier else []
    return stream.with_tensors(made, *notes)


def labels(stream: Stream) -> set[str]:
    """The names of tensors that are known to be labels, and that ``--fields`` does not name: no step changes them
    beside what they are labels of.
    """
    found = {t.spec.name for t in stream.tensors if t.spec.attrs.get("label")}
    alone = len(found) == len(stream.tensors)
    return set() if alone else found.difference(fnmatch.filter(found, stream.extra.fields or ""))


def _spared_fields(stream: Stream, step: Step, inert: Collection[str]) -> set[str]:
    """The integer fields of data files that hold several: labels or indices, arithmetic on which must be asked for.
    Those that are ``inert`` are no matter.

    Raises ``TconvError``, listing them, if the user has not said what is to become of them. What has axes is a picture
    and no label.
    """
    by_file: dict[str, list[Tensor]] = defaultdict(list)
    if stream.extra.kind == "data" and any(map(_may_be_labels, stream.tensors)):  # a hundred thousand images are not
        for tensor in stream.tensors:
            by_file[str(tensor.source.path)].append(tensor)
    told = labels(stream).union(inert)
    least = 1 if stream.extra.partial else 2
    fields = {file: _integers(tensors, told) for file, tensors in by_file.items() if len(tensors) >= least}
    names = [t.spec.name for found in fields.values() for t in found]
    wanted = stream.extra.fields
    if names and wanted is None:
        problems = [
            TconvError(
                f"it would change integer fields, which may be labels: {_fields(found)}", file=file, step=str(step)
            )
            for file, found in fields.items()
            if found
        ]
        raise_all(problems, remedy=_CHOOSE_FIELDS)
    # A field that is meant may have become floats in an earlier step.
    every = [t.spec.name for tensors in by_file.values() for t in tensors]
    if names and wanted and not fnmatch.filter(every, wanted):
        raise TconvError(f"--fields {wanted!r} matches none of the integer fields {', '.join(names)}", step=str(step))
    return set(names).difference(fnmatch.filter(names, wanted or ""))


_CHOOSE_FIELDS = "--fields '' leaves them as they are, --fields '*' means all of them too, --fields 'x*' those so named"


def _integers(tensors: list[Tensor], told: set[str]) -> list[Tensor]:
    return [t for t in tensors if _may_be_labels(t) and t.spec.name not in told]


def _may_be_labels(tensor: Tensor) -> bool:
    return tensor.spec.axes is None and not is_floating(tensor.spec.dtype)


def _fields(tensors: list[Tensor]) -> str:
    return ", ".join(f"{t.spec.name} ({t.spec.dtype})" for t in tensors)


def is_floating(dtype: DType) -> bool:
    """Whether arithmetic on weights concerns it: floats, and complex numbers."""
    return dtype.kind in ("float", "complex")


def _training_state(stream: Stream) -> list[str]:
    """The floating tensors of an optimizer and its like, which keep their dtype unless the user wants all of it."""
    if stream.extra.kind != "weights" or stream.extra.whole:
        return []
    names = training_state(stream.extra.tree)
    return [t.spec.name for t in stream.tensors if t.spec.name in names and is_floating(t.spec.dtype)]


def _nothing(stream: Stream, step: Step, *, quantized: bool) -> TconvError:
    if not stream.tensors:
        return TconvError("there is no tensor", step=str(step))
    dtypes = sorted({t.spec.dtype.name for t in stream.tensors})
    return TconvError(
        f"it touches no tensor: the dtypes here are {', '.join(dtypes)}",
        remedy=_QUANTIZED if quantized else _remedy(stream),
        file=stream.tensors[0].source.path,
        step=str(step),
    )


def _remedy(stream: Stream) -> str:
    if stream.extra.kind == "weights":
        return "of weights only floating tensors are converted, and no optimizer state"
    return (
        "" if stream.extra.fields is None else "--fields '*' means integer fields too, which it now leaves as they are"
    )


_QUANTIZED = "it is quantized already: --step dequantize makes floats of it first"


def _count(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
