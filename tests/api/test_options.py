"""Arguments of the wrong kind are refused in plain words; None says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tconv.api.options import request


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"force": "no"}, "force takes True or False, not 'no'"),
        ({"exif": 1}, "exif takes True or False, not 1"),
        ({"workers": True}, "workers takes a whole number from 1 on, not True"),
        ({"workers": 257}, "workers takes a whole number from 1 to 256, not 257"),
        ({"quality": 101}, "quality takes a whole number from 1 to 100, not 101"),
        ({"batch_size": 2.0}, "batch_size takes a whole number from 1 on, not 2.0"),
        ({"only": 3}, "only takes a text or several texts, not 3"),
        ({"keep": ["a", 1]}, r"keep takes a text or several texts, not \['a', 1\]"),
        ({"strip_prefix": b"a"}, "strip_prefix takes a text or several texts, not b'a'"),
        ({"select": 3}, "select takes a text, not 3"),
        ({"report": 3}, "report takes a text or a path, not 3"),
        ({"labels": 3}, "labels takes a text or a path, not 3"),
        ({"max_error": "0.1"}, "max_error takes a number, not '0.1'"),
        ({"min_sqnr": True}, "min_sqnr takes a number, not True"),
        ({"on_overflow": "saturated"}, "on_overflow takes error, .* not 'saturated'; did you mean saturate"),
        ({"channels": "own"}, "channels takes rgb, bgr, gray, rgba or keep, not 'own'"),
        ({"range": (0, 10**400)}, "range is a tuple; give"),
        ({"range": "0,1"}, "range is '0,1'; give"),
        ({"input_layout": 3}, "input_layout takes a text, not 3"),
        ({"input_layout": "HH"}, "input_layout 'HH' is no list of axes"),
        ({"fields": 0}, "fields takes a text, not 0"),
    ],
)
def test_what_an_option_does_not_take(options: dict[str, Any], says: str) -> None:
    with pytest.raises(tconv.UsageError, match=says):
        tconv.convert("no such file", "x.npy", "cast(half)", **options)


@pytest.mark.parametrize(
    ("target", "says"),
    [(3, "dst is 3"), (b"x.npy", "dst is b'x.npy'"), ("", "dst is an empty text")],
)
def test_what_is_no_output(target: Any, says: str) -> None:
    with pytest.raises(tconv.UsageError, match=says):
        tconv.plan("no such file", target)


def test_none_says_nothing_and_numbers_of_numpy_are_numbers() -> None:
    said = request("x.npy", None, None, {"only": None, "channels": None, "force": None, "max_memory": None})
    assert said == request("x.npy", None, None, {})
    counted = request("x.npy", Path("y.npy"), None, {"batch_size": np.int64(3), "max_error": np.float32(0.5)})
    assert (counted.batch_size, counted.max_error, counted.output) == (3, 0.5, "y.npy")
    several = request("x.npy", None, None, {"only": "a", "skip": {"b"}, "keep": iter(["c", "d"]), "strip_prefix": ()})
    assert (several.only, several.skip, several.keep, several.strip_prefix) == (("a",), ("b",), ("c", "d"), ())
