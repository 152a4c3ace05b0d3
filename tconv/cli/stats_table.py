"""What ``tconv stats`` shows in the terminal: a row for each channel, what it is of, and what to paste."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tconv.cli import reading
from tconv.table import table

if TYPE_CHECKING:
    from tconv.calibrated import Calibrated
    from tconv.measure.pool import Powers
    from tconv.pooled import Statistics

DIGITS = 6  # of what is shown; a file has all of them


def moments(found: Statistics) -> Iterator[str]:
    """A row for each channel, what it is of, and what to paste."""
    names = found.letters or [str(n) for n in range(len(found.channels))]
    rows = [[name, *_cells(channel)] for name, channel in zip(names, found.channels, strict=True)]
    yield from table(["channel", "mean", "std", "min", "max", "values"], rows, right=[1, 2, 3, 4, 5])
    yield _of_what(found)
    if flat := found.constant():
        yield f"channel {' and '.join(names[n] for n in flat)} has the same value everywhere: nothing to divide by"
    else:
        mean, std = (",".join(f"{number:.{DIGITS}g}" for number in numbers) for numbers in _numbers(found))
        yield f"--stats={mean}/{std}" if mean.startswith("-") else f"--stats {mean}/{std}"


def ranges(found: Calibrated) -> Iterator[str]:
    """A row for all values and one for each channel, and what they are of."""
    entries = found.entries(found.whole)
    names = ["all"]
    if found.each is not None:
        entries += found.entries(found.each)
        names += found.letters or [str(n) for n in range(len(found.each.low))]
    rows = [
        [name, *(reading.short(n, DIGITS) for n in entry.values())] for name, entry in zip(names, entries, strict=True)
    ]
    header = ["channel", "min", "max", "low", "high", "scale", "zero point"]
    yield from table(header, rows, right=range(1, len(header)))
    steps = " | ".join(map(str, found.steps))
    of = f" of {found.of:,}" if found.sample else ""
    after = f", after {steps}" if steps else ""
    files = f"{reading.counted(found.files, 'file')}{of}"
    yield f"{files}, for {found.grid.name} {found.grid.scheme} by {found.how.method}{after}"


def _cells(channel: Powers) -> list[str]:
    numbers = [channel.mean, channel.std, float(channel.lowest or 0), float(channel.highest or 0)]
    return [*(reading.short(number, DIGITS) for number in numbers), f"{channel.count:,}"]


def _numbers(found: Statistics) -> tuple[list[float], list[float]]:
    return [c.mean for c in found.channels], [c.std for c in found.channels]


def _of_what(found: Statistics) -> str:
    """``12 files: 11 uint8 in 0…255, 1 uint16 in 0…65535, all taken to 0…1; resize(224x224)``"""
    files = reading.counted(found.files, "file")
    files += f" of {found.of:,}" if found.sample else ""
    kinds = [
        f"{source.tensors:,} {source.dtype}" + (f" in {source.known[0]:g}…{source.known[1]:g}" if source.known else "")
        for source in found.sources
    ]
    known = all(source.known for source in found.sources)
    steps = " | ".join(map(str, found.steps))
    after = f", after {steps}" if steps else ""
    return f"{files}: {', '.join(kinds)}{', taken to 0…1' if known else ''}{after}"
