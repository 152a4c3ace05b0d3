"""What a user asks for, as flags, text or YAML, becomes steps: one grammar, literals only, nothing is evaluated."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import registry
from tconv.errors import TconvError, UsageError
from tconv.grammar import Call, parse_chain

if TYPE_CHECKING:
    from tconv.tensor import Step


@dataclass(frozen=True)
class Sugar:
    """The options of the command line that stand for steps; what is None or False was not given."""

    resize: str | None = None
    normalize: bool = False
    stats: str | None = None
    layout: str | None = None
    to: str | None = None
    stack: bool = False
    fields: str | None = None

    def chain(self) -> list[str]:
        """The steps in their fixed order: resize, scale, normalize, layout (and stack), cast."""
        steps = []
        if self.resize:
            steps.append(f"resize({self.resize})")
        if self.normalize:
            steps.append("scale")
        if self.stats:
            steps.append(f"normalize({quoted(self.stats)})")
        # Named axes with an N are those of the stack; without one they are those of each image in it.
        batched = self.layout is not None and "N" in self.layout.upper()
        if self.stack and batched:
            steps.append("stack")
        if self.layout:
            steps.append(f"permute({self.layout.upper()})")
        if self.stack and not batched:
            steps.append("stack")
        if self.to:
            fields = "" if self.fields is None else f", fields={self.fields!r}"
            steps.append(f"cast({self.to}{fields})")
        return steps

    def given(self) -> bool:
        return bool(self.resize or self.normalize or self.stats or self.layout or self.to)


def quoted(text: str) -> str:
    """A word as it is, anything else in quotes."""
    return text if text.replace("_", "").isalnum() and not text[0].isdigit() else repr(text)


def steps_from_text(texts: Sequence[str]) -> list[Step]:
    """Steps from ``resize(224) | scale``, one or several to a text. Raises ``UsageError`` with the position."""
    return [build(call) for text in texts for call in parse_chain(text)]


def build(call: Call) -> Step:
    """The step that a parsed call asks for, its parameters checked."""
    cls: Any = registry.step(call.name)
    try:
        own = getattr(cls, "parse", None)
        made = own(*call.args, **dict(call.kwargs)) if own else _convert(cls, _bound(cls, call))
    except UsageError as problem:
        raise problem.at(step=call.text) from None
    except TypeError as problem:
        raise UsageError(str(problem).replace(f"{cls.__name__}.", ""), step=call.text) from None
    step: Step = made
    return step


def _bound(cls: Any, call: Call) -> dict[str, Any]:
    """Positional arguments get the names of the fields in their order."""
    names = [f.name for f in dataclasses.fields(cls)]
    if len(call.args) > len(names):
        raise UsageError(f"takes at most {len(names)} arguments ({', '.join(names)}), not {len(call.args)}")
    values: dict[str, Any] = dict(zip(names, call.args, strict=False))
    for name, value in call.kwargs.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names) or 'none'}"
            raise UsageError(f"there is no parameter {name!r}", remedy=hint)
        if name in values:
            raise UsageError(f"parameter {name!r} is given twice")
        values[name] = value
    return values


def _convert(cls: Any, values: Mapping[str, Any]) -> Any:
    import msgspec

    try:
        return msgspec.convert(values, cls)
    except msgspec.ValidationError as problem:
        reason, _, where = str(problem).partition(" - at ")
        field = where.strip("`").removeprefix("$.")
        reason = reason.replace("Object missing required field", "it needs").replace("`", "")
        raise UsageError(f"{field}: {reason}" if field else reason) from None


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
        near = difflib.get_close_matches(word, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}, or give a .yaml file"
        raise UsageError(f"there is no pipeline {word!r}", remedy=hint)
    return _load(known[word])


def recipe_files() -> list[Path]:
    """The pipelines that come with tconv: inside the installed package, or beside it in a checkout."""
    here = Path(__file__).parent
    for folder in (here / "pipelines", here.parent / "pipelines"):
        if folder.is_dir():
            return sorted(folder.glob("*.yaml"))
    return []


def _load(path: Path) -> Recipe:
    import msgspec
    import yaml

    class File(msgspec.Struct, forbid_unknown_fields=True):
        version: int
        steps: list[str | dict[str, Any]] | str
        description: str = ""

    try:
        text = path.read_text(encoding="utf8")
        file = msgspec.convert(yaml.safe_load(text), File)
    except OSError as problem:
        raise UsageError(f"cannot be read: {problem.strerror}", file=path) from problem
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as problem:
        raise UsageError(f"is no pipeline: {' '.join(str(problem).split())}", file=path) from problem
    if file.version != 1:
        raise UsageError(f"has version {file.version}; this tconv reads version 1", file=path)
    items = [file.steps] if isinstance(file.steps, str) else file.steps
    try:
        steps = [step for item in items for step in _from_item(item)]
    except TconvError as problem:
        raise problem.at(file=path) from None
    return Recipe(path.stem, path, file.description, tuple(steps))


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
