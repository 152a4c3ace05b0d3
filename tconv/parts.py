"""The source of a stack: tensors of one spec that lie one after the other along a new axis 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Parts:
    """``parts[n]`` is slice n along axis 0; all are of ``dtype`` and of ``shape[1:]``, and there is at least one.

    Who evaluates goes through the parts, each at its offset; there is no file in which they lie together.
    """

    parts: tuple[Tensor, ...]
    dtype: DType
    shape: tuple[int, ...]
    seekable: Final = False

    @property
    def path(self) -> Path:
        """The file of the first part."""
        return self.parts[0].source.path

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        raise AssertionError("a stack is evaluated part by part, never read as one")
