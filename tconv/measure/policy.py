"""Asks all rules of all tensors of some files, and reads only the values that a rule needs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tconv.measure.rules import Rule, Seen
from tconv.scan import scan
from tconv.training import training_state

if TYPE_CHECKING:
    from tconv.errors import TconvError
    from tconv.ops import Array
    from tconv.request import Progress
    from tconv.tensor import Spec, Stream, Tensor


@dataclass(frozen=True)
class Finding:
    """A tensor that breaks a rule, or about which there is something to say. ``seen`` is there if values were read."""

    tensor: Tensor
    rule: Rule
    reason: str
    seen: Seen | None = None


@dataclass(frozen=True)
class Checked:
    """``concerned``: how many tensors there was any rule for. ``failures``: what could not be read."""

    concerned: int
    broken: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    failures: tuple[TconvError, ...]


def check(
    streams: Sequence[Stream], rules: Sequence[Rule], *, whole: bool = False, progress: Progress | None = None
) -> Checked:
    """Ask all of every tensor. Values are read where a rule needs them and the description does not tell already.

    Rules that are ``like_a_cast`` concern the floating tensors of weights, and no state of the training, unless
    ``whole``; of data they concern all tensors, but labels only if ``whole``. The findings are in the order of the
    tensors.
    """
    asked = [(tensor, rule) for stream in streams for tensor, rule in _asked(stream, rules, whole)]
    broken: dict[int, Finding] = {}
    reading: dict[int, list[int]] = {}  # by tensor, the numbers of what is asked of it
    for n, (tensor, rule) in enumerate(asked):
        if reason := rule.against(tensor.spec):
            broken[n] = Finding(tensor, rule, reason)
        elif rule.reads(tensor.spec):
            reading.setdefault(id(tensor), []).append(n)
    seen, failures = _look(asked, list(reading.values()), progress)
    warnings = []
    for n, one in seen.items():
        tensor, rule = asked[n]
        if reason := rule.judge(one, tensor.spec):
            broken[n] = Finding(tensor, rule, reason, one)
        if reason := rule.warn(one, tensor.spec):
            warnings.append(Finding(tensor, rule, reason, one))
    concerned = len({id(tensor) for tensor, _ in asked})
    return Checked(concerned, tuple(broken[n] for n in sorted(broken)), tuple(warnings), tuple(failures))


def _asked(stream: Stream, rules: Sequence[Rule], whole: bool) -> list[tuple[Tensor, Rule]]:
    narrow = stream.extra.kind == "weights" and not whole
    training = training_state(stream.extra.tree) if narrow else set()

    def concerns(rule: Rule, spec: Spec) -> bool:
        touched = spec.dtype.kind in ("float", "complex") and spec.name not in training
        spared = narrow or (spec.attrs.get("label") and not whole)
        return (touched and not spec.attrs.get("label")) or not (rule.like_a_cast and spared)

    return [(tensor, rule) for tensor in stream.tensors for rule in rules if concerns(rule, tensor.spec)]


def _look(
    asked: Sequence[tuple[Tensor, Rule]], reading: Sequence[Sequence[int]], progress: Progress | None
) -> tuple[dict[int, Seen], list[TconvError]]:
    """One pass over the tensors; ``reading`` has for each of them the numbers of what is asked."""
    seen = {n: Seen() for numbers in reading for n in numbers}
    adding = threading.Lock()

    def visit(i: int, lo: int, x: Array) -> None:
        for n in reading[i]:
            tensor, rule = asked[n]
            found = rule.look(lo, x, tensor.spec.dtype)
            with adding:
                seen[n].merge(found)

    failures = scan([asked[numbers[0]][0] for numbers in reading], visit, progress)
    return seen, failures
