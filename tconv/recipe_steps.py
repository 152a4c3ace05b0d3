"""The steps of a pipeline file: text, entries of a list, rules for names; errors know where in the file they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tconv.errors import UsageError
from tconv.grammar import Call
from tconv.pipeline import build, steps_of
from tconv.suggest import did_you_mean
from tconv.yaml_text import Document, entry, is_list, is_text

if TYPE_CHECKING:
    from tconv.step import Step
    from tconv.steps.match import Rule


def steps_in(document: Document, node: Any) -> Iterator[Step]:
    """The steps of a chain's text, or of a list; the entries with ``match`` that follow each other are one step."""
    if is_text(node):
        yield from _from_text(document, node)
        return
    rules: list[Rule] = []
    for item in node.value if is_list(node) else []:
        if is_list(item):
            raise _wrong(document, item, "a step is text or a mapping, not a list", "for example - resize: 224")
        ruled = any(entry(item, key)[0] is not None for key in ("match", "steps"))
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


_RULE = 'for example match: "*.norm.*" and steps: [cast(float32)]'


def _rule(document: Document, node: Any) -> Rule:
    """``match: GLOB`` or a list of them, and ``steps``."""
    from tconv.steps.match import Match

    globs, steps = entry(node, "match")[1], entry(node, "steps")[1]
    known = ("match", "steps")
    for key, _ in node.value:
        if key.value not in known:
            hint = did_you_mean(str(key.value), known, "a rule has match and steps")
            raise _wrong(document, key, f"there is no {key.value!r} in a rule", hint)
    if globs is None:
        raise _wrong(document, node, "a rule needs a match", _RULE)
    if not (is_text(steps) or is_list(steps)):
        raise _wrong(document, steps or node, f"a rule needs steps{', as text or a list' * bool(steps)}", _RULE)
    try:
        rule = (document.data(globs), tuple(steps_in(document, steps)))
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
