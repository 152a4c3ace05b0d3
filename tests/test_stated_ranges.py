"""``--range`` from the option to the message: what is said of values is held against them, in the same pass."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tconv.job import convert
from tconv.pipeline import Sugar, steps_from_text
from tconv.request import Request, Silent

REMEDY = "; say the true range with --range LO,HI"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*inputs: str, **asked: Any) -> list[str]:
    """The job, and what it noted."""
    notes: list[str] = []
    fields: dict[str, Any] = {"output": "out.npy", "force": True} | asked
    convert(Request(inputs, **fields), Silent(), notes.append, lambda _: None)
    return notes


def saved(x: Any, dtype: str) -> np.ndarray[Any, Any]:
    np.save("x.npy", made := np.array(x, dtype))
    return made


@pytest.mark.parametrize(
    ("x", "dtype", "told"),
    [
        ([-3, 0, 1, 254], "int16", "2 of 4 values lie outside the stated range [0, 1]; from -3 to 254"),
        ([-3, 0, 1, 254], "float32", "2 of 4 values lie outside the stated range [0, 1]; from -3 to 254"),
        ([0, 1, 254], "uint8", "1 of 3 values lie outside the stated range [0, 1]; from 0 to 254"),
        ([-3, 0, 1], "int8", "1 of 3 values lie outside the stated range [0, 1]; from -3 to 1"),
        ([2**62], "int64", f"1 of 1 values lie outside the stated range [0, 1]; from {2**62} to {2**62}"),
        ([2**63, 0], "uint64", f"1 of 2 values lie outside the stated range [0, 1]; from 0 to {2**63}"),
        ([0.5, math.nan], "float64", "1 of 2 values lie outside the stated range [0, 1] (1 NaN); from 0.5 to 0.5"),
        (
            [0.5, math.inf, 2],
            "float16",
            "2 of 3 values lie outside the stated range [0, 1] (1 finite + 1 inf); from 0.5 to 2",
        ),
    ],
)
@pytest.mark.parametrize("sugar", [Sugar(to="float64"), Sugar(normalize=True), Sugar()])
def test_values_outside_are_told_and_left_alone(x: list[float], dtype: str, told: str, sugar: Sugar) -> None:
    values = saved(x, dtype)
    assert run("x.npy", sugar=sugar, range=(0.0, 1.0)) == [f"x.npy: x: {told}{REMEDY}"]
    expected = values.astype(np.float32) if sugar.normalize and not dtype.startswith("float") else values
    np.testing.assert_array_equal(np.load("out.npy").astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_nothing_is_told_of_values_that_keep_to_it(dtype: str) -> None:
    saved([[0, 1], [1, 0]], dtype)
    assert run("x.npy", sugar=Sugar(normalize=True), range=(0.0, 1.0)) == []


def test_integer_targets_are_clamped_and_floats_are_not() -> None:
    saved([-1, 0.5, 3], "float32")
    told = "2 of 3 values lie outside the stated range [0, 1]; from -1 to 3"
    (note,) = run("x.npy", steps=tuple(steps_from_text(["scale(uint8)"])), range=(0.0, 1.0))
    assert told in note
    assert np.load("out.npy").tolist() == [0, 128, 255]
    (note,) = run("x.npy", steps=tuple(steps_from_text(["scale(float64)"])), range=(0.0, 1.0))
    assert told in note
    assert np.load("out.npy").tolist() == [-1, 0.5, 3]


def test_every_picture_is_told_by_its_name_once_and_not_only_where_it_was_resized() -> None:
    Path("in").mkdir()
    for name, value in (("a", 0), ("b", 200), ("c", 1)):
        Image.fromarray(np.full((20, 30, 3), value, np.uint8)).save(f"in/{name}.png")
    notes = run("in", sugar=Sugar(resize="8x8", normalize=True), range=(0.0, 1.0))
    assert notes == [f"in/b.png: 1800 of 1800 values lie outside the stated range [0, 1]; from 200 to 200{REMEDY}"]
    assert np.load("out.npy")[:, 0, 0, 0].tolist() == [0, 200, 1]


def test_complex_numbers_have_no_range() -> None:
    saved([5 + 5j], "complex64")
    assert run("x.npy", sugar=Sugar(to="complex128"), range=(0.0, 1.0)) == []


def test_what_an_earlier_command_scaled_is_not_scaled_again() -> None:
    Image.fromarray(np.full((4, 4, 3), 255, np.uint8)).save("a.png")
    run("a.png", sugar=Sugar(normalize=True), output="once.safetensors")
    with pytest.raises(TconvError, match=r"once.safetensors: a.png: scale: .*\[0, 1\] already, says the file"):
        run("once.safetensors", sugar=Sugar(normalize=True), output="twice.safetensors")
    assert run("once.safetensors", sugar=Sugar(normalize=True), range=(0.0, 1.0), output="twice.safetensors") == []
    run("once.safetensors", sugar=Sugar(stats="imagenet"), output="ready.safetensors")
    for sugar in (Sugar(normalize=True), Sugar(stats="imagenet")):
        with pytest.raises(TconvError, match=r"says the file: (normalized data|they were normalized before)"):
            run("ready.safetensors", sugar=sugar, output="twice.safetensors")
    run("a.png", sugar=Sugar(to="float32"), output="pixels.safetensors")
    assert run("pixels.safetensors", sugar=Sugar(normalize=True), output="once.safetensors") == []
