"""Agreement: decibels and first choices by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.models.agreement import Comparison, Output


def test_decibels_and_first_choices_by_hand() -> None:
    found = Comparison()
    before = np.array([[3, 4, 0], [0, 0, 5]], np.float32)
    found.add({"y": before}, {"y": before + np.array([[0.3, -0.4, 0], [0, 0, 0]], np.float32)}, 2)
    found.add({"y": before[:1]}, {"y": np.array([[4, 3, 0]], np.float32)}, 1)
    output = found.outputs["y"]
    assert (output.samples, output.same) == (3, 2)
    assert output.agreement == pytest.approx(2 / 3)
    assert output.sqnr == pytest.approx(10 * math.log10(75 / 2.25), rel=1e-6)
    assert output.as_json() == {
        "samples": 3,
        "sqnr_db": pytest.approx(15.228787),
        "exact": False,
        "same_top1": 2,
        "agreement": pytest.approx(2 / 3),
    }


def test_where_nothing_is_lost_or_nothing_was_there() -> None:
    same, silent = Output(), Output()
    same.add(np.ones((1, 2, 2)), np.ones((1, 2, 2)), 1)
    assert same.sqnr == math.inf
    assert same.as_json() == {"samples": 1, "sqnr_db": None, "exact": True, "same_top1": None, "agreement": None}
    silent.add(np.zeros((1, 1)), np.ones((1, 1)), 1)
    assert silent.as_json() == {"samples": 1, "sqnr_db": None, "exact": False, "same_top1": None, "agreement": None}
    assert silent.sqnr == -math.inf
    assert silent.same is None  # one number is no choice


def test_what_cannot_be_compared() -> None:
    x = np.ones((2, 3))
    with pytest.raises(TconvError, match=r"its output y is \(2, 3\), and nothing when it is quantized"):
        Comparison().add({"y": x}, {"z": x}, 2)
    with pytest.raises(TconvError, match=r"its output y is \(2, 3\), and \(2, 4\)"):
        Comparison().add({"y": x}, {"y": np.ones((2, 4))}, 2)
    with pytest.raises(TconvError, match="its output y holds NaN or infinities before"):
        Comparison().add({"y": x * np.nan}, {"y": x}, 2)
    with pytest.raises(TconvError, match="its output y holds NaN or infinities when it is quantized, and none before"):
        Comparison().add({"y": x}, {"y": x * np.nan}, 2)
    for output in ([{"a": 1}], np.array(["cat", "dog"])):
        with pytest.raises(TconvError, match="its output y is no tensor of numbers"):
            Comparison().add({"y": output}, {"y": output}, 2)  # type: ignore[dict-item]  # as a library gave it


def test_integers_are_the_same_or_not() -> None:
    """A class has no decibels."""
    found = Comparison()
    found.add({"y": np.array([1, 2, 3])}, {"y": np.array([1, 2, 9])}, 3)
    found.add({"y": np.array([4])}, {"y": np.array([4])}, 1)
    assert found.outputs["y"].as_json() == {
        "samples": 4, "sqnr_db": None, "exact": False, "same_top1": 3, "agreement": 0.75,
    }  # fmt: skip
    found.check(0.75, 1000)
    with pytest.raises(TconvError, match=r"the same first choice for 75\.0% of the samples; 80\.0% were asked for"):
        found.check(0.8, None)


@pytest.mark.parametrize("shape", [(), (5,), (1, 7)])
def test_what_is_not_of_each_sample_has_decibels_only(shape: tuple[int, ...]) -> None:
    found = Output()
    found.add(np.ones(shape), np.ones(shape), 3)
    assert (found.samples, found.same, found.sqnr) == (3, None, math.inf)


def test_what_falls_short_is_refused() -> None:
    found = Comparison()
    found.add({"y": np.array([[1.0, 0], [0, 1]])}, {"y": np.array([[1.0, 0], [1, 0]])}, 2)
    found.check(None, None)
    found.check(0.5, 0)
    with pytest.raises(TconvError, match=r"the same first choice for 50\.0% of the samples; 90\.0% were asked for"):
        found.check(0.9, None)
    with pytest.raises(TconvError, match=r"an SQNR of 0\.0 dB; 10 were asked for"):
        found.check(None, 10)


def test_what_no_output_can_fall_short_of_is_refused() -> None:
    """A number and a picture of each sample have no first choice, and classes no decibels: neither would be checked."""
    floats, classes, both = Comparison(), Comparison(), Comparison()
    number, picture, kind = np.ones((2, 1), np.float32), np.ones((2, 3, 4, 4), np.float32), np.array([1, 2])
    floats.add({"y": number, "z": picture}, {"y": number, "z": picture}, 2)
    classes.add({"y": kind}, {"y": kind}, 2)
    both.add({"y": number, "z": kind}, {"y": number, "z": kind}, 2)
    for found in (floats, classes):
        found.refuse_unmeasured(None, None)
    floats.refuse_unmeasured(None, 30)
    classes.refuse_unmeasured(0.9, None)
    both.refuse_unmeasured(0.9, 30)
    with pytest.raises(UsageError, match="no output of it has one number a class or integers; say --min-sqnr"):
        floats.refuse_unmeasured(0.9, None)
    with pytest.raises(UsageError, match="its outputs are integers; say --min-agreement"):
        classes.refuse_unmeasured(None, 30)
