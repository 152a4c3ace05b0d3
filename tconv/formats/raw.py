"""Elements that lie in a file as they are: at a byte offset, perhaps strided, perhaps of the other byte order."""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.formats import strided
from tconv.formats.stamp import Stamp, refuse_changed

if TYPE_CHECKING:
    from typing_extensions import Self

    from tconv.dtypes import DType
    from tconv.ops import Array

MAX_AXES = 64 if int(np.__version__.split(".")[0]) >= 2 else 32  # NumPy's own limit
MAX_BYTES = 2**63 - 1
EMPTY = 2**48  # bytes that an empty array may take if its sizes of 0 were 1
CHUNK = 1 << 20  # bytes read in one go where more are wanted


@contextmanager
def opened(path: Path, seen: Stamp | None = None) -> Iterator[RawIOBase]:
    """A regular file, unbuffered; whatever goes wrong inside is a ``TconvError`` that names it.

    ``seen``: what its header was read from. If it is not that any more, before or after what is done inside, that is
    what is wrong with it.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise TconvError(f"is {kind}")
        with path.open("rb", buffering=0) as file:
            refuse_changed(file, seen)
            try:
                yield file
            except Exception:
                refuse_changed(file, seen)  # which is why it does not fit together
                raise
            refuse_changed(file, seen)
    except OSError as problem:
        raise TconvError(f"cannot be read: {problem.strerror or problem}", file=path) from problem
    except TconvError as problem:
        problem.at(file=path)
        raise


def file_size(file: RawIOBase) -> int:
    """The size in bytes; a ``TconvError`` for an empty file."""
    size = file.seek(0, 2)
    file.seek(0)
    if not size:
        raise TconvError("the file is empty (0 bytes)", remedy="fetch or write it again")
    return size


def take(file: RawIOBase, count: int) -> bytes:
    """The next ``count`` bytes, or fewer at the end of the file. The caller has checked ``count``."""
    parts = []
    while count and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def fill(file: RawIOBase, offset: int, out: Array) -> None:
    """The bytes from ``offset`` on into all of ``out``, which is flat; ``TconvError`` if the file ends before."""
    file.seek(offset)
    fill_from(file, out, offset)


def fill_from(stream: RawIOBase, out: Array, offset: int = 0) -> None:
    """What comes next into all of ``out``; ``offset`` tells, for the message, how much came before."""
    view, done = out.view(np.uint8).data, 0
    while done < len(view):
        count = stream.readinto(view[done : done + CHUNK])
        if not count:
            raise truncated(offset + len(view), offset + done)
        done += count


def truncated(expected: int, found: int) -> TconvError:
    return TconvError(
        f"truncated: expected {expected:,} bytes, found {found:,}", remedy="fetch or write the file again"
    )


def check_length(expected: int, found: int) -> None:
    """Refuse a file that is shorter or longer than its header says."""
    if found < expected:
        raise truncated(expected, found)
    if found > expected:
        raise TconvError(f"{found - expected:,} bytes too many: expected {expected:,} bytes, found {found:,}")


def checked_bytes(shape: tuple[int, ...], dtype: DType) -> int:
    """The bytes that the elements take; ``TconvError`` for what no array's shape can be."""
    if len(shape) > MAX_AXES:
        raise TconvError(f"a shape of {len(shape)} axes, and there can be {MAX_AXES}")
    if any(n < 0 for n in shape):
        raise TconvError("a shape with a negative size")
    # Empty arrays too: NumPy multiplies the sizes that are not 0, and the array may yet become a wider or a larger one.
    if math.prod(n for n in shape if n) * dtype.itemsize > (EMPTY if 0 in shape else MAX_BYTES):
        raise TconvError(f"a shape too large for any memory ({len(shape)} axes)")
    return dtype.nbytes(math.prod(shape))


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements apart neighbours along each axis lie in C order; an axis of size 0 counts as one of 1."""
    return tuple(math.prod(max(n, 1) for n in shape[axis + 1 :]) for axis in range(len(shape)))


def to_native(out: Array, swap: bool) -> None:
    """Bytes as they were read made values, in place: the byte order native, any non-zero bool True (which is 1)."""
    if swap:
        out.byteswap(inplace=True)
    if out.dtype == np.bool_:
        bits = out.view(np.uint8)
        np.minimum(bits, 1, out=bits)


@dataclass(frozen=True, slots=True)
class RawSource:
    """A ``Source`` of elements at byte ``offset`` of a file.

    ``swap``: they are in the byte order that is not native. ``strides``, counted in elements and none negative, says
    how far apart neighbours along each axis lie; None is C order. The maker has checked that all lie in the file;
    ``seen`` tells whether that is still the same.
    """

    path: Path
    dtype: DType
    shape: tuple[int, ...]
    offset: int
    swap: bool = False
    strides: tuple[int, ...] | None = None
    seen: Stamp | None = None

    @property
    def seekable(self) -> bool:
        return True

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty(hi - lo, self.dtype.numpy)
        if lo == hi:
            return out
        with opened(self.path, self.seen) as file:
            if self.strides is None:
                fill(file, self.offset + lo * self.dtype.itemsize, out)
            else:
                strided.read(partial(fill, file), self.offset, self.strides, self.shape, lo, out)
        to_native(out, self.swap)
        return out

    @property
    def scattered(self) -> bool:
        return self.strides is not None

    def permuted(self, perm: tuple[int, ...]) -> RawSource:
        """The same elements with axis ``perm[i]`` as axis i."""
        strides = c_strides(self.shape) if self.strides is None else self.strides
        shape, turned = (tuple(values[p] for p in perm) for values in (self.shape, strides))
        return replace(self, shape=shape, strides=turned)


@dataclass(frozen=True, slots=True)
class Around:
    """Base of a source that does something to ``elements`` as they are read."""

    elements: RawSource

    @property
    def path(self) -> Path:
        return self.elements.path

    @property
    def seen(self) -> Stamp | None:
        return self.elements.seen

    @property
    def dtype(self) -> DType:
        return self.elements.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.elements.shape

    @property
    def seekable(self) -> bool:
        return True

    @property
    def scattered(self) -> bool:
        return self.elements.scattered

    def permuted(self, perm: tuple[int, ...]) -> Self:
        return replace(self, elements=self.elements.permuted(perm))
