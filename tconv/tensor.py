"""The one noun: a named tensor that is described first and read last, and the protocols that move it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from tconv.dtypes import DType
from tconv.errors import NotTensor

if TYPE_CHECKING:
    from typing import TypeAlias

    from tconv.account import Account
    from tconv.ops import Array, Op

    # Called as visit(i, lo, values) from any thread: elements [lo, lo + values.size) of tensor i, flat, in C order.
    # The array is used again when it returns.
    Visit: TypeAlias = Callable[[int, int, Array], None]

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


class Scan(Protocol):
    """Goes through all values of tensors without writing any."""

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> Sequence[Account]:
        """What their casts lose, with details if asked for."""
        ...

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        """Show them all to ``visit``."""
        ...


class Step(ABC):
    """One link of the chain: a frozen dataclass whose fields are its parameters.

    Bad parameters raise ``UsageError`` at construction, before any file is opened; what does not fit the tensors
    raises ``TconvError`` in ``apply``, from specs alone.
    """

    name: ClassVar[str]
    usage: ClassVar[str] = ""  # how it is written, an example or several: "resize(224), resize(256x192)"
    rounds: ClassVar[bool] = False  # whether its results are rounded to a dtype, which they may overflow
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}  # the words that a parameter takes, where they are known
    open_choices: ClassVar[Sequence[str]] = ()  # the parameters among them that take other words too
    # Whether it looks at tensors together: at all of them, or with --batch-size at those of one batch.
    gathers: ClassVar[bool] = False

    @abstractmethod
    def apply(self, stream: Stream) -> Stream: ...

    @property
    def needs_scan(self) -> bool:
        """Whether values decide what it does, so that ``fit`` must come before ``apply``."""
        return False

    def fit(self, stream: Stream, scan: Scan) -> tuple[Step, tuple[str, ...]]:
        """The same step with what the values of ``stream`` decide settled, and a note on each decision."""
        return self, ()

    def flat(self) -> Iterator[Step]:
        """The step itself, or where it is made of steps those, in their order."""
        yield self

    def each(self, change: Callable[[Step], Step]) -> Step:
        """The step with ``change`` done to it, or where it is made of steps to each of those."""
        return change(self)

    @abstractmethod
    def __str__(self) -> str:
        """The step as it is written in a chain: ``resize(224)``; parses back to an equal step."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read, for the formats that have a choice; the defaults are those of the command line.

    ``channels``: "keep" gives a file's own, and so does "own", but RGB for the inks of CMYK. ``fast``: what a resize
    makes smaller may be decoded at a fraction of its size. ``jpeg_device``: the device that decodes JPEGs, "" for none.
    """

    channels: Literal["rgb", "bgr", "gray", "rgba", "keep", "own"] = "rgb"
    alpha: Literal["white", "black", "drop"] = "white"
    palette: Literal["rgb", "index"] = "rgb"
    frames: Literal["first", "all"] = "first"
    exif: bool = True
    max_pixels: int | None = None
    fast: bool = False
    jpeg_device: str = ""


@dataclass(frozen=True)
class WriteOptions:
    """How to write, for the formats that have a choice. ``quality``: of lossy ones, 1 to 100, None for their own."""

    quality: int | None = None


class Writer(ABC):
    """One output file, planned from specs and then filled from any thread in any order.

    The constructor plans: it fixes every byte offset (``size`` is the file's size in bytes; until ``commit``, within a
    few percent where a format cannot tell, and the most it can be where it ``compresses``), lists in ``left_out`` what
    the format cannot hold, says in ``notes`` what the user should hear, and refuses dtypes and names it cannot write.
    Nothing is created before ``open``.
    """

    size: int
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compresses: ClassVar[bool] = False
    lossy: ClassVar[bool] = False  # whether values read back are not quite those that were written
    holds_tree: ClassVar[bool] = False  # whether nested containers and plain values survive
    single: ClassVar[bool] = False  # whether the file holds just one, nameless array
    folder: ClassVar[bool] = False  # whether it is of use in a folder only, beside a config.json that tells of it
    reader: ClassVar[str] = ""  # "module:function" that reads back what was written, if not the format's reader does

    @abstractmethod
    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None: ...

    @classmethod
    def planned(cls, specs: Sequence[Spec], extra: Extra, options: WriteOptions) -> Writer:
        """The writer with what the user says of how to write, for formats that have a choice to override."""
        return cls(specs, extra)

    @classmethod
    def arranged(cls, stream: Stream) -> Stream:
        """The stream with the names and shapes that the format has for what it holds. Raises ``TconvError``."""
        return stream

    @classmethod
    def config(cls, specs: Sequence[Spec], old: bytes | None) -> bytes | None:
        """What config.json says beside weights of these specs, ``old`` being what it said; None if that stays."""
        return None

    @classmethod
    def holders(cls, specs: Sequence[Spec]) -> list[int]:
        """For each tensor the one in whose bytes its own are if they are in one file: mostly itself."""
        return list(range(len(specs)))

    @property
    def rereading(self) -> ReadOptions:
        """How the file is to be read so that what was written comes back."""
        return ReadOptions()

    def stored(self, i: int) -> bool:
        """Whether tensor ``i`` has bytes of its own to write; not so for an alias that the format keeps as one."""
        return True

    @abstractmethod
    def open(self, path: Path) -> None:
        """Create the (staged) file at ``path``, which must not exist, with the mode that the umask gives."""

    @abstractmethod
    def write(self, i: int, lo: int, array: Array) -> None:
        """Elements [lo, lo + array.size) of tensor ``i``; C order, native, of the planned dtype. Thread-safe."""

    @abstractmethod
    def commit(self) -> None:
        """Finish the file, flush it to the disk and close it."""

    @abstractmethod
    def abort(self) -> None:
        """Close it unfinished; the caller removes it. May be called at any time, more than once."""
