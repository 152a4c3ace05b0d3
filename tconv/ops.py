"""What is still to be done to a tensor, as data: frozen descriptions that can be printed, checked, fused and cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tconv.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from tconv.tensor import Raster, Spec

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
    # Gives one number for each channel the shape that broadcasts against the values at hand.
    Pick: TypeAlias = Callable[[Sequence[float]], Array | float]


class Op(ABC):
    """One operation on one tensor. ``step`` is the text of the step that asked for it, for messages."""

    step: str = ""

    @abstractmethod
    def spec(self, spec: Spec) -> Spec:
        """What comes out when ``spec`` goes in; from the description alone."""

    @abstractmethod
    def below(self) -> Op | None:
        """The same operation on one slice along axis 0, or None where it needs more than one slice."""


@dataclass(frozen=True, kw_only=True)
class Elementwise(Op):
    """Arithmetic on each value by itself, with numbers that may differ by channel along ``axis``.

    ``dtype`` is what the result is stored as when no cast follows, and ``on_overflow`` what becomes of values that do
    not fit there; in a run the values stay float64 until then. ``portable``: ``compute`` keeps to operators and to
    those methods that arrays of NumPy and tensors of torch have in common, so that it can be done on a device.
    """

    portable: ClassVar[bool] = False

    dtype: DType
    axis: int | None = None
    on_overflow: str = "error"
    step: str = ""

    @abstractmethod
    def compute(self, x: Array, pick: Pick) -> Array:
        """Float64 in, float64 out; may write into ``x``."""

    def below(self) -> Elementwise | None:
        if self.axis is None:
            return self
        return replace(self, axis=self.axis - 1) if self.axis > 0 else None


@dataclass(frozen=True, kw_only=True)
class CastTo(Op):
    """Round to ``dtype``, here and now; what does not fit is handled as ``on_overflow`` says."""

    dtype: DType
    on_overflow: str = "error"
    step: str = ""

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, dtype=self.dtype)

    def below(self) -> CastTo:
        return self


@dataclass(frozen=True, kw_only=True)
class Promise(Op):
    """The user's word, or that of ``step``, that the values lie in ``range``: it changes none, and counts those that do
    not, if they lie outside by more than ``slack``. ``by_file``: the step has it from the file.
    """

    range: tuple[float, float]
    slack: float = 0.0
    step: str = ""
    by_file: bool = False

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, range=self.range)

    def below(self) -> Promise:
        return self


def is_stated(ops: Sequence[Op]) -> bool:
    """Whether the user said in which range the values lie that go through ``ops``."""
    return any(isinstance(op, Promise) for op in ops)


@dataclass(frozen=True, kw_only=True)
class Permute(Op):
    """Reorder the axes: axis i of the result is axis ``perm[i]`` of the input."""

    perm: tuple[int, ...]
    step: str = ""

    def spec(self, spec: Spec) -> Spec:
        axes = "".join(spec.axes[p] for p in self.perm) if spec.axes else None
        return replace(spec, shape=tuple(spec.shape[p] for p in self.perm), axes=axes)

    def below(self) -> Permute | None:
        if self.perm[0] != 0:
            return None
        return replace(self, perm=tuple(p - 1 for p in self.perm[1:]))


@dataclass(frozen=True, kw_only=True)
class MoveTo(Op):
    """What comes after it is to be done on ``device``, as far as that can be done there just as well."""

    device: str
    step: str = ""

    def spec(self, spec: Spec) -> Spec:
        return spec

    def below(self) -> MoveTo:
        return self


def place(ops: Sequence[Op]) -> MoveTo | None:
    """The last word on where things are to be done after ``ops``."""
    return next((op for op in reversed(ops) if isinstance(op, MoveTo)), None)


def anywhere(ops: Sequence[Op]) -> tuple[Op, ...]:
    """What is done in ``ops``, wherever that may be."""
    return tuple(op for op in ops if not isinstance(op, MoveTo)) if MoveTo in map(type, ops) else tuple(ops)


@dataclass(frozen=True, kw_only=True)
class Whole(Op):
    """Needs the array as a whole (a resize, say). ``below`` is None unless the array is a batch along axis 0."""

    step: str = ""

    @abstractmethod
    def apply(self, x: Array) -> Array:
        """An array of the input's shape in, one of the result's shape out; ``x`` is not changed."""

    def scratch(self, spec: Spec) -> int:
        """Bytes needed besides input and result when ``spec`` goes in."""
        return 0


@dataclass(frozen=True, kw_only=True)
class Resizing(Whole):
    """Makes pictures of ``height`` × ``width``; the height is ``axis``, the width the next one."""

    height: int
    width: int
    axis: int

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Whether it makes means of pixels so weighted that those of a smaller picture are nearly the same."""

    @abstractmethod
    def of(self, raster: Raster) -> Whole:
        """The same of what ``raster.source`` decodes."""
