"""The text of a chain, ``resize(224x192) | scale | match('*.w': cast(half))``: tokens, calls, positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tconv.errors import UsageError

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]))
    | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<word>[A-Za-z]+:\d+(?![\w.])|[\w.*/~-]+)
    | (?P<mark>[()\[\],=|:])
    )""",
    re.VERBOSE,
)
LONG = 100  # characters of a chain that an error repeats
MAX_DIGITS = 400  # more than the largest float64 has, and less than Python reads as an integer
MAX_DEPTH = 10  # no parameter is a list of lists of …, no rule has rules within rules within …
_TOKENS = "a name, a value or one of ( ) [ ] , = : |"
_EXAMPLE = "for example resize(224) | scale | cast(float16)"
_CONSTANTS = {"none": None, "null": None, "true": True, "false": False}


class NoChain(UsageError):  # noqa: N818  # what text is not, in words that say the position themselves
    """The text is no chain."""


@dataclass(frozen=True)
class Call:
    """A step as written: its name, its literal arguments (or rules, each a ``Case``), its text.

    ``start`` and ``places`` are positions, from 0: of its name, and of each argument, by its number or name.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    start: int = field(default=0, compare=False)
    places: Mapping[int | str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Case:
    """A rule among the arguments of a step, ``value: step | step``; nothing is done in ``value: []``."""

    value: Any
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def literal(text: str) -> str:
    """``text`` as a value is written in a chain: as it is where it is one word or number, else in quotes."""
    match = _TOKEN.match(text)
    if match and match.lastgroup in ("number", "word") and match[0] == match[match.lastgroup] == text:
        return text if text.lower() not in _CONSTANTS else quoted(text)
    return quoted(text)


def quoted(text: str, usual: str = "'") -> str:
    """``text`` in quotes, the ``usual`` ones unless it holds such itself; doubled are those that it holds."""
    quote = usual if usual not in text else {"'": '"', '"': "'"}[usual]
    return f"{quote}{text.replace(quote, 2 * quote)}{quote}"


def around(text: str, at: int = 0) -> str:
    """``text``, or what stands around a position of it if it is long."""
    start = max(0, min(at - LONG // 2, len(text) - LONG))
    return f"{'…' * (start > 0)}{text[start : start + LONG]}{'…' * (start + LONG < len(text))}"


def parse_chain(text: str) -> list[Call]:
    """Calls separated by ``|``. Raises ``NoChain`` naming the position (from 1) and what was expected there."""
    return _Parser(text).chain()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._scan())
        self._at = 0
        self._depth = 0  # rules within rules

    def _scan(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                open_text = self._text[start] in "'\""
                token = f"a text that ends with {self._text[start]}" if open_text else _TOKENS
                raise self._error(token, start)
            kind = str(match.lastgroup)
            yield _Token(kind, match.group(kind), match.start(kind), match.end())
            at = match.end()
        yield _Token("end", "", len(self._text), len(self._text))

    def _error(self, expected: str, at: int, remedy: str = _EXAMPLE) -> NoChain:
        there = self._text[at : at + 12].strip()
        found = f"{there!r}" if there else "the end"
        reason = f"{around(self._text, at)!r}: expected {expected} at position {at + 1}, found {found}"
        problem = NoChain(reason, remedy=remedy)
        problem.position = at
        return problem

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *marks: str) -> str:
        """Consume one of these marks, if one is next."""
        token = self._next
        if token.kind == "mark" and token.text in marks:
            self._at += 1
            return token.text
        return ""

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            raise self._error(repr(mark), self._next.start)

    def _calls(self) -> list[Call]:
        calls = [self._call()]
        while self._take("|"):
            calls.append(self._call())
        return calls

    def chain(self) -> list[Call]:
        calls = self._calls()
        if self._next.kind != "end":
            raise self._error("'|' or the end", self._next.start, self._unlinked(calls[-1]))
        return calls

    def _unlinked(self, last: Call) -> str:
        """What was meant by what stands after a step without a ``|`` between them."""
        rest = self._text[self._next.start :].lstrip(",= ").rstrip()
        step = f"between steps stands a |: {around(last.text)} | {around(rest)}"
        if not rest or self._next.text in ("(", ")", "[", "]"):
            return _EXAMPLE
        if self._next.text == "," or last.text != last.name or re.match(r"\w+\(", rest):
            return step
        parameter = f"parameters stand in parentheses: {last.name}({around(rest)})"
        return f"{parameter}; {step}" if rest.isidentifier() else parameter

    def _call(self) -> Call:
        token = self._next
        if token.kind != "word":
            raise self._error("the name of a step", token.start)
        self._at += 1
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        places: dict[int | str, int] = {}
        if self._take("("):
            while not self._take(")"):
                self._argument(args, kwargs, places)
                if not self._take(","):
                    self._need(")")
                    break
        end = self._tokens[self._at - 1].end
        return Call(token.text, tuple(args), kwargs, self._text[token.start : end], token.start, places)

    def _argument(self, args: list[Any], kwargs: dict[str, Any], places: dict[int | str, int]) -> None:
        token = self._next
        after = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if token.kind == "word" and after.kind == "mark" and after.text == "=":
            self._at += 2
            if token.text in kwargs:
                raise self._error("each parameter once", token.start)
            kwargs[token.text] = self._value()
            places[token.text] = token.start
        elif kwargs:
            raise self._error("name=value (plain values come first)", token.start)
        else:
            places[len(args)] = token.start
            value = self._value()
            args.append(Case(value, self._case()) if self._take(":") else value)

    def _case(self) -> tuple[Call, ...]:
        """What is done where a rule holds."""
        if self._depth == MAX_DEPTH:
            raise self._error("fewer rules in each other", self._next.start)
        if self._take("["):
            self._need("]")
            return ()
        self._depth += 1
        calls = tuple(self._calls())
        self._depth -= 1
        return calls

    def _value(self, depth: int = 0) -> Any:
        token = self._next
        if opened := self._take("[", "("):
            closing = {"[": "]", "(": ")"}[opened]
            if depth == MAX_DEPTH:
                raise self._error("fewer brackets in each other", token.start)
            values = []
            while not self._take(closing):
                values.append(self._value(depth + 1))
                if not self._take(","):
                    self._need(closing)
                    break
            return values
        if token.kind not in ("number", "string", "word"):
            raise self._error("a value", token.start)
        self._at += 1
        if token.kind == "number":
            if len(token.text) > MAX_DIGITS:
                raise self._error(f"a number of at most {MAX_DIGITS} digits", token.start)
            return int(token.text) if re.fullmatch(r"[-+]?[0-9]+", token.text) else float(token.text)
        if token.kind == "string":
            quote = token.text[0]
            return token.text[1:-1].replace(2 * quote, quote)
        return _CONSTANTS.get(token.text.lower(), token.text)
