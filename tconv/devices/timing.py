"""How fast something is, when it is let run a little."""

from __future__ import annotations

import time
from collections.abc import Callable

ENOUGH, TIMES = 0.2, 8  # seconds and repetitions for one measurement, both,
LONGEST = 1.0  # unless it takes this many seconds


def rate(work: Callable[[], object], amount: float) -> float:
    """``amount`` of one ``work`` per second, the fastest time that it was done: the others were disturbed."""
    times: list[float] = []
    spent = 0.0
    while spent < LONGEST and (spent < ENOUGH or len(times) < TIMES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        spent += times[-1]
    return amount / max(min(times), 1e-9)


def growing(work: Callable[[int], Callable[[], object]], size: int, most: int, amount: Callable[[int], float]) -> float:
    """The rate for the size, up to ``most``, that takes a noticeable time: what is small tells of calls only."""
    found = rate(work(size), amount(size))
    while size < most and amount(size) / found < ENOUGH / 16:
        size *= 2
        found = max(found, rate(work(size), amount(size)))
    return found
