"""What was done to a tensor on its way, and whether it is a file that says in which range its values lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tconv.ops import Elementwise, is_stated
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.ops import Op
    from tconv.tensor import Range, Tensor


def chain(tensor: Tensor) -> tuple[Op, ...]:
    """All operations on the way to ``tensor``: those before a stack are the same on every part."""
    if isinstance(tensor.source, Parts):
        return (*chain(tensor.source.parts[0]), *tensor.ops)
    return tensor.ops


def marked_range(tensor: Tensor) -> Range | None:
    """The range of floating values if their file says so, and neither the user nor arithmetic has changed it since.

    Floats have no range by nature: where one is known, the values were made from pixels in an earlier conversion.
    """
    ops = chain(tensor)
    if not _read_as_floats(tensor) or is_stated(ops) or any(isinstance(op, Elementwise) for op in ops):
        return None
    return tensor.spec.range


def is_normalized(known: Range | None) -> bool:
    """Whether a range is that of data that were normalized: scaled ones begin at 0."""
    return known is not None and known[0] != 0


def _read_as_floats(tensor: Tensor) -> bool:
    source = tensor.source
    return _read_as_floats(source.parts[0]) if isinstance(source, Parts) else source.dtype.is_float
