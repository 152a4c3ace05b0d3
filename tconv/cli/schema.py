"""``tconv schema``: the JSON Schema of pipeline files, which teaches editors what there is."""

from __future__ import annotations

import sys

import typer


def schema() -> None:
    """Print the JSON Schema of pipeline files.

    An editor that speaks YAML's language server completes and checks a pipeline file that begins so:

    \b
    # yaml-language-server: $schema=pipeline.schema.json

    with the schema beside it, from: tconv schema > pipeline.schema.json
    """
    from tconv.schema import schema as text

    sys.stdout.write(text())


def register(app: typer.Typer) -> None:
    app.command()(schema)
