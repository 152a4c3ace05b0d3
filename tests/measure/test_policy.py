"""Asking rules of tensors: of which ones, and what is read for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.measure.policy import check
from tconv.measure.rules import Expect, Finite, Fits, Rule, Shape, Within
from tconv.tensor import Extra, Ref, Stream
from tests.memory import ArraySource, tensor

if TYPE_CHECKING:
    from tconv.ops import Array

SINGLE = Expect((dtype("float32"),))
HALF = Fits(dtype("float16"))


def weights() -> Stream:
    """A model with a counter and an id table, and an optimizer in float64."""
    names = ["net.w", "net.counter", "optimizer.exp_avg"]
    arrays: list[Array] = [np.ones(3, np.float32), np.array([7, 10**9]), np.array([1e9, np.nan])]
    tree = {"net": {"w": Ref("net.w"), "counter": Ref("net.counter")}, "optimizer": {"exp_avg": Ref(names[2])}}
    return Stream(tuple(tensor(x, n) for n, x in zip(names, arrays, strict=True)), Extra("weights", tree))


def broken(stream: Stream, *rules: Rule, whole: bool = False) -> list[str]:
    return [f.tensor.spec.name for f in check([stream], rules, whole=whole).broken]


def test_like_a_cast_rules_concern_what_a_cast_would_touch() -> None:
    assert broken(weights(), SINGLE, HALF) == []
    assert broken(weights(), SINGLE, whole=True) == ["net.counter", "optimizer.exp_avg"]
    assert broken(weights(), HALF, whole=True) == ["net.counter", "optimizer.exp_avg"]
    assert broken(replace(weights(), extra=Extra("data")), SINGLE) == ["net.counter", "optimizer.exp_avg"]


def test_other_rules_concern_all_tensors() -> None:
    assert broken(weights(), Finite()) == ["optimizer.exp_avg"]
    assert broken(weights(), Within(0, 10)) == ["net.counter", "optimizer.exp_avg"]
    assert broken(weights(), Shape((3,))) == ["net.counter", "optimizer.exp_avg"]


def test_findings_come_in_the_order_of_the_tensors_then_of_the_rules() -> None:
    found = check([weights()], [Shape((9,)), Finite(), SINGLE], whole=True)
    assert [(f.tensor.spec.name.rpartition(".")[2], f.rule.option) for f in found.broken] == [
        ("w", "shape"),
        ("counter", "shape"),
        ("counter", "expect"),
        ("exp_avg", "shape"),
        ("exp_avg", "finite"),
        ("exp_avg", "expect"),
    ]
    assert found.concerned == 3


def test_what_is_only_told_breaks_nothing() -> None:
    found = check([Stream((tensor(np.array([1e-9, 1.0])),), Extra("data"))], [HALF])
    assert not found.broken
    assert [f.reason for f in found.warnings] == ["1 of 2 values would become 0 in float16"]


@dataclass(frozen=True, eq=False)
class Counting(ArraySource):
    """Counts how often it is read."""

    reads: list[int] = field(default_factory=list)

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        self.reads.append(hi - lo)
        return super().read(lo, hi, out)


def test_values_are_read_once_and_only_if_a_rule_needs_them() -> None:
    source = Counting(np.ones(5, np.float32))
    stream = Stream((replace(tensor(source.array), source=source),), Extra("data"))
    check([stream], [SINGLE, Shape((5,)), Fits(dtype("float32"))])
    assert source.reads == []
    check([stream], [HALF, Finite(), Within(0, 2)])
    assert source.reads == [5]


@dataclass(frozen=True, eq=False)
class Torn(ArraySource):
    """Cannot be read."""

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        raise TconvError("torn")


def test_what_cannot_be_read_is_named_and_the_rest_is_checked() -> None:
    torn = Torn(np.ones(2, np.float32), Path("torn.npy"))
    good = np.array([np.inf])
    stream = Stream((replace(tensor(torn.array, "t"), source=torn), tensor(good, "inf")), Extra("data"))
    found = check([stream], [Finite()])
    assert [str(problem) for problem in found.failures] == ["torn.npy: t: torn"]
    assert [f.tensor.spec.name for f in found.broken] == ["inf"]


def test_empty_tensors_break_no_rule_on_values() -> None:
    empty = Stream((tensor(np.zeros((0, 3), np.float32)),), Extra("data"))
    assert not broken(empty, Finite(), HALF, Within(0, 1))
