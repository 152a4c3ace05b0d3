"""``tconv pipelines``: the ready chains that come with tconv."""

from __future__ import annotations

import typer


def pipelines() -> None:
    """List the ready chains for --pipeline."""
    from tconv.cli import blocks
    from tconv.recipes import recipe, recipe_files

    found = [recipe(str(path)) for path in recipe_files()]
    blocks.write((r.name, [r.description, " | ".join(map(str, r.steps))]) for r in found)


def register(app: typer.Typer) -> None:
    app.command()(pipelines)
