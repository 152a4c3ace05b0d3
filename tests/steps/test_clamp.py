"""clamp: into an interval, in the dtype that the values have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.steps.clamp import Clamp
from tconv.tensor import Extra, Stream
from tests.memory import stream, tensor

if TYPE_CHECKING:
    from tconv.ops import Array


def test_values_go_to_the_bounds_and_nan_stays() -> None:
    x = np.array([-5, -0.0, 0.3, 1, 7, np.inf, -np.inf, np.nan], np.float32)
    (made,) = Clamp(-1, 1).apply(stream(tensor(x))).tensors
    assert (made.spec.dtype.name, made.spec.range) == ("float32", (-1, 1))
    values = evaluate(made)[0]
    np.testing.assert_array_equal(values, np.array([-1, -0.0, 0.3, 1, 1, 1, -1, np.nan], np.float32))


@pytest.mark.parametrize(
    ("known", "range_"), [((0, 0.5), (0, 0.5)), ((-9, 9), (-1, 1)), ((5, 9), (1, 1)), (None, (-1, 1))]
)
def test_the_range_is_the_part_of_it_that_is_left(
    known: tuple[float, float] | None, range_: tuple[float, float]
) -> None:
    (made,) = Clamp(-1, 1).apply(stream(tensor(np.ones(2), known=known))).tensors
    assert made.spec.range == range_


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64])
def test_integers_stay_integers_and_exact(dtype: type) -> None:
    top = np.iinfo(dtype).max
    (made,) = Clamp(3, 2**53).apply(stream(tensor(np.array([0, 5, top], dtype)))).tensors
    assert evaluate(made)[0].tolist() == [3, 5, min(top, 2**53)]
    assert made.spec.dtype.numpy == dtype


def test_of_weights_only_floats() -> None:
    tensors = tensor(np.array([5], np.float32), "w"), tensor(np.array([5], np.int64), "n")
    made = Clamp(0, 1).apply(Stream(tensors, Extra("weights")))
    assert [evaluate(t)[0].tolist() for t in made.tensors] == [[1], [5]]


@pytest.mark.parametrize(
    ("x", "step", "text"),
    [
        (np.array([1], np.int64), Clamp(0, 0.5), r"0\.5 is no bound for int64"),
        (np.array([1], np.int64), Clamp(0, 2.0**60), "no bound for int64"),
        (np.array([1], np.complex64), Clamp(0, 1), "complex64"),
        (np.array([True]), Clamp(0, 1), "bool"),
    ],
)
def test_what_cannot_be_clamped_is_refused(x: Array, step: Clamp, text: str) -> None:
    with pytest.raises(TconvError, match=text):
        step.apply(stream(tensor(x)))


def test_a_label_beside_floats_is_not_clamped_by_the_way() -> None:
    with pytest.raises(TconvError, match=r"clamp\(0, 1\): it would change integer fields.*: label \(int64\)"):
        Clamp(0, 1).apply(stream(tensor(np.ones(2)), tensor(np.array([7], np.int64), "label")))


@pytest.mark.parametrize(("lo", "hi"), [(1, 0), (float("nan"), 1), (0, float("inf"))])
def test_bad_bounds_fail_at_construction(lo: float, hi: float) -> None:
    with pytest.raises(UsageError, match="bounds"):
        Clamp(lo, hi)


def test_the_text_parses_back() -> None:
    for step, text in ((Clamp(0, 1), "clamp(0, 1)"), (Clamp(-0.5, 1e-07), "clamp(-0.5, 1e-07)")):
        assert str(step) == text
        assert steps_from_text([text]) == [step]
