"""CASTS.md is true of every pair of dtypes."""

from __future__ import annotations

import pytest

from tconv.dtypes import DTYPES
from tests.casts_table import PATH, render, rule


def test_the_page_says_what_casts_do() -> None:
    assert PATH.read_text(encoding="utf8") == render(), "python -m tests.casts_table writes it anew"


@pytest.mark.parametrize(
    ("src", "dst", "what"),
    [
        ("float32", "float16", "rounds and overflows"),
        ("float16", "float32", "exact"),
        ("float16", "bfloat16", "rounds"),
        ("float8_e4m3fn", "float8_e4m3fnuz", "overflows"),
        ("float64", "int64", "truncates and overflows"),
        ("int64", "float64", "rounds"),
        ("int32", "float64", "exact"),
        ("uint16", "float16", "rounds and overflows"),
        ("uint8", "int8", "overflows"),
        ("uint8", "int16", "exact"),
        ("bool", "uint8", "exact"),
        ("float32", "bool", "asks"),
        ("complex128", "complex64", "rounds and overflows"),
        ("int32", "complex64", "rounds"),
        ("complex64", "float64", None),
        ("complex64", "bool", None),
        ("float32", "int4", "truncates and overflows"),
        ("float4_e2m1fn", "int4", "truncates"),
        ("int8", "float4_e2m1fn", "rounds and overflows"),
    ],
)
def test_rules_that_are_known(src: str, dst: str, what: str | None) -> None:
    assert rule(DTYPES[src], DTYPES[dst]) == what
