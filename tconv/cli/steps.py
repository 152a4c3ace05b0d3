"""``tconv steps``: the links of a chain, with their parameters."""

from __future__ import annotations

import dataclasses
import inspect as python_inspect
import sys
from typing import Any

import typer


def steps() -> None:
    """List the steps of a chain, with parameters."""
    from tconv import registry
    from tconv.cli.table import table

    rows = []
    for name in registry.STEPS:
        cls: Any = registry.step(name)
        parameters = ", ".join(_parameter(f) for f in dataclasses.fields(cls))
        summary = (python_inspect.getdoc(cls) or "").split("\n\n")[0]
        rows.append([f"{name}({parameters})" if parameters else name, " ".join(summary.split())])
    sys.stdout.write("".join(f"{line}\n" for line in table(["step", "what it does"], rows)))


def _parameter(field: dataclasses.Field[Any]) -> str:
    return field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default}"


def register(app: typer.Typer) -> None:
    app.command()(steps)
