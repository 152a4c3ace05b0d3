"""The source of a tensor that is made here and read from no file, as labels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.dtypes import DType
    from tconv.ops import Array


@dataclass(frozen=True, eq=False)
class ArraySource:
    """``values``: the elements, flat and native. ``path``: what they were made of, a file or a folder."""

    path: Path
    dtype: DType
    shape: tuple[int, ...]
    values: Array
    seekable: Final = True

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        """See ``tensor.Source``."""
        part = self.values[lo:hi]
        if out is None:
            return part
        out[:] = part
        return out
