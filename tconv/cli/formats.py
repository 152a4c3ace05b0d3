"""``tconv formats``: what can be read and written."""

from __future__ import annotations

import sys

import typer


def formats() -> None:
    """List the formats to read and write, those of installed plugins too."""
    from tconv.cli import console
    from tconv.registry import FORMATS, foreign
    from tconv.table import table

    others, problems = foreign()
    rows = [
        [
            row.name,
            row.title,
            "read" if row.reader else "",
            "write" if row.writer else "",
            " ".join(row.suffixes),
            f"from {row.origin}" if row.origin else "",
        ]
        for row in (*FORMATS.values(), *others)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in table(["name", "format", "", "", "suffixes", ""], rows)))
    for problem in problems:
        console.fail(str(problem))


def register(app: typer.Typer) -> None:
    app.command()(formats)
