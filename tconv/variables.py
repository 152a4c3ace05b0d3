"""Variables of pipeline files: ``${size:224}`` is what ``--set size=`` says, or 224; in quotes it is text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tconv.errors import UsageError
from tconv.suggest import did_you_mean
from tconv.yaml_text import Document

_USE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][\w-]*)(?::(?P<default>[^{}]*))?\}|\$\{")
_HOW = "write ${name}, or ${name:default}; $${ is a ${ that is none"


@dataclass(frozen=True)
class _Use:
    name: str
    default: str | None
    node: Any
    position: int


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """What ``--set NAME=VALUE`` says, each name once."""
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {text!r} is not NAME=VALUE", remedy="for example --set size=256")
        if name in given:
            raise UsageError(f"--set gives {name!r} twice")
        given[name] = value
    return given


def expand(document: Document, given: Mapping[str, str]) -> dict[str, str | None]:
    """Put values in the place of variables, everywhere in ``document`` but in keys.

    A variable that is all of a scalar becomes what YAML makes of its value: a number, or text if it is in quotes
    (``--set name='"1"'``). One within text becomes text. Returns the variables with their defaults. Raises
    ``UsageError``, with the position, for a variable that has no value or two defaults, and for a name in ``given``
    that is none.
    """
    nodes = list(_scalars(document.root))
    uses = [use for node in nodes for use in _uses(document, node)]
    defaults = _defaults(uses)
    for name in given:
        if name not in defaults:
            there = f"its variables are {', '.join(defaults)}" if defaults else "it has none"
            raise UsageError(f"it has no variable {name!r}", remedy=did_you_mean(name, defaults, there))
    names = ", ".join(defaults)
    values = {name: given.get(name, default) for name, default in defaults.items()}
    for use in uses:
        if values[use.name] is None:
            problem = UsageError(
                f"the variable {use.name!r} has no value",
                remedy=f"--set {use.name}=VALUE, or a default, ${{{use.name}:VALUE}}; its variables are {names}",
            )
            problem.position = use.position
            raise problem
    for node in nodes:
        _fill(document, node, values)
    return defaults


def _scalars(node: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """The scalars below a node that are values, each once, however often an alias stands for it."""
    seen = set() if seen is None else seen
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield node
    for item in node.value if not isinstance(node, yaml.ScalarNode) else ():
        yield from _scalars(item[1] if isinstance(node, yaml.MappingNode) else item, seen)


def _uses(document: Document, node: Any) -> Iterator[_Use]:
    for match in _USE.finditer(node.value):
        position = document.place(node, match.start())
        if match["name"]:
            yield _Use(match["name"], match["default"], node, position)
        elif match[0] == "${":
            problem = UsageError(f"{node.value[match.start() :][:20]!r} is no variable", remedy=_HOW)
            problem.position = position
            raise problem


def _defaults(uses: Sequence[_Use]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for use in uses:
        known = found.setdefault(use.name, use.default)
        if known is None:
            found[use.name] = use.default
        elif use.default not in (None, known):
            problem = UsageError(f"the variable {use.name!r} has two defaults, {known!r} and {use.default!r}")
            problem.position = use.position
            raise problem
    return found


def _fill(document: Document, node: Any, values: Mapping[str, str | None]) -> None:
    text: str = node.value
    if "$" not in text:
        return
    node.value = _USE.sub(lambda match: "$" if match[0] == "$$" else values[match["name"]] or "", text)
    whole = _USE.fullmatch(text)
    if whole and whole["name"] and re.fullmatch(r"(['\"]).*\1", node.value, re.DOTALL):
        node.value, node.tag = node.value[1:-1], document.loader.DEFAULT_SCALAR_TAG
    elif whole and whole["name"]:
        node.tag = document.loader.resolve(yaml.ScalarNode, node.value, (True, False))
    elif node.value != text:
        node.tag = document.loader.DEFAULT_SCALAR_TAG
