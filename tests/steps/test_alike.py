"""Tensors that are alike are asked about once, share what is made of them, and keep what is their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.ops import CastTo, Permute
from tconv.parts import Parts
from tconv.pipeline import steps_from_text
from tconv.steps.alike import once_a_kind
from tconv.tensor import Extra, Spec, Stream, Tensor
from tests.memory import ArraySource

F32 = CastTo(dtype=dtype("float32"))
TURN = Permute(perm=(1, 0))
ATTRS = {"alpha": True}


def tensor(name: str, **changes: object) -> Tensor:
    x = np.zeros((4, 6), np.uint8)
    spec = Spec(name, dtype("uint8"), x.shape, "HW", (0, 255), attrs=ATTRS)
    return Tensor(replace(spec, **changes), ArraySource(x))  # type: ignore[arg-type]  # fields of several types


class Asked:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, given: Tensor) -> Tensor:
        self.names.append(given.spec.name)
        return given.then(F32, range=(0, 1))


def test_one_answer_for_all_that_are_alike() -> None:
    asked = Asked()
    once = once_a_kind(asked)
    given = [tensor("a"), tensor("b"), tensor("c", alias_of="a")]
    made = list(map(once, given))
    assert asked.names == ["a"]
    assert [t.spec for t in made] == [asked(t).spec for t in given]
    assert [t.source for t in made] == [t.source for t in given]
    assert made[0].ops is made[1].ops is made[2].ops == (F32,)


@pytest.mark.parametrize(
    "other",
    [
        tensor("b", shape=(6, 4)),
        tensor("b", axes="WH"),
        tensor("b", range=(0, 1)),
        tensor("b", range=None),
        tensor("b", device="cuda"),
        tensor("b", dtype=dtype("int8")),
        tensor("b", attrs={"channels": "BGR"}),
        tensor("b").then(TURN),
        replace(tensor("b"), source=ArraySource(np.zeros((4, 6), np.int8))),
    ],
)
def test_whatever_a_step_may_look_at_makes_another_kind(other: Tensor) -> None:
    asked = Asked()
    once = once_a_kind(asked)
    once(tensor("a"))
    assert once(other) == asked(other)
    assert asked.names[:2] == ["a", "b"]


def test_pictures_of_many_sizes_share_their_operations_once_they_are_resized() -> None:
    stream = Stream(
        tuple(
            Tensor(Spec(f"{n}", dtype("uint8"), (n, 9, 3), "HWC", (0, 255)), ArraySource(np.zeros((n, 9, 3), np.uint8)))
            for n in (5, 6, 7)
        ),
        Extra("data"),
    )
    for step in steps_from_text(["resize(4x4) | scale | normalize(imagenet) | permute(CHW) | cast(float16)"]):
        stream = step.apply(stream)
    first, *others = stream.tensors
    assert len(first.ops) == 5
    assert all(t.ops is first.ops for t in others)
    assert [t.spec.name for t in stream.tensors] == ["5", "6", "7"]


def test_what_is_left_alone_is_the_same_object() -> None:
    once = once_a_kind(lambda given: given)
    given = [tensor("a"), tensor("b")]
    assert [once(t) for t in given] == given
    assert once(given[1]) is given[1]


def test_a_refusal_is_raised_for_each() -> None:
    def refuse(_: Tensor) -> Tensor:
        raise TconvError("no")

    once = once_a_kind(refuse)
    problems = []
    for given in (tensor("a"), tensor("b")):
        with pytest.raises(TconvError) as found:
            once(given)
        problems.append(found.value.at(tensor=given.spec.name))
    assert [p.tensor for p in problems] == ["a", "b"]


def test_stacks_are_asked_about_one_by_one() -> None:
    asked = Asked()
    part = tensor("p")
    stack = Tensor(Spec("a", dtype("uint8"), (1, 4, 6)), Parts((part,), dtype("uint8"), (1, 4, 6)))
    once = once_a_kind(asked)
    once(stack)
    once(replace(stack, spec=replace(stack.spec, name="b")))
    assert asked.names == ["a", "b"]
