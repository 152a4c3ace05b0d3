"""Steps as they are written: the entries of a YAML file, which read back as the same steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tconv.errors import UsageError
from tconv.settings import INPUT, OUTPUT, said
from tconv.yaml_text import Block, dump

if TYPE_CHECKING:
    from tconv.request import Request
    from tconv.step import Step

_SPOKEN = [option for option in OUTPUT if option != "stack"]  # which is a step here


def pipeline_file(steps: Sequence[Step], request: Request) -> str:
    """The file that stands for ``steps`` and for what ``request`` says of inputs and outputs beside them."""
    if not steps:
        raise UsageError("there is no step to print", remedy="a change of format alone needs no pipeline")
    parts = {
        "version": 1,
        "input": said(request, INPUT),
        "steps": list(entries(steps)),
        "output": said(request, _SPOKEN),
    }
    return dump(_escaped({name: part for name, part in parts.items() if part}))


def entries(steps: Sequence[Step]) -> Iterator[Any]:
    """One for each step, in the shortest form; a match for each of its rules, unless it follows another one."""
    before = ""
    for step in steps:
        if step.name != "match":
            yield _entry(step)
        elif before == "match":
            yield str(step)  # as text, which is not taken for more rules of the one before
        else:
            yield from _rules(step)
        before = step.name


def _entry(step: Any) -> Any:
    told = {f.name: getattr(step, f.name) for f in dataclasses.fields(step) if getattr(step, f.name) != f.default}
    if not told:
        return step.name
    first = dataclasses.fields(step)[0].name
    if list(told) == [first] and (hasattr(step, "parse") or not isinstance(told[first], tuple)):
        return Block({step.name: _plain(told[first])})
    return Block({step.name: {name: _plain(value) for name, value in told.items()}})


def _rules(match: Any) -> Iterator[Any]:
    for rule in match.rules:
        globs = rule.globs[0] if len(rule.globs) == 1 else list(rule.globs)
        yield Block(match=globs, steps=list(entries(rule.steps)))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _escaped(data: Any) -> Any:
    """``$`` doubled where it would begin a variable."""
    if isinstance(data, dict):
        return type(data)((key, _escaped(value)) for key, value in data.items())
    if isinstance(data, list):
        return [_escaped(value) for value in data]
    if isinstance(data, str) and ("${" in data or "$$" in data):
        return data.replace("$", "$$")
    return data
