"""permute: the axes in another order, by their letters or by their numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tconv import ops
from tconv.errors import TconvError, UsageError
from tconv.quant import noted
from tconv.step import Step
from tconv.steps.alike import once_a_kind
from tconv.steps.geometry import on_each, refuse_untrue

if TYPE_CHECKING:
    from tconv.tensor import Stream, Tensor

_HOW = "write permute(CHW), or permute(2, 0, 1)"
_QUANTIZED = "permute before it is quantized, or dequantize it first"


@dataclass(frozen=True)
class Permute(Step):
    """``order`` names the axes of the result: letters (``"CHW"``), or numbers of axes (``(2, 0, 1)``).

    Letters need a tensor whose axes are known, and must be those axes. Numbers fit any tensor of as many axes; a
    negative one counts from the end. Where the order is already that one, nothing is done.
    """

    name: ClassVar[str] = "permute"
    usage: ClassVar[str] = "permute(CHW), permute(2, 0, 1)"

    order: str | tuple[int, ...]

    @classmethod
    def parse(cls, *axes: Any, order: Any = None) -> Permute:
        """The step as it is called: ``permute(CHW)``, ``permute(2, 0, 1)`` or ``permute(order=[2, 0, 1])``."""
        given = axes if order is None else (*axes, order)
        only = given[0] if len(given) == 1 else given
        if isinstance(only, str):
            return cls(only.upper())
        return cls(tuple(only) if isinstance(only, list | tuple) else (only,))

    def __post_init__(self) -> None:
        order = self.order
        if isinstance(order, str):
            fine = bool(re.fullmatch("[A-Z]+", order)) and len(set(order)) == len(order)
        else:
            fine = bool(order) and all(type(axis) is int for axis in order)
            fine = fine and sorted(axis + len(order) * (axis < 0) for axis in order) == list(range(len(order)))
        if not fine:
            raise UsageError(f"{order!r} does not name each axis once", remedy=_HOW, step="permute")

    def apply(self, stream: Stream) -> Stream:
        permuted, told = once_a_kind(self._permuted), noted.told(stream.extra.metadata)

        def change(tensor: Tensor) -> Tensor:
            if (how := told.get(tensor.spec.name)) is not None and noted.is_untrue(how, self._perm(tensor)):
                raise TconvError("its scales are those of another axis then", remedy=_QUANTIZED)
            return permuted(tensor)

        return on_each(stream, self, change)

    def _perm(self, tensor: Tensor) -> tuple[int, ...]:
        return self._by_letters(tensor) if isinstance(self.order, str) else self._by_numbers(tensor, self.order)

    def _permuted(self, tensor: Tensor) -> Tensor:
        perm = self._perm(tensor)
        if perm == tuple(range(len(perm))):
            return tensor
        made = tensor.then(ops.Permute(perm=perm, step=str(self)))
        if _is_mirrored(made.spec.axes) != _is_mirrored(tensor.spec.axes):
            refuse_untrue(tensor)
        return made

    def _by_letters(self, tensor: Tensor) -> tuple[int, ...]:
        axes, order = tensor.spec.axes, str(self.order)
        if axes is None:
            shape = tensor.spec.shape
            raise TconvError(
                f"nobody said which axes of {shape} are {', '.join(order)}",
                remedy="name the axes with --input-layout, or use numbers: permute(2, 0, 1)",
            )
        if sorted(axes) != sorted(order):
            raise TconvError(f"its axes are {axes}, which cannot become {order}", remedy=_remedy(axes, order))
        return tuple(axes.index(letter) for letter in order)

    def _by_numbers(self, tensor: Tensor, order: tuple[int, ...]) -> tuple[int, ...]:
        rank = len(tensor.spec.shape)
        if rank != len(order):
            raise TconvError(
                f"it has {rank} axes, its shape is {tensor.spec.shape}; the step names {len(order)}",
                remedy="name every axis, or choose the tensors with --only and --skip",
            )
        return tuple(axis % rank for axis in order)

    def __str__(self) -> str:
        order = self.order if isinstance(self.order, str) else ", ".join(map(str, self.order))
        return f"permute({order})"


def _is_mirrored(axes: str | None) -> bool:
    """Whether the width comes before the height."""
    return axes is not None and {"H", "W"} <= set(axes) and axes.index("W") < axes.index("H")


def _remedy(axes: str, order: str) -> str:
    """How a tensor of ``axes`` gets to ``order`` in spite of letters that only one of them has."""
    lacking = [letter for letter in order if letter not in axes]
    if lacking == ["N"]:
        return f"an N comes from stack: stack | permute({order})"
    if "C" in lacking:
        return "read the pictures with channels (--channels rgb, --palette rgb), or leave the C out"
    if lacking:
        return f"use the letters {', '.join(axes)}"
    left = "".join(letter for letter in axes if letter not in order)
    return f"name every axis: permute({left}{order})"
