"""Which tensors of a stream arithmetic touches: all of data; of weights the floating ones, but no optimizer state."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tconv.errors import TconvError, raise_all
from tconv.tensor import Tensor

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.tensor import Extra, Step, Stream

_OPTIMIZER = re.compile(r"optimizer\w*\.")  # optimizer.state.0.exp_avg, optimizer_states.0.…, optimizer_state_dict.…


def on_touched(stream: Stream, step: Step, change: Callable[[Tensor], Tensor]) -> Stream:
    """Every tensor that ``step`` touches changed, the others as they are.

    Refusals are told together, each with its file, its tensor and the step. Raises ``TconvError`` if no tensor is
    touched. A note tells of an optimizer's state that was passed over.
    """
    made: list[Tensor] = []
    problems: list[TconvError] = []
    state = [t.spec.name for t in stream.tensors if _is_optimizer_state(t, stream.extra)]
    touched = {t.spec.name for t in stream.tensors if _is_touched(t, stream.extra)}.difference(state)
    for tensor in stream.tensors:
        name = tensor.spec.name
        try:
            made.append(change(tensor) if name in touched else tensor)
        except TconvError as problem:
            problems.append(problem.at(file=tensor.source.path, tensor=name, step=str(step)))
    raise_all(problems)
    if not touched:
        raise _nothing(stream, step)
    notes = [f"{step}: the optimizer's state stays as it is ({_count(state)})"] if state else []
    return stream.with_tensors([_free(t, touched) for t in made], *notes)


def refuse_mixed_fields(stream: Stream, step: Step, remedy: str = "choose fields with --only and --skip") -> None:
    """Refuse data with integer fields beside floating ones: they are labels or indices, and not what is meant."""
    names = mixed_fields(stream)
    raise_all(
        [
            TconvError(
                f"a field of {t.spec.dtype} beside floating ones, which would be changed with them",
                remedy=remedy,
                file=t.source.path,
                tensor=t.spec.name,
                step=str(step),
            )
            for t in stream.tensors
            if t.spec.name in names
        ]
    )


def mixed_fields(stream: Stream) -> set[str]:
    """The names of the tensors that are no floats, of those data files that hold floats too."""
    if stream.extra.kind != "data":
        return set()
    files: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in stream.tensors:
        files[str(tensor.source.path)].append(tensor)
    names: set[str] = set()
    for tensors in files.values():
        others = {t.spec.name for t in tensors if not is_floating(t.spec.dtype)}
        if len(others) < len(tensors):
            names |= others
    return names


def is_floating(dtype: DType) -> bool:
    """Whether arithmetic on weights concerns it: floats, and complex numbers."""
    return dtype.kind in ("float", "complex")


def _is_touched(tensor: Tensor, extra: Extra) -> bool:
    return extra.kind == "data" or is_floating(tensor.spec.dtype)


def _is_optimizer_state(tensor: Tensor, extra: Extra) -> bool:
    if extra.kind != "weights" or extra.tree is None or extra.whole:
        return False
    return is_floating(tensor.spec.dtype) and bool(_OPTIMIZER.match(tensor.spec.name))


def _free(tensor: Tensor, touched: set[str]) -> Tensor:
    """An alias of a tensor that fared otherwise has bytes of its own from now on."""
    base = tensor.spec.alias_of
    if base is None or (base in touched) == (tensor.spec.name in touched):
        return tensor
    return replace(tensor, spec=replace(tensor.spec, alias_of=None))


def _nothing(stream: Stream, step: Step) -> TconvError:
    if not stream.tensors:
        return TconvError("there is no tensor", step=str(step))
    dtypes = sorted({t.spec.dtype.name for t in stream.tensors})
    return TconvError(
        f"it touches no tensor: the dtypes here are {', '.join(dtypes)}",
        remedy="of weights only floating tensors are converted, and no optimizer state",
        file=stream.tensors[0].source.path,
        step=str(step),
    )


def _count(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
