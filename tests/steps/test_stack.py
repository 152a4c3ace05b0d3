"""stack: one tensor of many equal ones, and which differences are refused how."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.parts import Parts
from tconv.pipeline import steps_from_text
from tconv.steps.stack import Stack
from tconv.tensor import Extra, Range, Ref, Stream, Tensor
from tests.memory import stream, tensor


def picture(name: str, shape: tuple[int, ...] = (4, 5, 3), dtype: str = "uint8", axes: str | None = "HWC") -> Tensor:
    return tensor(np.zeros(shape, dtype), name, axes, (0, 255))


def test_the_stack_is_described_by_its_parts() -> None:
    parts = [picture("a.png"), picture("b.png")]
    (made,) = Stack().apply(stream(*parts)).tensors
    assert (made.spec.name, made.spec.shape, made.spec.axes) == ("stack", (2, 4, 5, 3), "NHWC")
    assert (made.spec.dtype.name, made.spec.range, made.ops) == ("uint8", (0, 255), ())
    source = made.source
    assert isinstance(source, Parts)
    assert source.parts == tuple(parts)
    assert (source.shape, source.dtype.name, source.seekable) == ((2, 4, 5, 3), "uint8", False)
    assert source.path == Path("memory")
    with pytest.raises(AssertionError, match="part by part"):
        source.read(0, 1)


def test_a_stack_of_one_has_the_axis_too() -> None:
    (made,) = Stack(into="photos").apply(stream(picture("a.png"))).tensors
    assert (made.spec.name, made.spec.shape, made.spec.axes) == ("photos", (1, 4, 5, 3), "NHWC")


def test_without_axes_there_are_none_to_name() -> None:
    (made,) = Stack().apply(stream(*[picture(n, (2,), axes=None) for n in "ab"])).tensors
    assert (made.spec.shape, made.spec.axes) == ((2, 2), None)


@pytest.mark.parametrize(
    ("ranges", "common"),
    [
        ([(0.0, 1.0), (0.0, 1.0)], (0.0, 1.0)),
        ([(0.0, 1.0), (-1.0, 0.5)], (-1.0, 1.0)),
        ([(0.0, 1.0), None], None),
        ([None, None], None),
    ],
)
def test_the_range_holds_those_of_all_parts(ranges: list[Range | None], common: Range | None) -> None:
    parts = [tensor(np.zeros(3), str(n), known=known) for n, known in enumerate(ranges)]
    assert Stack().apply(stream(*parts)).tensors[0].spec.range == common


def test_what_the_parts_carry_is_kept_where_it_is_the_same() -> None:
    def with_attrs(name: str, **attrs: Any) -> Tensor:
        plain = picture(name)
        return replace(plain, spec=replace(plain.spec, attrs=attrs))

    same = Stack().apply(stream(with_attrs("a", alpha=True), with_attrs("b", alpha=True)))
    assert same.tensors[0].spec.attrs == {"alpha": True}
    mixed = Stack().apply(stream(with_attrs("a", alpha=True), with_attrs("b")))
    assert mixed.tensors[0].spec.attrs == {}


def test_the_tree_of_the_parts_is_gone_and_the_rest_stays() -> None:
    extra = Extra("data", {"a": Ref("a")}, {"made": "by hand"})
    made = Stack().apply(Stream((picture("a"),), extra, ("a note",)))
    assert made.extra == Extra("data", None, {"made": "by hand"})
    assert made.notes == ("a note",)


@pytest.mark.parametrize(
    ("other", "reason", "way", "not_way"),
    [
        (picture("b.png", (9, 5, 3)), "b.png is uint8 (9, 5, 3) HWC", "--resize HxW", "--channels"),
        (picture("b.png", (4, 5, 1)), "b.png is uint8 (4, 5, 1) HWC", "--channels rgb", "--resize"),
        (picture("b.png", (4, 5), axes="HW"), "b.png is uint8 (4, 5) HW", "--channels rgb", "--resize"),
        (picture("b.png", dtype="uint16"), "b.png is uint16 (4, 5, 3) HWC", "--normalize", "--resize"),
        (picture("b.png", axes="CHW"), "b.png is uint8 (4, 5, 3) CHW", "without --stack", "--resize"),
    ],
)
def test_a_difference_is_refused_naming_both_and_what_helps(other: Tensor, reason: str, way: str, not_way: str) -> None:
    with pytest.raises(TconvError) as caught:
        Stack().apply(stream(picture("a.png"), picture("c.png"), other))
    error = caught.value
    assert "a.png is uint8 (4, 5, 3) HWC" in error.reason
    assert reason in error.reason
    assert way in error.remedy
    assert not_way not in error.remedy
    assert "without --stack" in error.remedy
    assert (error.file, error.step) == ("memory", "stack")


def test_nothing_and_stacks_of_stacks_are_refused() -> None:
    with pytest.raises(TconvError, match="nothing to stack"):
        Stack().apply(stream())
    with pytest.raises(TconvError, match="a stack already"):
        Stack().apply(Stack().apply(stream(picture("a.png"))))


def test_many_parts_share_one_description() -> None:
    parts = [picture("a.png")] * 100_000
    assert Stack().apply(stream(*parts)).tensors[0].spec.shape == (100_000, 4, 5, 3)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("stack", Stack()),
        ("stack()", Stack()),
        ("stack(photos)", Stack("photos")),
        ("stack(into='my photos')", Stack("my photos")),
        ('stack("it\'s")', Stack("it's")),
        ("stack('none')", Stack("none")),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Stack) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]


@pytest.mark.parametrize("bad", ["", None, 3])
def test_a_name_is_a_name(bad: Any) -> None:
    with pytest.raises(UsageError):
        Stack(bad)
