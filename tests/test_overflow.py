"""Arithmetic whose results no float64 holds: refused by default, whatever dtype they are to be rounded to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.job import convert
from tconv.pipeline import steps_from_text
from tconv.request import Request, Silent

LARGEST = 1.7976931348623157e308


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(values: Any, steps: str, output: str = "made.npy", **asked: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """What the steps make of the values, and what was noted."""
    np.save("x.npy", values)
    notes: list[str] = []
    request = Request(("x.npy",), output, steps=tuple(steps_from_text([steps])), **asked)
    convert(request, Silent(), notes.append, lambda _: None)
    return np.load(output), notes


@pytest.mark.parametrize(
    "steps",
    [
        "normalize(mean=0, std=1e-10)",
        "normalize(mean=0, std=1e-10) | cast(float64)",
        "normalize(mean=0, std=1e-10) | cast(complex128)",
        "normalize(mean=0, std=1e-10) | cast(complex64)",
        "normalize(mean=0, std=1e-10) | cast(int64)",
    ],
)
def test_it_is_refused(steps: str) -> None:
    with pytest.raises(TconvError, match=r"1 of 2 values overflow .*the largest is beyond 1\.797"):
        run([1e300, 1e-10], steps)
    assert [p.name for p in Path().iterdir()] == ["x.npy"]


@pytest.mark.parametrize("to", ["", " | cast(float64)", " | cast(complex128)", " | cast(float16)"])
def test_it_is_infinite_if_that_was_asked_for(to: str) -> None:
    made, notes = run([1e300, 1e-10, -1e300], f"normalize(mean=0, std=1e-10){to}", on_overflow="inf")
    assert made.tolist() == [np.inf, 1, -np.inf]
    (note,) = notes
    assert "2 of 3 values overflow" in note


def test_it_is_the_largest_number_if_that_was_asked_for() -> None:
    made, _ = run([1e300, 1e-10, -1e300], "normalize(mean=0, std=1e-10)", on_overflow="saturate")
    assert made.tolist() == [LARGEST, 1, -LARGEST]


@pytest.mark.parametrize(
    "steps", ["normalize(mean=0, std=1)", f"clamp(-{LARGEST}, 100)", f"clamp(-{LARGEST}, 100) | cast(complex128)"]
)
def test_the_largest_number_of_the_data_is_none_of_it(steps: str) -> None:
    made, notes = run([1, 2, -LARGEST], steps)
    assert made.tolist() == [1, 2, -LARGEST]
    assert notes == []


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        (np.array([1e39, 1]), "quantize(int8)"),
        (np.array([-1e39, 1]), "quantize(uint8)"),
        (np.array([1e300, 1]), "normalize(mean=0, std=1e-10) | quantize(int8)"),
        (np.array([1e300, 1]), "normalize(mean=0, std=1e-10) | permute(0) | quantize(float8_e4m3fn)"),
        (np.array([1e30, 1], np.float32), "normalize(mean=0, std=1e-10) | quantize(int8)"),
    ],
)
def test_what_float32_does_not_hold_is_not_quantized(values: Any, steps: str) -> None:
    with pytest.raises(TconvError, match=r"overflow float32|values beyond ±3\.4e\+38"):
        run(values, steps, "made.safetensors")
