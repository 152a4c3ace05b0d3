"""Pipelines in YAML files: those that come with tconv, and those that users write."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from tconv.errors import UsageError
from tconv.parameters import WrongParameter, shown
from tconv.recipe_steps import steps_in
from tconv.settings import INPUT, OUTPUT, model, settings
from tconv.small_files import read_small
from tconv.suggest import did_you_mean
from tconv.variables import expand
from tconv.yaml_text import Document, entry, is_list, is_mapping

if TYPE_CHECKING:
    from tconv.step import Step

_SMALL = """a small one is
  version: 1
  steps:
    - resize: 224x224
    - scale
    - cast: float16"""

if TYPE_CHECKING:
    Input: TypeAlias = Any
    Output: TypeAlias = Any
else:  # made from the tables, of which a type checker knows nothing
    Input = model("Input", INPUT)
    Output = model("Output", OUTPUT)


class File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What a pipeline file holds."""

    version: Annotated[Literal[1], msgspec.Meta(description="Of this format.")]
    description: Annotated[str, msgspec.Meta(description="What it is for, in one line.")] = ""
    input: Annotated[Input, msgspec.Meta(description="How inputs are read, and what of them is converted.")] = (
        msgspec.field(default_factory=Input)
    )
    steps: str | Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]
    output: Annotated[Output, msgspec.Meta(description="How the output is written.")] = msgspec.field(
        default_factory=Output
    )


@dataclass(frozen=True)
class Recipe:
    """A pipeline file: its name, its one-line description, its steps.

    ``settings``: what it says of inputs and output, by field of a request. ``variables``: those it has, with their
    defaults.
    """

    name: str
    path: Path
    description: str
    steps: tuple[Step, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)


def recipe(word: str, given: Mapping[str, str] | None = None) -> Recipe:
    """The pipeline of that name, or in that YAML file, with the variables as ``given``.

    Raises ``UsageError`` that names file, line and column.
    """
    path = find(word)
    text = ""
    try:
        text = read_small(path, "pipeline").decode("utf-8-sig")
        return _loaded(path, Document(text), given or {})
    except UnicodeDecodeError:
        raise UsageError("is no pipeline: it is no text in UTF-8", remedy=_SMALL, file=path) from None
    except UsageError as problem:
        if problem.position is not None:
            problem.file = f"{path}:{_line_and_column(text, problem.position)}"
        raise problem.at(file=path) from None


def find(word: str) -> Path:
    """The file of the pipeline of that name, or the YAML file itself."""
    path = Path(word)
    if path.suffix.lower() in (".yaml", ".yml") or path.is_file():
        return path
    known = {p.stem: p for p in recipe_files()}
    if word not in known:
        hint = did_you_mean(word, known, f"there are {', '.join(known)}, or give a .yaml file")
        raise UsageError(f"there is no pipeline {word!r}", remedy=hint)
    return known[word]


def recipe_files() -> list[Path]:
    """The pipelines that come with tconv: inside the installed package, or beside it in a checkout."""
    here = Path(__file__).parent
    for folder in (here / "pipelines", here.parent / "pipelines"):
        if folder.is_dir():
            return sorted(folder.glob("*.yaml"), key=lambda path: path.stem)
    return []


def _line_and_column(text: str, position: int) -> str:
    """``4:7``, both from 1."""
    return f"{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"


def _loaded(path: Path, document: Document, given: Mapping[str, str]) -> Recipe:
    variables = expand(document, given)
    file = _checked(document)
    said = _settings(document, "input", file.input) | _settings(document, "output", file.output)
    steps = tuple(steps_in(document, entry(document.root, "steps")[1]))
    return Recipe(path.stem, path, file.description, steps, said, variables)


def _settings(document: Document, part: str, said: Any) -> dict[str, Any]:
    """The options of a part, errors with their position."""
    try:
        return settings(said)
    except WrongParameter as wrong:
        wrong.position = document.at(f"$.{part}.{wrong.parameter}")
        raise


def _checked(document: Document) -> File:
    """What a pipeline file holds, made as it must be."""
    try:
        return msgspec.convert(document.data(document.root), File)
    except msgspec.ValidationError as problem:
        reason, _, where = str(problem).partition(" - at ")
        path = where.rpartition("`$")[2].strip("`")
        node, place = document.node(path), path.removeprefix(".")
        if where.startswith("`key`"):
            reason = "a key is no text"
        wrong = UsageError(
            f"is no pipeline: {f'{place}: ' * bool(place)}{_plain(reason, _found(document, node))}", remedy=_SMALL
        )
        wrong.position = 0 if node is None else document.place(node)
        _suggest(wrong, document, str(problem), place)
        raise wrong from None


_PHRASES = {
    "Object missing required field": "it lacks",
    "Object contains unknown field": "it has an unknown",
    "Invalid enum value": "this tconv does not know",
    "Expected": "expected",
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "int | float": "a number",
    "array": "a list",
    "object": "a mapping",
}


def _plain(reason: str, found: str) -> str:
    """msgspec's reason in plain words, with what was found in its place."""
    for theirs, ours in _PHRASES.items():
        reason = reason.replace(theirs, ours)
    told, comma, _ = reason.partition(", got ")
    for theirs, ours in reversed(_KINDS.items()):
        told = re.sub(rf"(?<=[`|])( ?){re.escape(theirs)}( ?)(?=[`|])", rf"\1{ours}\2", told)
    told = told.replace(" | ", " or ").replace("`", "")
    return f"{told}, not {found}" if comma else told


def _found(document: Document, node: Any) -> str:
    if is_list(node) or is_mapping(node):
        return "a list" if is_list(node) else "a mapping"
    value = document.data(node)
    return "null" if value is None else shown(value)


def _suggest(wrong: UsageError, document: Document, reason: str, place: str) -> None:
    """Point a mistyped option, or word of one, at the nearest, and at its own position."""
    part, _, option = place.partition(".")
    options = {"": list(File.__struct_fields__), "input": list(INPUT), "output": list(OUTPUT)}.get(part)
    unknown = re.search("unknown field `([^`]+)`", reason)
    if unknown and options is not None and not option:
        key, _ = entry(entry(document.root, part)[1] if part else document.root, unknown[1])
        wrong.position = document.place(key) if key else wrong.position
        wrong.remedy = did_you_mean(unknown[1], options, f"there are {', '.join(options)}" if part else _SMALL)
    word = re.search("Invalid enum value '(.+)'", reason)
    if option:
        said = {"input": INPUT, "output": OUTPUT}.get(part, {}).get(re.split(r"[\[.]", option)[0], "")
        wrong.remedy = f"{said[:1].lower()}{said[1:].rstrip('.')}" or wrong.remedy
    if word and option:
        known = _words({"input": Input, "output": Output}[part], option)
        wrong.remedy = did_you_mean(word[1], known, f"there are {', '.join(known)}")


def _words(cls: Any, option: str) -> list[str]:
    """The words that an option takes."""

    def literals(hint: Any) -> Iterator[str]:
        if typing.get_origin(hint) is Literal:
            yield from typing.get_args(hint)
        else:
            for inner in typing.get_args(hint):
                yield from literals(inner)

    return list(literals(typing.get_type_hints(cls)[option.replace("-", "_")]))
