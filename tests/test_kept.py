"""Tensors that a cast leaves as they are: because of which values, and how it is told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tconv.errors import TconvError, UsageError
from tconv.job import convert
from tconv.pipeline import steps_from_text
from tconv.request import Request, Silent


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*inputs: str, steps: str, **asked: Any) -> list[str]:
    """The job, and what it noted."""
    notes: list[str] = []
    fields: dict[str, Any] = {"output": "made.npz", "force": True} | asked
    request = Request(inputs, steps=tuple(steps_from_text([steps])), **fields)
    convert(request, Silent(), notes.append, lambda _: None)
    return notes


def dtypes() -> dict[str, str]:
    with np.load("made.npz") as made:
        return {name: made[name].dtype.name for name in made}


@pytest.mark.parametrize("policy", [None, "saturate", "keep"])
@pytest.mark.parametrize(
    ("target", "value", "told"),
    [
        ("float8_e4m3fn", math.inf, "1 inf of 2 values"),
        ("float8_e4m3fn", -math.inf, "1 inf of 2 values"),
        ("float8_e4m3fn", 1000.0, "1 of 2 values"),
        ("int16", math.nan, "1 NaN of 2 values"),
    ],
)
def test_what_does_not_fit_is_beyond_any_error_that_is_allowed(
    policy: str | None, target: str, value: float, told: str
) -> None:
    np.savez("x.npz", x=np.array([1, value], np.float32), y=np.array([1, 2], np.float32))
    notes = run("x.npz", steps=f"cast({target})", max_error=0.5, on_overflow=policy, keep=("y=float16",))
    assert dtypes() == {"x": "float32", "y": "float16"}
    (note,) = notes
    assert f"stays float32: {told} overflow {target}" in note


def test_an_infinity_that_the_target_has_is_no_error() -> None:
    np.savez("x.npz", x=np.array([1, math.inf, math.nan], np.float32))
    run("x.npz", steps="cast(float8_e5m2) | cast(float16)", max_error=0)
    assert dtypes() == {"x": "float16"}


@pytest.mark.parametrize(
    ("first", "last", "values", "dtype"),
    [
        ("on_overflow=error", "max_error=0", [0.1, 0.30000001], "float16"),
        ("on_overflow=error", "on_overflow=error, max_error=0", [0.1, 0.30000001], "float16"),
        ("on_overflow=error", "on_overflow=keep, max_error=0", [0.1, 0.30000001], "float16"),
        ("on_overflow=saturate", "on_overflow=saturate, max_error=0", [0.1, 7e4], "float16"),
        ("on_overflow=saturate", "on_overflow=keep", [0.1, 7e4], "float16"),
        ("max_error=0", "max_error=0", [0.1, 0.30000001], "float32"),
        ("on_overflow=keep", "on_overflow=keep", [0.1, 7e4], "float32"),
    ],
)
def test_a_cast_is_judged_by_what_it_loses_itself(first: str, last: str, values: list[float], dtype: str) -> None:
    """What one of the same text lost before is no fault of the last one, which may be exact."""
    np.savez("x.npz", x=np.array(values, np.float32))
    notes = run("x.npz", steps=f"cast(float16, {first}) | cast(float32) | cast(float16, {last})")
    assert dtypes() == {"x": dtype}
    assert any("stays" in note for note in notes) == (dtype == "float32")


def test_a_cast_that_does_nothing_is_not_blamed_for_the_one_before() -> None:
    np.savez("x.npz", x=np.array([0.1], np.float32))
    assert run("x.npz", steps="cast(float16, on_overflow=error) | cast(float16, on_overflow=error, max_error=0)") == []
    assert dtypes() == {"x": "float16"}


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ({"on_overflow": "keep"}, "choose another --on-overflow, or write each by itself without --stack"),
        ({"max_error": 0.5}, "allow a larger --max-error, or write each by itself without --stack"),
    ],
)
def test_the_remedy_for_a_stack_is_about_the_option_that_was_given(how: dict[str, Any], remedy: str) -> None:
    for n in range(2):
        np.save(f"{n}.npy", np.array([1.0, 1e6 * n]))
    with pytest.raises(TconvError) as caught:
        run("0.npy", "1.npy", steps="stack | cast(float16)", output="x.npy", **how)
    assert caught.value.remedy == remedy


def test_the_report_says_of_each_tensor_why_it_stayed() -> None:
    named = {"fine": 0.5, "large": 1e6, "mine": 1.0, "norm.weight": 1.0, "single": 2.0}
    save_file({name: np.array([value], np.float32) for name, value in named.items()}, "x.safetensors")
    run(
        "x.safetensors",
        steps="cast(float16)",
        on_overflow="keep",
        keep=("mine", "single=float32"),
        policy="amp",
        report=Path("r.json"),
    )
    (output,) = json.loads(Path("r.json").read_text())["outputs"]
    assert {t["name"]: (t["kept"], len(t["casts"])) for t in output["tensors"]} == {
        "fine": (None, 1),
        "large": ("1 of 1 values overflow float16 (the largest is 1e+06; its range is ±65504)", 0),
        "mine": ("keep='mine'", 0),
        "norm.weight": ("policy=amp", 0),
        "single": ("keep='single=float32'", 0),
    }
    step = "cast(float16, on_overflow=keep, keep=['mine', 'single=float32'], policy=amp)"
    assert output["tensors"][0]["casts"][0]["step"] == step


def test_the_report_says_of_the_parts_of_a_stack_why_they_stayed() -> None:
    for n in range(2):
        np.save(f"{n}.npy", np.array([1e6 * (n + 1)], np.float32))
    run("0.npy", "1.npy", steps="cast(float16) | stack", on_overflow="keep", report=Path("r.json"), output="x.npy")
    ((tensor,),) = (o["tensors"] for o in json.loads(Path("r.json").read_text())["outputs"])
    assert [part["kept"][:40] for part in tensor["parts"]] == ["1 of 1 values overflow float16 (the larg"] * 2
    run(
        "0.npy",
        "1.npy",
        steps="cast(float16) | stack | cast(float64)",
        on_overflow="keep",
        report=Path("r.json"),
        output="x.npy",
    )
    ((tensor,),) = (o["tensors"] for o in json.loads(Path("r.json").read_text())["outputs"])
    assert (tensor["kept"], tensor["after"]["dtype"]) == (None, "float64")


@pytest.mark.parametrize("option", [{"keep": ("b=float8_e4m3fn",)}, {"keep": ("b=int8",)}])
def test_an_exception_that_has_no_infinity_is_refused_before_any_file_is_looked_for(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"has no inf to overflow to; choose saturate or error"):
        run("nowhere.npz", steps="cast(float16)", on_overflow="inf", **option)
