"""``tconv steps``: the links of a chain, with their parameters and examples, and the dtypes."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from tconv.cli import complete

Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Only this one.", show_default=False, autocompletion=complete.steps),
]


def steps(name: Name = None) -> None:
    """List the steps of a chain, with parameters; those of installed plugins too."""
    from tconv import registry
    from tconv.cli import blocks, console

    found, problems = registry.every_step()
    if name is not None:
        whose = found[name][1] if name in found else ""
        blocks.write([_entry(registry.step(name), whose)])
        return
    blocks.write([*(_entry(*found[name]) for name in sorted(found)), ("dtypes", [_dtypes()])])
    for problem in problems:
        console.fail(str(problem))


def _entry(step: Any, origin: str) -> tuple[str, list[str]]:
    """A step as it is called; what its module is for; what its class says first; the words it knows; examples; whose
    it is, if not tconv's.
    """
    parameters = ", ".join(_parameter(f) for f in dataclasses.fields(step))
    purpose = _first(sys.modules[step.__module__]).partition(": ")[2]
    words = (f"{name}: {', '.join(choices)}" for name, choices in step.choices.items())
    return f"{step.name}({parameters})", [
        purpose[:1].upper() + purpose[1:],
        _first(step),
        *words,
        *([f"for example {step.usage}"] if step.usage else []),
        *([f"from {origin}"] if origin else []),
    ]


def _first(documented: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((documented.__doc__ or "").split("\n\n")[0].replace("``", "").split())


def _parameter(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return field.name
    return f"{field.name}=…" if field.default in (None, ()) else f"{field.name}={field.default}"


def _dtypes() -> str:
    """Every dtype that there are casts to, and what else it is called."""
    from tconv.dtypes import ALIASES, DTYPES

    def names() -> Iterator[str]:
        for name in DTYPES:
            others = [alias for alias, meant in ALIASES.items() if meant == name]
            yield f"{name} ({', '.join(others)})" if others else name

    return "; ".join(names())


def register(app: typer.Typer) -> None:
    app.command()(steps)
