"""match: the first rule that fits a name says what is done to the tensor, and the others stay as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.request import Silent
from tconv.scan import Scanner
from tconv.step import Step
from tconv.steps.cast import Cast
from tconv.steps.match import Match
from tconv.tensor import Extra, Stream
from tests.memory import stream, tensor


def match(text: str) -> Match:
    (step,) = steps_from_text([text])
    assert isinstance(step, Match)
    return step


def weights(*names: str) -> Stream:
    return Stream(tuple(tensor(np.array([0.1, 70000], np.float32), name) for name in names), Extra("weights"))


def dtypes(made: Stream) -> list[tuple[str, str]]:
    return [(t.spec.name, t.spec.dtype.name) for t in made.tensors]


def test_the_first_rule_that_fits_counts_and_order_stays() -> None:
    step = match('match("*.norm.*": cast(float64), ["a.*", "z"]: [], "*": clamp(0, 1) | cast(bfloat16))')
    made = step.apply(weights("b.w", "a.norm.w", "a.w", "z", "c"))
    assert dtypes(made) == [
        ("b.w", "bfloat16"), ("a.norm.w", "float64"), ("a.w", "float32"), ("z", "float32"), ("c", "bfloat16"),
    ]  # fmt: skip
    assert evaluate(made.tensors[0])[0].tolist() == [0.10009765625, 1]
    assert evaluate(made.tensors[1])[0].tolist() == [float(np.float32(0.1)), 70000]


def test_a_name_without_a_rule_is_left_alone() -> None:
    assert dtypes(match('match("a": cast(float16))').apply(weights("a", "A", "ab"))) == [
        ("a", "float16"), ("A", "float32"), ("ab", "float32"),
    ]  # fmt: skip


def test_what_a_step_adds_or_joins_takes_the_place_of_what_it_was_made_of() -> None:
    tensors = [tensor(np.full(2, n, np.float32), name) for n, name in enumerate("abcd")]
    made = match('match(["b", "d"]: stack(into=bd), "c": cast(float16))').apply(stream(*tensors))
    assert [(t.spec.name, evaluate(t)[0].tolist()) for t in made.tensors] == [
        ("a", [0, 0]), ("bd", [[1, 1], [3, 3]]), ("c", [2, 2]),
    ]  # fmt: skip


def test_one_integer_field_of_several_is_asked_about_though_its_rule_sees_it_alone() -> None:
    fields = stream(tensor(np.zeros(2), "x"), tensor(np.arange(2), "label"))
    step = match('match("x": cast(float16), "*": cast(float32))')
    with pytest.raises(TconvError, match=r"may be labels: label \(int64\)") as caught:
        step.apply(fields)
    assert "--fields ''" in str(caught.value)
    made = step.apply(replace(fields, extra=replace(fields.extra, fields="*")))
    assert dtypes(made) == [("x", "float16"), ("label", "float32")]
    assert made.extra == replace(fields.extra, fields="*")


def test_refusals_of_all_rules_are_told_together_with_their_step() -> None:
    x = tensor(np.ones(2, np.complex64), "x"), tensor(np.ones(2, np.float32), "y")
    with pytest.raises(TconvError) as caught:
        match('match("x": clamp(0, 0.5), "y": scale)').apply(stream(*x))
    first, second = str(caught.value).splitlines()
    assert "x: clamp(0, 0.5): complex64 values have no order" in first
    assert "y: scale: nobody knows the range" in second


def test_values_settle_the_steps_within() -> None:
    step = match('match("a": cast(float16, on_overflow=keep), "*": cast(bfloat16))')
    assert step.needs_scan
    found = weights("a", "b")

    fitted, notes = step.fit(found, Scanner(1, 1 << 20, Silent()))
    assert dtypes(fitted.apply(found)) == [("a", "float32"), ("b", "bfloat16")]
    assert len(notes) == 1
    assert "stays float32: 1 of 2 values overflow float16" in notes[0]
    assert str(fitted) == str(step)
    assert not match('match("*": cast(half))').needs_scan


def test_the_steps_within_are_found_and_changed() -> None:
    step = match('match("a": scale | cast(half), "b": match("*": cast(bf16)))')
    assert [str(one) for one in step.flat()] == ["scale", "cast(float16)", "cast(bfloat16)"]

    def saturated(one: Step) -> Step:
        return replace(one, on_overflow="saturate") if isinstance(one, Cast) else one

    assert str(step.each(saturated)) == (
        'match("a": scale | cast(float16, on_overflow=saturate), "b": match("*": cast(bfloat16, on_overflow=saturate)))'
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("match", "it needs a rule"),
        ("match()", "it needs a rule"),
        ("match(a)", "a rule is \"GLOB\": STEPS, not 'a'"),
        ("match(3: scale)", "not for 3"),
        ("match([]: scale)", "for one pattern at least"),
        ("match(['a', '']: scale)", "not for ''"),
        ("match('a': scale, rules=3)", "a rule is"),
        ("match('a': [scale])", "expected ']'"),
        ("match('a':)", "expected the name of a step at position 11"),
        ("match('a': scale | )", "expected the name of a step"),
        ("cast('a': scale)", "rules are for match"),
        ("match(" * 12 + "'a': scale" + ")" * 12, "expected"),
        ("match('a': " * 12 + "scale" + ")" * 12, "expected fewer rules in each other"),
        ("match('a': scale, 'b': cst(half))", "position 24: there is no step 'cst'; did you mean cast?"),
        ("match('a': cast(half, kep=1))", "position 23: there is no parameter 'kep'; did you mean keep?"),
    ],
)
def test_what_is_no_rule(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([text])
    assert says in str(caught.value)
