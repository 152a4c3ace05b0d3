"""Exceptions to a cast: ``GLOB`` for tensors that stay as they are, ``GLOB=DTYPE`` for those of another dtype."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tconv import casts, dtypes
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.dtypes import DType


class Exempt:
    """Which tensors fare otherwise, by their names, and how; ``dtype`` is None for "as they are"."""

    def __init__(self, text: str) -> None:
        self.pattern, _, name = text.partition("=")
        self.dtype: DType | None = dtypes.dtype(name) if "=" in text else None
        if not self.pattern or "'" in text:
            raise UsageError(
                f"keep: {text!r} is no pattern", remedy="write GLOB or GLOB=DTYPE, with ? for a quote", step="cast"
            )

    def check(self, policy: str) -> None:
        """Raise ``UsageError`` where its dtype cannot follow the policy on overflow."""
        if self.dtype is None:
            return
        try:
            casts.check_policy(self.dtype, policy)
        except UsageError as problem:
            raise UsageError(f"keep='{self}': {problem.reason}", remedy=problem.remedy, step="cast") from None

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)

    def __str__(self) -> str:
        return self.pattern if self.dtype is None else f"{self.pattern}={self.dtype}"
