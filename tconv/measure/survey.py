"""What the values of many tensors are like, each tensor measured in one pass."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tconv.measure.statistics import Measure, Summary
from tconv.scan import scan

if TYPE_CHECKING:
    from tconv.errors import TconvError
    from tconv.ops import Array
    from tconv.request import Progress
    from tconv.tensor import Tensor


def survey(
    tensors: Sequence[Tensor], progress: Progress | None = None
) -> tuple[list[Summary | None], list[TconvError]]:
    """A summary of each tensor, None for one that could not be read, and why it could not."""
    summaries: list[Summary | None] = [None if t.spec.size else Measure(t.spec.dtype).summary() for t in tensors]
    under_way: dict[int, Measure] = {}
    adding = threading.Lock()

    def visit(i: int, lo: int, x: Array) -> None:
        spec = tensors[i].spec
        part = Measure(spec.dtype)
        part.update(x)
        with adding:
            measure = under_way.setdefault(i, part)
            if measure is not part:
                measure.merge(part)
            if measure.count < spec.size:
                return
            del under_way[i]  # a measure takes up to 4 MB: only those of unfinished tensors are held
        summaries[i] = measure.summary()

    return summaries, scan(tensors, visit, progress)
