"""How values are gone through for the steps that depend on them, in all of the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tconv.errors import raise_all
from tconv.request import Progress, Silent
from tconv.runner import default_workers
from tconv.scan import MAX_MEMORY, Unreadable, accounts

if TYPE_CHECKING:
    from tconv.account import Account
    from tconv.tensor import Scan, Tensor


def scanner(workers: int | None, max_memory: int | None, progress: Progress | None = None) -> Scan:
    """A scan in so many threads; what cannot be read is raised as ``TconvError``."""

    def scan(tensors: Sequence[Tensor], detail: bool) -> Sequence[Account]:
        try:
            return accounts(
                tensors, detail, workers or default_workers(), max_memory or MAX_MEMORY, progress or Silent()
            )
        except Unreadable as found:
            raise_all(found.failures)
            raise

    return scan
