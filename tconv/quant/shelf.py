"""Where numbers are kept that grow with a model: in a file without a name, mapped, not in memory."""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Self

    from tconv.ops import Array

SMALL = 1 << 16  # bytes of an array that is not worth it


class Shelf:
    """Takes arrays, one after the other, and gives back the same, read-only, from the temporary folder's disk. Nothing
    is left behind: the file has no name, and goes with the last array. Raises ``OSError`` if the disk is full.

    A context in which it takes arrays; they hold on beyond it.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, x: Array) -> Array:
        """The same values."""
        if x.nbytes < SMALL:
            return x
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="tconv-")  # noqa: SIM115  # __exit__ closes it
        start = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(x).data)
        self._file.flush()
        return np.memmap(self._file, x.dtype, "r", start, x.shape)
