"""What a user asks for, as flags, text or YAML, becomes steps: one grammar, literals only, nothing is evaluated."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tconv import registry
from tconv.errors import UsageError
from tconv.grammar import Call, Case, NoChain, around, literal, parse_chain
from tconv.parameters import WrongParameter, bind, check_names
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    from tconv.step import Step


@dataclass(frozen=True)
class Sugar:
    """The options of the command line that stand for steps; what is None or False was not given."""

    resize: str | None = None
    normalize: bool = False
    stats: str | None = None
    layout: str | None = None
    to: str | None = None
    stack: bool = False
    denormalize: str | None = None
    quantize: str | None = None
    pad: str | None = None

    def chain(self) -> list[str]:
        """The steps in their fixed order: resize, pad, scale, normalize, layout and stack, quantize, cast; or back."""
        if self.denormalize is not None:
            return ["pictures", f"denormalize({literal(self.denormalize)})", "unstack", "scale(uint8)"]
        steps = []
        if self.resize is not None:
            steps.append(f"resize({literal(self.resize)})")
        if self.pad is not None:
            steps.append("pad" if self.pad == "0" else f"pad(fill={literal(self.pad)})")
        if self.normalize:
            steps.append("scale")
        if self.stats is not None:
            steps.append(f"normalize({literal(self.stats)})")
        # Named axes with an N are those of the stack; without one they are those of each image in it.
        batched = self.layout is not None and "N" in self.layout.upper()
        if self.stack and batched:
            steps.append("stack")
        if self.layout is not None:
            steps.append(f"permute({literal(self.layout.upper())})")
        if self.stack and not batched:
            steps.append("stack")
        if self.quantize is not None:
            steps.append(f"quantize({self.quantize})")
        if self.to is not None:
            steps.append(f"cast({self.to})")
        return steps

    def given(self) -> bool:
        """Whether one of them was; ``stack`` goes with an explicit chain too."""
        return self.denormalize is not None or self.forward()

    def forward(self) -> bool:
        """Whether one of those was that make tensors of pictures, not pictures of tensors."""
        texts = (self.resize, self.pad, self.stats, self.layout, self.quantize, self.to)
        return self.normalize or any(text is not None for text in texts)


def steps_from_text(texts: Sequence[str]) -> list[Step]:
    """Steps from ``resize(224) | scale``, one or several to a text. Raises ``UsageError`` with the position."""
    steps: list[Step] = []
    for text in texts:
        try:
            steps += steps_of(text)
        except UsageError as problem:
            at = problem.position
            if at is not None and (at or not problem.step) and not isinstance(problem, NoChain):  # which says it
                problem.step = ", ".join(filter(None, (problem.step, f"position {at + 1}")))
            raise
    return steps


def steps_of(text: str) -> list[Step]:
    """The steps of one text; errors carry their ``position`` and do not spell it out."""
    return [build(call) for call in parse_chain(text)]


def build(call: Call) -> Step:
    """The step that a parsed call asks for, its parameters checked. Errors end with how the step is written."""
    cls: Any = _known(call)
    args = [_case(cls, arg) if isinstance(arg, Case) else arg for arg in call.args]
    try:
        if hasattr(cls, "parse"):
            check_names(cls, call.kwargs)
            made = cls.parse(*args, **call.kwargs)
        else:
            made = cls(**bind(cls, args, call.kwargs))
    except UsageError as problem:
        wrong, hint = _nearest_word(cls, call)
        if not (isinstance(problem, WrongParameter) and problem.remedy):  # which knows best
            problem.remedy = hint or problem.remedy or f"for example {cls.usage}"
        if problem.position is None:
            parameter = getattr(problem, "parameter", "") or wrong or _blamed(cls, call, problem.reason)
            problem.position = _place(cls, call, parameter)
        raise problem.at(step=around(call.text)) from None
    step: Step = made
    return step


def _known(call: Call) -> type[Step]:
    try:
        return registry.step(call.name)
    except UsageError as problem:
        problem.position = call.start
        raise


def _case(cls: type[Step], case: Case) -> tuple[Any, tuple[Step, ...]]:
    """A rule with its steps built, for the one step that takes rules."""
    if cls is not registry.step("match"):
        raise UsageError("rules are for match", remedy=f"for example {registry.step('match').usage}", step=cls.name)
    return case.value, tuple(build(call) for call in case.calls)


def _place(cls: Any, call: Call, parameter: str) -> int:
    """Where a parameter stands, by name or by number; else where the step does."""
    names = [f.name for f in dataclasses.fields(cls)]
    number = names.index(parameter) if parameter in names else -1
    return call.places.get(parameter, call.places.get(number, call.start))


def _given(cls: Any, call: Call) -> Mapping[str, Any]:
    """The values as they were written, by the names of their parameters."""
    return {**dict(zip((f.name for f in dataclasses.fields(cls)), call.args, strict=False)), **call.kwargs}


def _blamed(cls: Any, call: Call, reason: str) -> str:
    """The parameter that a reason is about: it begins with its name, or quotes the text that was given for it."""
    given = _given(cls, call)
    named = (name for name in given if re.match(rf"{re.escape(name)}\b", reason))
    quoted = (name for name, value in given.items() if isinstance(value, str) and repr(value) in reason)
    return next(named, "") or next(quoted, "")


def _nearest_word(cls: Any, call: Call) -> tuple[str, str]:
    """The parameter that takes certain words and was given another one, and what may have been meant."""
    given = _given(cls, call)
    for name, words in cls.choices.items():
        word = given.get(name)
        if isinstance(word, str) and word not in words:
            return name, did_you_mean(word, words)
    return "", ""
