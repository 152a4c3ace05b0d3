"""A stream through steps, with the values looked at that some of them depend on: what all of the API does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tconv import walk
from tconv.errors import raise_all
from tconv.request import Silent
from tconv.runner import default_workers
from tconv.scan import Scanner, Unreadable

if TYPE_CHECKING:
    from tconv.request import Request
    from tconv.tensor import Step, Stream


def passed(request: Request, steps: Sequence[Step], stream: Stream) -> Stream:
    """The stream after the steps. Raises ``TconvError``, for values that cannot be read too."""
    scan = Scanner(request.workers or default_workers(), request.max_memory, Silent())
    try:
        (made,) = walk.chained(request, steps, stream, scan, lambda _stream: None)
    except Unreadable as found:
        raise_all(found.failures)
        raise
    return made
