"""cast: to another dtype, rounded once, with an account of what does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar

from tconv import casts, dtypes
from tconv.errors import TconvError, UsageError
from tconv.ops import CastTo
from tconv.steps.touch import is_floating, mixed_fields, on_touched, refuse_mixed_fields
from tconv.tensor import Step

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.tensor import Range, Spec, Stream, Tensor

_CHOOSE = "say which become floats: cast({0}, fields='*') for all, fields='pos*' by name, fields='' for none"


@dataclass(frozen=True)
class Cast(Step):
    """To ``dtype``, by any name of it; what does not fit is handled as ``on_overflow`` says: error, saturate or inf.

    ``fields`` is a glob for the names of those integer tensors of a container that become floats together with its
    floating ones; without it they are refused. What already has the dtype is left alone.
    """

    name: ClassVar[str] = "cast"

    dtype: str
    on_overflow: str = "error"
    fields: str | None = None

    def __post_init__(self) -> None:
        target = dtypes.dtype(self.dtype)
        if target.bits < 8:
            raise UsageError(f"there is no cast to {target}", remedy="8 bits are the least that is cast", step="cast")
        casts.check_policy(target, self.on_overflow)
        object.__setattr__(self, "dtype", target.name)

    @property
    def target(self) -> DType:
        return dtypes.dtype(self.dtype)

    def apply(self, stream: Stream) -> Stream:
        kept: set[str] = set()
        if is_floating(self.target):
            if self.fields is None:
                refuse_mixed_fields(stream, self, _CHOOSE.format(self.dtype))
            else:
                kept = {name for name in mixed_fields(stream) if not fnmatchcase(name, self.fields)}
        kind = stream.extra.kind
        return on_touched(stream, self, lambda t: t if t.spec.name in kept else self._cast(t, kind))

    def _cast(self, tensor: Tensor, kind: str) -> Tensor:
        spec, target = tensor.spec, self.target
        if spec.dtype == target:
            return tensor
        casts.check_pair(spec.dtype, target)
        if spec.dtype.is_float:
            _refuse_vanishing(spec, target, kind)
        op = CastTo(dtype=target, on_overflow=self.on_overflow, step=str(self))
        return tensor.then(op, range=_clipped(spec.range, target))

    def __str__(self) -> str:
        text = self.dtype
        if self.on_overflow != "error":
            text += f", on_overflow={self.on_overflow}"
        if self.fields is not None:
            text += f", fields={self.fields!r}"
        return f"cast({text})"


def _refuse_vanishing(spec: Spec, target: DType, kind: str) -> None:
    """Refuse a truncation of floats that would leave next to nothing, which nobody can have meant."""
    if kind == "weights" and not is_floating(target):
        raise TconvError(
            f"as {target}, float weights would be little else than 0",
            remedy="integer weights need a scale beside them, which is quantization and no cast",
        )
    if target.is_integer and spec.range is not None and spec.range[0] >= -1 and spec.range[1] <= 1:
        low, high = spec.range
        raise TconvError(
            f"as {target}, values in [{low:g}, {high:g}] would be little else than 0",
            remedy=f"scale({target}) maps their range onto that of the integers",
        )


def _clipped(known: Range | None, target: DType) -> Range | None:
    if known is None or target.kind == "complex":
        return known
    low, high = (min(max(bound, target.min), target.max) for bound in known)
    return low, high
