"""``tconv pipelines``: the ready chains that come with tconv, and what each is."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tconv.cli import complete

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", help="Print this one's file.", show_default=False, autocompletion=complete.pipelines
    ),
]


def pipelines(name: Name = None) -> None:
    """List the ready chains for --pipeline.

    \b
    tconv pipelines                          one line for each
    tconv pipelines imagenet                 its file: steps, and variables for --set
    tconv pipelines imagenet > mine.yaml     the beginning of your own
    """
    from tconv.recipes import find, recipe, recipe_files
    from tconv.small_files import read_small

    if name is not None:
        sys.stdout.write(read_small(find(name), "pipeline").decode(errors="replace"))
        return
    from tconv.table import table

    found = [recipe(str(path)) for path in recipe_files()]
    rows = list(table(["", ""], [[one.name, one.description] for one in found]))[1:]
    sys.stdout.write("".join(f"{row}\n" for row in rows))


def register(app: typer.Typer) -> None:
    app.command()(pipelines)
