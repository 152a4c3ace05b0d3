"""How values are gone through for the steps that depend on them, in all of the API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tconv.errors import raise_all
from tconv.request import Progress, Silent
from tconv.runner import default_workers
from tconv.scan import MAX_MEMORY, Scanner, Unreadable

if TYPE_CHECKING:
    from tconv.account import Account
    from tconv.tensor import Scan, Tensor, Visit


class _Told(Scanner):
    """One that raises what cannot be read as ``TconvError``."""

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> list[Account]:
        with _told():
            return super().__call__(tensors, detail)

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        with _told():
            super().values(tensors, visit)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except Unreadable as found:
        raise_all(found.failures)


def scanner(workers: int | None, max_memory: int | None, progress: Progress | None = None) -> Scan:
    """A scan in so many threads; what cannot be read is raised as ``TconvError``."""
    return _Told(workers or default_workers(), max_memory or MAX_MEMORY, progress or Silent())
