"""YAML as text and as nodes that know their places: the scalars of YAML 1.2, where ``1e-3`` is a number, not a word."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from tconv.errors import UsageError

MOST = 100_000  # nodes of a document
_PLAIN = {  # what is written without quotes and no text, as YAML 1.2's core schema has it; but 0224 is no number
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}


class _Refused(yaml.constructor.ConstructorError):
    """What YAML itself would take."""

    def __init__(self, why: str, node: Any) -> None:
        super().__init__(None, None, why, node.start_mark)


class Loader(yaml.SafeLoader):
    """Refuses what YAML's own loader takes silently: one key twice; and tags of other kinds than JSON has."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [n for n, key in enumerate(keys) if key in keys[:n]]
        if twice:
            raise _Refused(f"{keys[twice[0]]!r} is there twice", node.value[twice[0]][0])
        return super().construct_mapping(node, deep)

    def construct_undefined(self, node: Any) -> NoReturn:
        raise _Refused(f"it has a value of the kind {node.tag.removeprefix('tag:yaml.org,2002:')!r}", node)


_JSON = ("null", "bool", "int", "float", "str", "seq", "map")
Loader.yaml_constructors = {
    tag: made for tag, made in yaml.SafeLoader.yaml_constructors.items() if tag and tag.rpartition(":")[2] in _JSON
} | {None: Loader.construct_undefined}


class Block(dict[str, Any]):
    """A mapping that is written with one key a line, even where it is short."""


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what ``Loader`` would else take for something other than text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)  # the entries of a list stand below their key


for _class in (Loader, _Dumper):
    _class.yaml_implicit_resolvers = {}  # those of YAML 1.1
    for _name, (_pattern, _first) in _PLAIN.items():
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def _text(dumper: Any, text: str) -> Any:
    """What is not printable is only kept within double quotes."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(
    Block, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=False)
)


class Document:
    """A parsed text. Raises ``UsageError`` with its ``position`` for what is no YAML."""

    loader: Any  # PyYAML's types say nothing of the methods of a loader

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.loader = Loader(text)
            self.root: Any = self.loader.get_single_node()
            _size(self.root, {})
        except Exception as problem:  # whatever the parser stumbles over
            raise _broken(problem) from problem

    def data(self, node: Any) -> Any:
        """What a node is in Python."""
        try:
            return None if node is None else self.loader.construct_document(node)
        except Exception as problem:  # as above
            raise _broken(problem) from problem

    def place(self, node: Any, offset: int = 0) -> int:
        """The position of a node, or of what stands ``offset`` characters into the text that it is."""
        start: int = node.start_mark.index
        return self._within(node, start, offset) if offset else start

    def _within(self, node: Any, start: int, offset: int) -> int:
        """Where that character of a text stands, counted by those that are no white space: blocks fold and indent."""
        end: int = node.end_mark.index
        if node.style in ("|", ">"):
            start = self.text.index("\n", start)  # below its header
        elif node.style:
            start += 1  # the quote
        before = node.value[:offset]
        count = len("".join(before.split())) + (before.count("'") if node.style == "'" else 0)  # which are doubled
        there = [at for at in range(start, end) if not self.text[at].isspace()]
        if (node.style == '"' and "\\" in self.text[start:end]) or count >= len(there):
            return int(node.start_mark.index)
        return there[count]

    def at(self, path: str) -> int:
        """The position of what msgspec calls ``$.steps[2].size``, or as much of that as there is."""
        node = self.node(path)
        return 0 if node is None else self.place(node)

    def node(self, path: str) -> Any:
        """The node there, or the nearest around it."""
        node = self.root
        for key, number in re.findall(r"\.([\w-]+)|\[(\d+)\]", path):
            inner = entry(node, key)[1] if key else _item(node, int(number))
            if inner is None:
                break
            node = inner
        return node


def entry(node: Any, key: str) -> tuple[Any, Any]:
    """The nodes of a key of a mapping and of its value; None and None if there is no such."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next(((k, v) for k, v in pairs if k.value == key), (None, None))


def is_text(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode)


def is_list(node: Any) -> bool:
    return isinstance(node, yaml.SequenceNode)


def is_mapping(node: Any) -> bool:
    return isinstance(node, yaml.MappingNode)


def dump(data: Any) -> str:
    """``data`` as YAML that ``Document`` reads as equal to it; short lists and mappings stand on one line."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None)
    return text


def _item(node: Any, number: int) -> Any:
    return node.value[number] if is_list(node) and number < len(node.value) else None


def _size(node: Any, known: dict[int, int]) -> int:
    """How many nodes there are below one once all aliases are followed; refuses too many, and those without end."""
    if node is None or is_text(node):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST  # what an alias within it would stand for
        children = node.value if is_list(node) else [child for pair in node.value for child in pair]
        known[id(node)] = 1 + sum(_size(child, known) for child in children)
    if known[id(node)] > MOST:
        raise _Refused(f"its aliases stand for more than {MOST:,} values", node)
    return known[id(node)]


def _broken(problem: Exception) -> UsageError:
    mark, why = getattr(problem, "problem_mark", None), getattr(problem, "problem", None)
    no_yaml = f"it is no YAML{f' ({why})' * bool(why)}"
    wrong = UsageError(f"is no pipeline: {why if isinstance(problem, _Refused) else no_yaml}")
    wrong.position = mark.index if mark else None
    return wrong
