"""A stream through steps, with the values looked at that some of them depend on: what all of the API does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from tconv import chain, walk
from tconv.errors import raise_all
from tconv.request import Silent
from tconv.runner import default_workers
from tconv.scan import Scanner, Unreadable

if TYPE_CHECKING:
    from tconv.request import Request
    from tconv.step import Step
    from tconv.tensor import Stream


def passed(request: Request, steps: Sequence[Step], stream: Stream) -> Stream:
    """The stream after the steps. Raises ``TconvError``, for values that cannot be read too, and for rules of a match
    that are for no tensor.
    """
    ruled = list(takewhile(lambda step: step.name != "stack", steps))  # which has another name
    chain.refuse_idle_rules(ruled, [tensor.spec.name for tensor in stream.tensors])
    scan = Scanner(request.workers or default_workers(), request.max_memory, Silent())
    try:
        (made,) = walk.chained(request, steps, stream, scan, lambda _stream: None)
    except Unreadable as found:
        raise_all(found.failures)
        raise
    return made
