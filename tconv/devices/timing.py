"""How fast something is, when it is let run a little."""

from __future__ import annotations

import time
from collections.abc import Callable

ENOUGH, TIMES = 0.2, 8  # seconds and repetitions for one measurement, both,
LONGEST = 1.0  # unless it takes this many seconds
NOTICEABLE = 0.01  # seconds


def rate(work: Callable[[], object], amount: float) -> float:
    """``amount`` of one ``work`` per second, the fastest time that it was done: the others were disturbed. The first is
    not timed, in which libraries are loaded and pages are fetched.
    """
    work()
    times: list[float] = []
    spent = 0.0
    while spent < LONGEST and (spent < ENOUGH or len(times) < TIMES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
        spent += times[-1]
    return amount / max(min(times), 1e-9)


def growing(work: Callable[[int], Callable[[], object]], size: int, most: int, amount: Callable[[int], float]) -> float:
    """The best rate of the sizes up to ``most`` and up to the one that takes a noticeable time: what is small tells of
    calls only.
    """
    best = 0.0
    while True:
        found = rate(work(size), amount(size))
        best = max(best, found)
        if size >= most or amount(size) / found >= NOTICEABLE:
            return best
        size *= 2
