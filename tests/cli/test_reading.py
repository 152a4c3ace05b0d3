"""What inspect, check and diff share: exit codes for trouble, JSON, numbers as text, help with examples."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from tconv.cli.app import run
from tconv.cli.reading import number, say_json, short, trouble
from tconv.errors import TconvError, TconvErrors, UsageError, raise_all
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (TconvError("torn", file="x.npy"), "x.npy: torn"),
        (TconvErrors([TconvError("torn", file="x.npy"), TconvError("gone", file="y")]), "x.npy: torn\ny: gone"),
        (UsageError("wrong"), "wrong"),
        (MemoryError(), "out of memory"),
        (PermissionError(13, "Permission denied", "x.npy"), "x.npy: Permission denied"),
        (
            ZeroDivisionError("a bug"),
            "internal error, please report it: ZeroDivisionError: a bug (--debug shows where)",
        ),
    ],
)
def test_trouble_of_any_kind_has_the_exit_code_2(raised: Exception, text: str) -> None:
    with pytest.raises(TconvError) as caught, trouble():
        raise raised
    assert (caught.value.exit_code, str(caught.value)) == (2, text)


def test_a_reader_that_goes_away_is_no_trouble() -> None:
    with pytest.raises(BrokenPipeError), trouble():
        raise BrokenPipeError


def test_nothing_is_trouble_without_a_problem() -> None:
    with trouble():
        raise_all([])


def test_lists_of_numbers_stay_on_one_line_and_nothing_else_changes(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": [1, 2.5, None], "b": ["[\n 1 ]", "x"], "c": [[1, 2], []], "d": [{"e": [3]}]}
    say_json(value)
    text = capsys.readouterr().out
    assert json.loads(text) == value
    assert "[1, 2.5, null]" in text
    assert '"e": [3]' in text


@pytest.mark.parametrize(("value", "want"), [(1, 1), (0.5, 0.5), (None, None), (np.inf, "inf"), (-np.inf, "-inf")])
def test_numbers_that_json_lacks_are_text(value: float | None, want: float | str | None) -> None:
    assert number(value) == want
    assert number(float("nan")) == "nan"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (2**63 - 1, "9223372036854775807"),
        (-0.0, "0"),
        (65504.0, "65504"),
        (1 / 3, "0.333333"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers_for_people(value: float | None, text: str) -> None:
    assert short(value) == text


@pytest.mark.parametrize("verb", ["inspect", "check", "diff"])
def test_the_help_has_examples_the_json_and_the_exit_codes(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.count(f"\n  tconv {verb} ") >= 3
    for word in ("--json prints one object", "Exit 0: ", "2: ", "--only GLOB"):
        assert word in text
