"""What every writer of a file is, and what the user may say of how files are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Extra, Spec, Stream


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
