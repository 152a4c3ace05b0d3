"""Plain tables: columns wide enough for what is in them, nothing cut off, so that they can be piped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tconv.errors import printable


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """The lines of a table; columns whose number is in ``right`` are set flush right."""
    cells = [[printable(c).replace("\n", " ") for c in row] for row in (header, *rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(header))]
    for row in cells:
        padded = (c.rjust(w) if n in right else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield "  ".join(padded).rstrip()
