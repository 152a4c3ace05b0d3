"""Pipelines in YAML files: those that come with tconv, and those that users write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import yaml

from tconv.errors import TconvError, UsageError
from tconv.grammar import Call
from tconv.pipeline import build, steps_from_text
from tconv.small_files import read_small
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    from tconv.tensor import Step

_SMALL = """a small one is
  version: 1
  steps:
    - resize: 224x224
    - scale
    - cast: float16"""


class _Loader(yaml.SafeLoader):
    """Refuses what YAML's own loader takes silently: one key twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for n, key in enumerate(keys) if key in keys[:n]]
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"{twice[0]!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What a file holds."""

    version: Literal[1]
    steps: str | Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]
    description: str = ""


@dataclass(frozen=True)
class Recipe:
    """A pipeline file: its name, its one-line description, its steps."""

    name: str
    path: Path
    description: str
    steps: tuple[Step, ...]


def recipe(word: str) -> Recipe:
    """The pipeline of that name, or in that YAML file."""
    path = Path(word)
    if path.suffix.lower() in (".yaml", ".yml") or path.is_file():
        return _load(path)
    known = {p.stem: p for p in recipe_files()}
    if word not in known:
        hint = did_you_mean(word, known, f"there are {', '.join(known)}, or give a .yaml file")
        raise UsageError(f"there is no pipeline {word!r}", remedy=hint)
    return _load(known[word])


def recipe_files() -> list[Path]:
    """The pipelines that come with tconv: inside the installed package, or beside it in a checkout."""
    here = Path(__file__).parent
    for folder in (here / "pipelines", here.parent / "pipelines"):
        if folder.is_dir():
            return sorted(folder.glob("*.yaml"), key=lambda path: path.stem)
    return []


def _load(path: Path) -> Recipe:
    try:
        raw = read_small(path, "pipeline")
        try:
            found = yaml.load(raw, _Loader)  # it is a SafeLoader
        except Exception as problem:  # whatever the parser stumbles over
            mark, why = getattr(problem, "problem_mark", None), getattr(problem, "problem", None)
            place = f"line {mark.line + 1}" if mark else "it"
            raise UsageError(f"is no pipeline: {place} is no YAML{f' ({why})' * bool(why)}", remedy=_SMALL) from problem
        file = _checked(found)
        items = [file.steps] if isinstance(file.steps, str) else file.steps
        steps = [step for item in items for step in _from_item(item)]
    except TconvError as problem:
        raise problem.at(file=path) from None
    return Recipe(path.stem, path, file.description, tuple(steps))


def _checked(found: Any) -> _File:
    """What a pipeline file holds, made as it must be."""
    try:
        return msgspec.convert(found, _File)
    except msgspec.ValidationError as problem:
        reason, _, where = str(problem).partition(" - at ")
        for theirs, ours in _PLAIN.items():
            reason = reason.replace(theirs, ours)
        place = where.strip("`").removeprefix("$.")
        raise UsageError(f"is no pipeline: {f'{place}: ' * bool(place)}{reason}", remedy=_SMALL) from None


_PLAIN = {
    "Object missing required field": "it lacks",
    "Object contains unknown field": "it has an unknown",
    "Invalid enum value": "this tconv does not know",
    "Expected": "expected",
    "array": "list",
    "object": "mapping",
    "`": "",
}


def _from_item(item: str | dict[str, Any]) -> list[Step]:
    """One entry of a YAML list: ``scale``, ``resize(224)``, ``resize: 224``, ``resize: {size: 224}``."""
    if isinstance(item, str):
        return steps_from_text([item])
    if len(item) != 1:
        raise UsageError(f"one step to an entry, not {len(item)}: {', '.join(map(str, item))}")
    ((name, value),) = item.items()
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(value, dict):
        kwargs = value
    elif isinstance(value, list):
        args = tuple(value)
    elif value is not None:
        args = (value,)
    return [build(Call(str(name), args, kwargs, str(name)))]
