"""Whole commands timed in turn, so that all see the same weather, and the table of how they compare."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tconv.table import table

TCONV = (sys.executable, "-m", "tconv")
HEADER = ("work", "tconv", "beside", "", "tconv takes", "from … to")


class Row(NamedTuple):
    """Seconds of the two (medians), and how many times as long tconv takes: in the median, at best and at worst."""

    work: str
    mine: float
    rival: str
    theirs: float
    ratios: Sequence[float]


def compare(work: str, mine: Sequence[str], rivals: Mapping[str, Sequence[str]], rounds: int) -> Iterator[Row]:
    """Each command once as a warm-up, then ``rounds`` times in turn."""
    commands = {"": mine, **rivals}
    for command in commands.values():
        _seconds(command)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(_seconds(command))
    for name in rivals:
        ratios = [a / b for a, b in zip(times[""], times[name], strict=True)]
        yield Row(work, statistics.median(times[""]), name, statistics.median(times[name]), ratios)


def _seconds(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - began


def report(rows: Sequence[Row]) -> Iterator[str]:
    """The table, with the machine above it."""
    yield f"{cpu()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"
    cells = [
        [row.work, f"{row.mine:.2f} s", row.rival, f"{row.theirs:.2f} s", f"{statistics.median(row.ratios):.2f} of it",
         f"{min(row.ratios):.2f} … {max(row.ratios):.2f}"]
        for row in rows
    ]  # fmt: skip
    yield from table(HEADER, cells, right=[1, 3, 4, 5])


def cpu() -> str:
    """What the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
