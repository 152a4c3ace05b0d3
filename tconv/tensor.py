"""The one noun: a named tensor that is described first and read last, and the protocols that move it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from tconv.dtypes import DType
from tconv.errors import NotTensor

if TYPE_CHECKING:
    from tconv.ops import Array, Op


Range = tuple[float, float]
NO_ATTRS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a tensor from headers alone.

    ``axes`` names the axes ("HWC", "NCHW"), or is None (a weight). ``range`` is the interval in which the values are
    promised to lie, None where nobody knows. ``alias_of`` is the name of the tensor whose bytes these are.
    ``attrs`` carries what a container or a step wants to see again: ``requires_grad``, ``parameter``, ``alpha``,
    ``channels`` ("BGR" where it is not RGB), ``label`` (of data: no step changes it unasked), ``shard`` (the file of a
    sharded checkpoint that it is in), ``saved_on`` (the device that a checkpoint is to name) …
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    axes: str | None = None
    range: Range | None = None
    device: str = "cpu"
    alias_of: str | None = None
    attrs: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRS)

    @property
    def size(self) -> int:
        """The number of elements; 1 for shape ()."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in a file."""
        return self.dtype.nbytes(self.size)

    def named(self, name: str, alias_of: str | None = None) -> Spec:
        """The same of another name and alias; ``dataclasses.replace`` takes three times as long."""
        return Spec(name, self.dtype, self.shape, self.axes, self.range, self.device, alias_of, self.attrs)

    def shaped(self, shape: tuple[int, ...]) -> Spec:
        """The same of another shape, as quickly."""
        return Spec(self.name, self.dtype, shape, self.axes, self.range, self.device, self.alias_of, self.attrs)

    def axis(self, name: str) -> int | None:
        """Where the axis of that letter is, or None."""
        at = self.axes.find(name) if self.axes else -1
        return at if at >= 0 else None


class Source(Protocol):
    """Where the bytes of a tensor are.

    ``seekable`` says that a part costs what a part is; what is not decodes whole, and is asked for the whole.
    ``read`` is thread-safe.
    """

    @property
    def path(self) -> Path: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def seekable(self) -> bool: ...

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        """Elements [lo, hi) in C order, as a flat native array; into ``out`` (flat, of that size) if given.

        Without ``out`` the result may be a read-only view of the file. Raises ``TconvError`` with the file named.
        """
        ...


@runtime_checkable
class Permutable(Protocol):
    """A source that can read its elements with the axes in any other order.

    ``scattered``: neighbours lie far apart, so that many elements are best read in one go.
    """

    @property
    def scattered(self) -> bool: ...

    def permuted(self, perm: tuple[int, ...]) -> Source:
        """The same elements with axis ``perm[i]`` as axis i."""
        ...


@runtime_checkable
class Sequential(Protocol):
    """A source that decodes from its beginning on: parts cost what they are if they are asked for in ascending order.

    ``sequential`` is True. A part that is passed over is kept for who asks for it late, so that a part may take twice
    its memory.
    """

    @property
    def sequential(self) -> bool: ...


class Raster(NamedTuple):
    """A picture as a resize best takes it: what ``source`` decodes, at one ``shrink``-th of its size.

    ``box``: where in there the picture lies, as (top, left, bottom, right), in pixels and fractions of them.
    ``padded``: a byte without meaning follows the three of each pixel.
    """

    source: Source
    box: tuple[float, float, float, float]
    padded: bool = False
    shrink: int = 1


class Scalable(ABC):
    """A source of one picture that may have a better way to decode it for a resize."""

    __slots__ = ()

    @abstractmethod
    def raster(self, height: int, width: int) -> Raster | None:
        """For a picture of that size made of it by means of pixels; None if there is no better way."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """What it is (after all ``ops``), where its bytes are, and what is still to be done to them."""

    spec: Spec
    source: Source
    ops: tuple[Op, ...] = ()

    def then(self, op: Op, **changes: Any) -> Tensor:
        """One more operation; ``changes`` are fields of the spec to set beside what the operation says."""
        spec = op.spec(self.spec)
        return Tensor(replace(spec, **changes) if changes else spec, self.source, (*self.ops, op))


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands in ``Extra.tree`` where the tensor of that name stood."""

    name: str


@dataclass(frozen=True)
class Extra:
    """What rides along with the tensors.

    ``kind``: weights (of a model) or data (images, arrays, labels). ``tree``: the container as it was read, with a
    ``Ref`` where a tensor stood; None where the format holds no structure. ``metadata``: strings by name. ``texts``:
    lists of texts by name that belong to data, as the names of classes do. ``index``: what the index of a sharded
    checkpoint says of it. ``whole``: the user wants all of it converted, an optimizer's
    state too. ``fields``: a glob for the integer fields of data that arithmetic may change, None where the user has
    not said.
    """

    kind: Literal["weights", "data"]
    tree: Any = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    index: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    fields: str | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """Named tensors in order, what rides along, and what the user should hear (one sentence each).

    ``others``: what stands among the tensors and is none, each with its name; refused if it is to be converted.
    """

    tensors: tuple[Tensor, ...]
    extra: Extra
    notes: tuple[str, ...] = ()
    others: tuple[NotTensor, ...] = ()

    def with_tensors(self, tensors: Sequence[Tensor], *notes: str) -> Stream:
        return replace(self, tensors=tuple(tensors), notes=self.notes + notes)
