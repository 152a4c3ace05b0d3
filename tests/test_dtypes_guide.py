"""The guide to dtypes tells the truth: its numbers are those of the dtypes, its Python runs as it stands."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import ml_dtypes
import pytest

GUIDE = (Path(__file__).resolve().parents[1] / "DTYPES.md").read_text(encoding="utf8")
ROWS = re.findall(r"^\| (\w+) \| ([\d.e]+) \| ([\d.e-]+) \| (\d+) bits", GUIDE, re.MULTILINE)


def test_the_numbers_are_those_of_the_dtypes() -> None:
    assert [row[0] for row in ROWS] == ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float64"]
    for name, largest, smallest, bits in ROWS:
        info = ml_dtypes.finfo(name)  # type: ignore[no-untyped-call]  # it comes without types
        assert float(largest) == pytest.approx(float(info.max), rel=0.01)
        assert float(smallest) == pytest.approx(float(info.smallest_normal), rel=0.03)
        assert int(bits) == info.nmant + 1


def test_its_python_prints_what_it_shows() -> None:
    pytest.importorskip("torch", reason="the guide trains a model of PyTorch")
    (block,) = re.findall(r"```pycon\n(.*?)```", GUIDE, re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "DTYPES.md", None, None)
    told: list[str] = []
    assert doctest.DocTestRunner().run(test, out=told.append).failed == 0, "".join(told)
