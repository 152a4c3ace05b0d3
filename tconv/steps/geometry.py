"""What the geometric steps share: sizes as people write them, where height and width are, errors told all at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tconv.beside import TOLD, record_of
from tconv.errors import TconvError, UsageError, raise_all
from tconv.steps.touch import labels

if TYPE_CHECKING:
    from tconv.step import Step
    from tconv.tensor import Spec, Stream, Tensor

    Seen = TypeVar("Seen")

MAX_SIDE = 1_000_000  # pixels; more is a typing error, and Pillow's own arithmetic ends not far above

_SIZE = re.compile(r"\s*([0-9]{1,9})(?:\s*[xX×]\s*([0-9]{1,9}))?\s*")


def canonical_size(size: int | str, step: str) -> int | str:
    """One number (``224``, ``"224"``) as an int, height and width (``"256x192"``) as that text.

    Raises ``UsageError`` naming ``step`` for anything else, and for sides that are not in 1…``MAX_SIDE``.
    """
    match = _SIZE.fullmatch(str(size)) if not isinstance(size, bool) else None
    if match is None:
        raise UsageError(
            f"{size!r} is no size in pixels", remedy=f"write {step}(224) or, height first, {step}(256x192)", step=step
        )
    sides = [int(side) for side in match.groups() if side is not None]
    for side in sides:
        if not 1 <= side <= MAX_SIDE:
            raise UsageError(f"a side of {side} pixels; it must be 1 to {MAX_SIDE}", step=step)
    return sides[0] if len(sides) == 1 else f"{sides[0]}x{sides[1]}"


def height_width(size: str) -> tuple[int, int]:
    """The numbers of a canonical ``"256x192"``."""
    height, width = size.split("x")
    return int(height), int(width)


def height_axis(tensor: Tensor) -> int:
    """Where the height is; the width is the axis after it, and nothing but channels follows.

    Raises ``TconvError`` where the axes are unknown or in another order, where there are no pixels, and where a step
    has recorded, now or in the file that it is from, in which part of it the picture lies: what changes its size makes
    that untrue.
    """
    axes, shape = tensor.spec.axes, tensor.spec.shape
    if axes is None:
        raise TconvError(
            f"nobody said which axes of {shape} are height and width",
            remedy="name the axes, with --input-layout HWC for instance",
        )
    if not axes.endswith(("HW", "HWC")):
        raise TconvError(f"its axes {axes} do not end in HW or HWC", remedy="reorder them first, with permute(HWC) say")
    if 0 in shape:
        raise TconvError(f"it has no pixels: its shape is {shape}", remedy="leave it out with --skip")
    refuse_untrue(tensor)
    return axes.index("HW")


def refuse_untrue(tensor: Tensor) -> None:
    """Raise ``TconvError`` if it is recorded where in it the picture lies, which a change of its sides makes untrue."""
    if (record := record_of(tensor)) is not None:
        raise TconvError(
            f"where the picture lies was recorded by {record.step}, and would no longer be true",
            remedy=f"let {record.step.partition('(')[0]} be the last step that changes sizes",
        )
    if (kind := tensor.spec.attrs.get(TOLD)) is not None:
        raise TconvError(
            f"where the picture lies is told by {tensor.spec.name}.{kind}, and would no longer be true",
            remedy=f"--skip '*.{kind}' leaves that out",
        )


def lead(spec: Spec, axis: int) -> tuple[int, ...]:
    """The sizes of the batch that a tensor is: of the axes before ``axis``, the height, but not of the channels."""
    axes = spec.axes or ""
    return tuple(n for n, letter in zip(spec.shape[:axis], axes, strict=False) if letter != "C")


def on_each(stream: Stream, step: Step, change: Callable[[Tensor], Tensor]) -> Stream:
    """Every tensor changed, but no labels; refusals as ``each`` tells them."""
    spared = labels(stream)
    return stream.with_tensors(each(stream, step, lambda t: t if t.spec.name in spared else change(t)))


def each(stream: Stream, step: Step, look: Callable[[Tensor], Seen]) -> list[Seen]:
    """What ``look`` finds for every tensor; those that refuse are told together, each with its file, its name and the
    step.
    """
    found, problems = [], []
    for tensor in stream.tensors:
        try:
            found.append(look(tensor))
        except TconvError as problem:  # collecting them is the point
            problems.append(
                problem.at(file=tensor.source.path, tensor=tensor.spec.name, step=str(step), by_itself=True)
            )
    raise_all(problems)
    return found
