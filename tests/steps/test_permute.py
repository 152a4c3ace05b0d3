"""permute: axes by letter and by number, there and back, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError, TconvErrors, UsageError
from tconv.pipeline import steps_from_text
from tconv.steps.permute import Permute
from tests.memory import rearranged, stream, tensor

PICTURE = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def test_letters_move_the_values_with_their_axes() -> None:
    (made,) = Permute("CHW").apply(stream(tensor(PICTURE, axes="HWC", known=(0, 255)))).tensors
    assert (made.spec.shape, made.spec.axes, made.spec.range) == ((4, 2, 3), "CHW", (0, 255))
    np.testing.assert_array_equal(rearranged(made), np.moveaxis(PICTURE, -1, 0))


def test_the_order_that_is_there_is_no_operation() -> None:
    given_stream = stream(tensor(PICTURE, axes="HWC"))
    for step in (Permute("HWC"), Permute((0, 1, 2)), Permute((0, -2, 2))):
        assert step.apply(given_stream).tensors[0] is given_stream.tensors[0]


def test_numbers_need_no_axes_and_keep_the_letters_in_step() -> None:
    (weight,) = Permute((1, 0)).apply(stream(tensor(np.ones((5, 7))))).tensors
    assert (weight.spec.shape, weight.spec.axes) == ((7, 5), None)
    (made,) = Permute((-1, 0, 1)).apply(stream(tensor(PICTURE, axes="HWC"))).tensors
    assert made.spec.axes == "CHW"


@given(st.integers(1, 6).flatmap(lambda rank: st.permutations(range(rank))))
def test_a_permutation_and_its_inverse_give_the_array_back(order: list[int]) -> None:
    x = np.arange(np.prod(range(2, len(order) + 2))).reshape(range(2, len(order) + 2))
    (there,) = Permute(tuple(order)).apply(stream(tensor(x))).tensors
    np.testing.assert_array_equal(rearranged(there), x.transpose(order))
    back = Permute(tuple(int(i) for i in np.argsort(order))).apply(stream(there))
    np.testing.assert_array_equal(rearranged(back.tensors[0]), x)


@pytest.mark.parametrize(
    ("axes", "order", "words"),
    [
        (None, "CHW", "--input-layout"),
        ("HWC", "NCHW", "stack | permute(NCHW)"),
        ("HW", "CHW", "--channels rgb"),
        ("NHWC", "CHW", "permute(NCHW)"),
        ("HWC", "HWT", "use the letters H, W, C"),
    ],
)
def test_axes_that_the_tensor_lacks_are_refused_with_the_way_out(axes: str | None, order: str, words: str) -> None:
    x = np.zeros((2, 3, 4, 5)[: len(axes or "HWC")])
    with pytest.raises(TconvError) as caught:
        Permute(order).apply(stream(tensor(x, "cat.png", axes)))
    error = caught.value
    assert words in error.remedy
    assert (error.file, error.tensor, error.step) == ("memory", "cat.png", f"permute({order})")


def test_every_tensor_of_another_rank_is_named() -> None:
    with pytest.raises(TconvErrors) as caught:
        Permute((1, 0)).apply(stream(tensor(np.ones(3), "b"), tensor(np.ones((3, 2)), "w"), tensor(np.ones(()), "s")))
    assert [p.tensor for p in caught.value.problems] == ["b", "s"]


@pytest.mark.parametrize(
    "order", ["", "CHH", "C H", "chw", (), (0, 0), (0, 2), (0, -2), (1.0, 0), (True, 0), ("C", "H")]
)
def test_what_does_not_name_each_axis_once_is_a_usage_error(order: Any) -> None:
    with pytest.raises(UsageError, match="each axis once"):
        Permute(order)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("permute(CHW)", Permute("CHW")),
        ("permute(nhwc)", Permute("NHWC")),
        ("permute(1, 0)", Permute((1, 0))),
        ("permute(-1, 0, 1)", Permute((-1, 0, 1))),
        ("permute([1, 0])", Permute((1, 0))),
        ("permute(order=[1, 0])", Permute((1, 0))),
        ("permute(order=CHW)", Permute("CHW")),
        ("permute(0)", Permute((0,))),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Permute) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]


@pytest.mark.parametrize("text", ["permute()", "permute", "permute(C, H, W)", "permute(1.5)", "permute(CHW, 0)"])
def test_text_without_an_order_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        steps_from_text([text])


def test_scales_do_not_become_those_of_another_axis() -> None:
    """A square of numbers with a scale a row would be read with the same scales for its columns, and no error."""
    said = {"w": {"to": "int8", "axis": 0, "group": None}, "g": {"axis": None, "group": 2}, "odd": {"axis": 0.0}}
    names = ("w", "g", "odd", "other")
    cube = stream(*(tensor(np.zeros((2, 2, 2), np.int8), name) for name in names))
    quantized = replace(cube, extra=replace(cube.extra, metadata={"tconv.quantized": json.dumps(said)}))
    with pytest.raises(TconvErrors) as caught:
        Permute((1, 0, 2)).apply(quantized)
    assert [problem.tensor for problem in caught.value.problems] == ["w", "g"]
    assert "its scales are those of another axis then; permute before it is quantized" in str(caught.value.problems[0])
    with pytest.raises(TconvError, match=r"^memory: g: permute\(0, 2, 1\): its scales"):  # the rows stay those of w
        Permute((0, 2, 1)).apply(quantized)
    assert Permute((0, 1, 2)).apply(quantized) == quantized
