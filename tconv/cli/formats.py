"""``tconv formats``: what can be read and written."""

from __future__ import annotations

import sys

import typer


def formats() -> None:
    """List the formats to read and write."""
    from tconv.cli.table import table
    from tconv.registry import FORMATS

    rows = [
        [row.name, row.title, "read" if row.reader else "", "write" if row.writer else "", " ".join(row.suffixes)]
        for row in FORMATS.values()
    ]
    sys.stdout.write("".join(f"{line}\n" for line in table(["name", "format", "", "", "suffixes"], rows)))


def register(app: typer.Typer) -> None:
    app.command()(formats)
