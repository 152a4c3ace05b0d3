"""One answer for all tensors that are alike: a hundred thousand pictures are of a few kinds only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tconv.parts import Parts
from tconv.tensor import Tensor

if TYPE_CHECKING:
    from tconv.ops import Op


def once_a_kind(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """``change``, asked only once about tensors that differ in nothing but their name and where they are.

    It must look at neither. What it makes of them then shares its operations, which saves both the memory and the time
    that as many equal ones would take.
    """
    known: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
    chains: dict[tuple[Op, ...], tuple[Op, ...]] = {}

    def changed(tensor: Tensor) -> Tensor:
        if isinstance(tensor.source, Parts):
            return change(tensor)
        key = _kind(tensor)
        if key not in known:
            made = change(tensor)
            # Pictures of many sizes are of one kind once they are resized.
            ops = chains.setdefault(made.ops, made.ops)
            known[key] = tensor, tensor if made is tensor else Tensor(made.spec, made.source, ops)
        first, made = known[key]
        return tensor if made is first else _like(made, tensor)

    return changed


def _kind(tensor: Tensor) -> tuple[object, ...]:
    """All else that there is to see; of what has parts, which objects they are: ``known`` has them."""
    spec = tensor.spec
    seen = id(spec.dtype), spec.shape, spec.axes, spec.range, spec.device, id(spec.attrs)
    return (*seen, id(tensor.ops), id(tensor.source.dtype))


def _like(made: Tensor, tensor: Tensor) -> Tensor:
    return Tensor(made.spec.named(tensor.spec.name, tensor.spec.alias_of), tensor.source, made.ops)
