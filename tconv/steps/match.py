"""match: other steps for tensors of other names, by rules of which the first that fits a name counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.errors import TconvError, TconvErrors, UsageError, raise_all
from tconv.grammar import quoted
from tconv.step import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.step import Scan
    from tconv.tensor import Stream, Tensor

_HOW = 'write match("*.norm.*": cast(float32), "*": cast(float16))'


@dataclass(frozen=True)
class Rule:
    """What is done to tensors whose name matches one of ``globs``, in which ``*`` crosses dots and slashes."""

    globs: tuple[str, ...]
    steps: tuple[Step, ...]

    def fits(self, name: str) -> bool:
        return any(fnmatchcase(name, glob) for glob in self.globs)

    def __str__(self) -> str:
        globs = ", ".join(quoted(glob, '"') for glob in self.globs)  # a shell's string is mostly in single quotes
        steps = " | ".join(map(str, self.steps)) or "[]"
        return f"{globs if len(self.globs) == 1 else f'[{globs}]'}: {steps}"


@dataclass(frozen=True)
class Match(Step):
    """Each rule is ``"GLOB": STEPS`` or ``["GLOB", "GLOB"]: STEPS``; the first whose glob matches the name of a tensor
    says what is done to it. ``"GLOB": []`` leaves tensors as they are, as does the lack of a rule.

    The steps of a rule see its tensors alone. Tensors keep their order; what a step adds follows what it was made of.
    Tensors share a storage no longer where other things are done to them: each gets its own.
    """

    name: ClassVar[str] = "match"
    usage: ClassVar[str] = 'match("*.norm.*": cast(float32), "*": cast(float16))'

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, *given: Any, rules: Any = None) -> Match:
        """The step as it is called: each rule is the pair of a glob, or a list of them, and steps."""
        return cls(tuple(_rule(rule) for rule in (given if rules is None else (*given, rules))))

    def __post_init__(self) -> None:
        if not self.rules:
            raise UsageError("it needs a rule", remedy=_HOW, step="match")

    def rule_of(self, name: str) -> int | None:
        """The number of the rule for a tensor of that name."""
        return next((n for n, rule in enumerate(self.rules) if rule.fits(name)), None)

    def flat(self) -> Iterator[Step]:
        for rule in self.rules:
            for step in rule.steps:
                yield from step.flat()

    def each(self, change: Callable[[Step], Step]) -> Match:
        rules = [replace(rule, steps=tuple(step.each(change) for step in rule.steps)) for rule in self.rules]
        return Match(tuple(rules))

    @property
    def needs_scan(self) -> bool:
        return any(step.needs_scan for step in self.flat())

    def fit(self, stream: Stream, scan: Scan) -> tuple[Match, tuple[str, ...]]:
        notes: list[str] = []

        def settle(step: Step, part: Stream) -> Step:
            if not step.needs_scan:
                return step
            fitted, said = step.fit(part, scan)
            notes.extend(said)
            return fitted

        return self._through(stream, settle)[0], tuple(notes)

    def apply(self, stream: Stream) -> Stream:
        return self._through(stream, lambda step, part: step)[1]

    def _through(self, stream: Stream, settle: Callable[[Step, Stream], Step]) -> tuple[Match, Stream]:
        """Each rule's tensors through its steps, as ``settle`` has them: the steps, and what came of the tensors."""
        ruled = {t.spec.name: self.rule_of(t.spec.name) for t in stream.tensors}
        tensors = stream.tensors
        extra = replace(stream.extra, partial=stream.extra.partial or len(tensors) > 1)
        placed = [(n, t) for n, t in enumerate(tensors) if ruled[t.spec.name] is None]
        rules: list[Rule] = []
        notes: tuple[str, ...] = ()
        problems: list[TconvError] = []
        remedies: list[str] = []
        for number, rule in enumerate(self.rules):
            own = [(n, t) for n, t in enumerate(tensors) if ruled[t.spec.name] == number]
            part = replace(stream, tensors=tuple(t for _, t in own), extra=extra, notes=(), others=())
            steps = rule.steps
            if own:
                try:
                    steps, part = _chained(rule.steps, part, settle)
                except TconvErrors as several:
                    problems += several.problems
                    remedies.append(several.remedy)
                except TconvError as problem:
                    problems.append(problem)
            rules.append(replace(rule, steps=steps))
            extra, notes = part.extra, notes + part.notes
            placed += _places(own, part.tensors)
        raise_all(problems, remedy="; ".join(dict.fromkeys(filter(None, remedies))))
        ordered = [t for _, t in sorted(placed, key=lambda pair: pair[0])]
        extra = replace(extra, partial=stream.extra.partial)
        return Match(tuple(rules)), replace(stream, extra=extra).with_tensors(ordered, *notes)

    def __str__(self) -> str:
        return f"match({', '.join(map(str, self.rules))})"


def _rule(given: Any) -> Rule:
    if not isinstance(given, tuple):
        raise UsageError(f'a rule is "GLOB": STEPS, not {given!r}', remedy=_HOW, step="match")
    globs, steps = given
    several = globs if isinstance(globs, list) else [globs]
    for glob in several:
        if not isinstance(glob, str) or not glob:
            raise UsageError(f"a rule is for a pattern of names, not for {glob!r}", remedy=_HOW, step="match")
    if not several:
        raise UsageError("a rule is for one pattern at least", remedy=_HOW, step="match")
    return Rule(tuple(several), tuple(steps))


def _chained(
    steps: Sequence[Step], part: Stream, settle: Callable[[Step, Stream], Step]
) -> tuple[tuple[Step, ...], Stream]:
    done: list[Step] = []
    for step in steps:
        try:
            done.append(settle(step, part))
            part = done[-1].apply(part)
        except TconvError as problem:
            raise problem.at(step=str(step)) from None
    return tuple(done), part


def _places(own: Sequence[tuple[int, Tensor]], made: Sequence[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """What steps made of ``own``, each with the place of the one of its name, else of the one before it."""
    places = {t.spec.name: n for n, t in own}
    place = own[0][0] if own else 0
    for tensor in made:
        place = places.get(tensor.spec.name, place)
        yield place, tensor
