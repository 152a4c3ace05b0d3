"""unstack: every slice along the axis N in front as a tensor of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tconv import registry
from tconv.beside import base_of
from tconv.errors import TconvError, raise_all
from tconv.parts import Parts
from tconv.rows import rows
from tconv.step import Step
from tconv.tensor import Spec, Tensor

if TYPE_CHECKING:
    from tconv.ops import Op
    from tconv.tensor import Stream

MOST = 1_000_000  # slices: no folder and no person wants more, and a broken header may state any number


@dataclass(frozen=True)
class Unstack(Step):
    """The inverse of ``stack``: axis N in front, or axis 0 where no axes are known. What has no N stays as it is.

    The parts of a stack have their own names again; the slices of an array are numbered: ``batch-00000`` …, and what is
    recorded of pictures in the file is called by their slices: ``batch-00000.mask``. Nothing is read: each slice is
    made by itself, with all that was to be done to the whole.
    """

    name: ClassVar[str] = "unstack"
    usage: ClassVar[str] = "unstack"

    def apply(self, stream: Stream) -> Stream:
        made, problems, gone = list[Tensor](), list[TconvError](), set[str]()
        single = {tensor.spec.name for tensor in stream.tensors if _is_one(tensor.spec)}
        for tensor in stream.tensors:
            try:
                alone = not single.isdisjoint((tensor.spec.name, base_of(tensor.spec)))
                parts = [tensor] if alone else list(_slices(tensor))
            except TconvError as problem:
                problems.append(problem.at(file=tensor.source.path, tensor=tensor.spec.name, step=str(self)))
                continue
            made += parts
            gone |= {tensor.spec.name} - {part.spec.name for part in parts}
        raise_all(problems)
        if not gone:
            return stream
        free = [t if t.spec.alias_of not in gone else replace(t, spec=replace(t.spec, alias_of=None)) for t in made]
        return replace(stream.with_tensors(free), extra=replace(stream.extra, tree=None))

    def __str__(self) -> str:
        return "unstack"


def _is_one(spec: Spec) -> bool:
    """Whether the axes are known and none is N."""
    return spec.axes is not None and "N" not in spec.axes


def _slices(tensor: Tensor) -> Iterator[Tensor]:
    spec = tensor.spec
    if not spec.shape:
        raise TconvError("it is a single value", remedy="leave it out with --skip")
    if spec.axes and spec.axes[0] != "N":
        raise TconvError(
            f"its axes are {spec.axes}, and slices are along an N in front",
            remedy=f"permute first: permute(N{spec.axes.replace('N', '')})",
        )
    if not 0 < spec.shape[0] <= MOST:
        raise TconvError(f"it has {spec.shape[0]:,} slices; 1 to {MOST:,} can be taken apart")
    lowered = [op.below() for op in tensor.ops]
    ops = tuple(op for op in lowered if op is not None)
    if len(ops) < len(lowered):
        raise TconvError(
            "something that is done to it concerns more than one slice",
            remedy="write it to a file first, and take that apart",
        )
    if isinstance(tensor.source, Parts):
        yield from (_after(part, ops) for part in tensor.source.parts)
        return
    # Which part of a larger tensor the whole was is true of no slice.
    attrs = {key: value for key, value in spec.attrs.items() if key != "place"}
    axes = spec.axes[1:] if spec.axes else None
    for n, row in enumerate(rows(tensor.source)):
        one = replace(spec, name=_of_slice(spec, n), shape=spec.shape[1:], axes=axes, attrs=attrs, alias_of=None)
        yield Tensor(one, row, ops)


def _after(part: Tensor, ops: tuple[Op, ...]) -> Tensor:
    for op in ops:
        part = part.then(op)
    return part


def _of_slice(spec: Spec, n: int) -> str:
    """Its name; what tells of a picture is called by that one's slice, ``batch-00007.mask``."""
    base = base_of(spec)
    return _numbered(base, n) + spec.name.removeprefix(base) if base else _numbered(spec.name, n)


def _numbered(name: str, n: int) -> str:
    """``batch-00007``; of a picture that was read from a file, ``clip-00007.gif``."""
    row = registry.by_suffix(Path(name))
    suffix = Path(name).suffix if row is not None and row.group == "image" else ""
    return f"{name.removesuffix(suffix)}-{n:05d}{suffix}"
