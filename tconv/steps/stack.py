"""stack: all tensors joined into one, along a new axis N in front."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.errors import TconvError, UsageError
from tconv.grammar import quoted
from tconv.ops import place
from tconv.parts import Parts
from tconv.step import Step
from tconv.tensor import Spec, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tconv.tensor import Range, Stream


@dataclass(frozen=True)
class Stack(Step):
    """The tensors must be of one dtype, shape, axes and device; the result is called ``into``.

    Its range is the smallest that holds all of theirs, unknown if one of theirs is. Nothing is copied: the parts are
    made at their offsets when the stack is.
    """

    name: ClassVar[str] = "stack"
    usage: ClassVar[str] = "stack, stack(into=batch)"
    gathers: ClassVar[bool] = True

    into: str = "stack"

    def __post_init__(self) -> None:
        if not isinstance(self.into, str) or not self.into:
            raise UsageError(f"a stack is called by a name, not {self.into!r}", step="stack")

    def apply(self, stream: Stream) -> Stream:
        parts = stream.tensors
        if not parts:
            raise TconvError(
                "there is nothing to stack", remedy="see which tensors --only and --skip leave", step=str(self)
            )
        first = parts[0].spec
        for part in parts:
            if _kind(part.spec) != _kind(first):
                raise _differ(parts[0], part).at(file=part.source.path, step=str(self))
        if first.axes and "N" in first.axes:
            raise TconvError(
                f"it is a stack already: its axes are {first.axes}",
                remedy="-o x.safetensors keeps each by its name, --frames first makes a picture of an animation",
            ).at(file=parts[0].source.path, tensor=first.name, step=str(self))
        shape = (len(parts), *first.shape)
        spec = Spec(
            self.into,
            first.dtype,
            shape,
            axes=None if first.axes is None else f"N{first.axes}",
            range=_common_range(parts),
            device=first.device,
            attrs=_common_attrs(parts),
        )
        where = place(parts[0].ops)
        stack = Tensor(spec, Parts(parts, first.dtype, shape), (where,) if where else ())
        return replace(stream.with_tensors([stack]), extra=replace(stream.extra, tree=None))

    def __str__(self) -> str:
        if self.into == "stack":
            return "stack"
        return f"stack(into={quoted(self.into)})"


def _kind(spec: Spec) -> tuple[object, ...]:
    return spec.dtype, spec.shape, spec.axes, spec.device, _said(spec)


def _said(spec: Spec) -> str:
    """What the channels are where they are no colours in their usual order."""
    return "CMYK" if spec.attrs.get("inks") else spec.attrs.get("channels", "")


def _common_attrs(parts: Sequence[Tensor]) -> Mapping[str, Any]:
    """What can be said of all of them."""
    first = parts[0].spec.attrs
    if all(part.spec.attrs == first for part in parts):
        return first
    return {k: v for k, v in first.items() if all(k in p.spec.attrs and p.spec.attrs[k] == v for p in parts)}


def _common_range(parts: Sequence[Tensor]) -> Range | None:
    lows, highs = set(), set()
    for part in parts:
        if part.spec.range is None:
            return None
        lows.add(part.spec.range[0])
        highs.add(part.spec.range[1])
    return min(lows), max(highs)


def _differ(a: Tensor, b: Tensor) -> TconvError:
    """Why two tensors are no parts of one array, and what would help against just that."""
    ways = []
    if a.spec.dtype != b.spec.dtype:
        ways.append("--normalize makes one dtype of them")
    if _channels(a.spec) != _channels(b.spec) or _said(a.spec) != _said(b.spec):
        ways.append("--channels rgb makes the channels equal")
    elif a.spec.shape != b.spec.shape:
        ways.append("--resize HxW or --pad makes the sizes equal")
    ways.append("into a .safetensors without --stack and without an N in the layout each goes as it is")
    return TconvError(
        f"one array holds equals only, but {a.spec.name} is {_describe(a.spec)} and "
        f"{b.spec.name} is {_describe(b.spec)}",
        remedy=", ".join(ways),
    )


def _channels(spec: Spec) -> int | None:
    at = spec.axis("C")
    return None if at is None else spec.shape[at]


def _describe(spec: Spec) -> str:
    words = [str(spec.dtype), str(spec.shape), spec.axes or "", "" if spec.device == "cpu" else f"on {spec.device}"]
    words.append(_said(spec))
    return " ".join(word for word in words if word)
