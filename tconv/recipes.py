"""Pipelines in YAML files: those that come with tconv, and those that users write."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from tconv.errors import UsageError
from tconv.grammar import Call
from tconv.pipeline import build, steps_of
from tconv.settings import INPUT, OUTPUT, model, settings
from tconv.small_files import read_small
from tconv.suggest import did_you_mean
from tconv.variables import expand
from tconv.yaml_text import Document, entry, is_list, is_text

if TYPE_CHECKING:
    from tconv.steps.match import Rule
    from tconv.tensor import Step

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
    said = settings(file.input, file.output)
    steps = tuple(_steps(document, entry(document.root, "steps")[1]))
    return Recipe(path.stem, path, file.description, steps, said, variables)


def _checked(document: Document) -> File:
    """What a pipeline file holds, made as it must be."""
    try:
        return msgspec.convert(document.data(document.root), File)
    except msgspec.ValidationError as problem:
        reason, _, where = str(problem).partition(" - at ")
        path = where.strip("`")
        for theirs, ours in _PLAIN.items():
            reason = reason.replace(theirs, ours)
        place = path.removeprefix("$").removeprefix(".")
        wrong = UsageError(f"is no pipeline: {f'{place}: ' * bool(place)}{reason}", remedy=_SMALL)
        wrong.position = document.at(path)
        _suggest(wrong, document, str(problem), place)
        raise wrong from None


_PLAIN = {
    "Object missing required field": "it lacks",
    "Object contains unknown field": "it has an unknown",
    "Invalid enum value": "this tconv does not know",
    "Expected": "expected",
    "array": "list",
    "object": "mapping",
    "`": "",
}


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


def _steps(document: Document, node: Any) -> Iterator[Step]:
    """The steps of a chain's text, or of a list; the entries with ``match`` that follow each other are one step."""
    if is_text(node):
        yield from _from_text(document, node)
        return
    rules: list[Rule] = []
    for item in node.value if is_list(node) else []:
        ruled = not is_text(item) and entry(item, "match")[0] is not None
        if rules and not ruled:
            yield _match(rules)
        if ruled:
            rules.append(_rule(document, item))
        else:
            rules = []
            yield from _from_text(document, item) if is_text(item) else [_entry(document, item)]
    if rules:
        yield _match(rules)


def _match(rules: Sequence[Rule]) -> Step:
    from tconv.steps.match import Match

    return Match(tuple(rules))


def _from_text(document: Document, node: Any) -> list[Step]:
    """The steps of a chain; errors get the position in the file."""
    try:
        return steps_of(node.value)
    except UsageError as problem:
        problem.position = document.place(node, problem.position or 0)
        raise


def _rule(document: Document, node: Any) -> Rule:
    """``match: GLOB`` or a list of them, and ``steps``."""
    from tconv.steps.match import Match

    known = ("match", "steps")
    for key, _ in node.value:
        if key.value not in known:
            hint = did_you_mean(str(key.value), known, "a rule has match and steps")
            raise _wrong(document, key, f"there is no {key.value!r} in a rule", hint)
    globs, steps = entry(node, "match")[1], entry(node, "steps")[1]
    if steps is None:
        raise _wrong(document, node, "a rule needs steps", 'for example match: "*.norm.*" and steps: [cast(float32)]')
    try:
        rule = (document.data(globs), tuple(_steps(document, steps)))
        return Match.parse(rule).rules[0]
    except UsageError as problem:
        if problem.position is None:
            problem.position = document.place(globs)
        raise


def _entry(document: Document, node: Any) -> Step:
    """One entry of a list: ``resize: 224``, ``permute: [2, 0, 1]``, ``resize: {size: 224}``, ``scale:``."""
    if len(node.value) != 1:
        names = ", ".join(str(key.value) for key, _ in node.value)
        raise _wrong(document, node, f"one step to an entry, not {len(node.value)}: {names}", "begin each with a -")
    ((key, value),) = node.value
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    places: dict[int | str, int] = {}
    found = document.data(value)
    if isinstance(found, dict):
        kwargs = found
        places = {name.value: document.place(name) for name, _ in value.value}
    elif isinstance(found, list):
        args = tuple(found)
        places = {n: document.place(item) for n, item in enumerate(value.value)}
    elif found is not None:
        args, places = (found,), {0: document.place(value)}
    return build(Call(str(key.value), args, kwargs, str(key.value), document.place(key), places))


def _wrong(document: Document, node: Any, reason: str, remedy: str) -> UsageError:
    problem = UsageError(reason, remedy=remedy)
    problem.position = document.place(node)
    return problem
