"""``tconv pipelines``: the ready chains that come with tconv."""

from __future__ import annotations

import sys

import typer


def pipelines() -> None:
    """List the ready chains for --pipeline."""
    from tconv.cli.table import table
    from tconv.pipeline import recipe, recipe_files

    found = [recipe(str(path)) for path in recipe_files()]
    rows = [[r.name, r.description, " | ".join(map(str, r.steps))] for r in found]
    sys.stdout.write("".join(f"{line}\n" for line in table(["name", "what it is for", "steps"], rows)))


def register(app: typer.Typer) -> None:
    app.command()(pipelines)
