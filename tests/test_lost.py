"""The account of a cast: that it adds up, what it refuses, what it says."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.casts import cast
from tconv.dtypes import dtype
from tconv.lost import Detail, Lost

LARGEST = "1.7976931348623157e+308"
VALUES = st.floats(width=32) | st.sampled_from([70000.0, -1e30, 1e-10, 300.0, float("nan"), float("-inf")])


@given(
    st.lists(VALUES, max_size=20), st.lists(VALUES, max_size=20), st.sampled_from(["half", "e4m3", "uint8", "int64"])
)
def test_accounts_of_parts_add_up_to_that_of_the_whole(a: list[float], b: list[float], target: str) -> None:
    def account(numbers: list[float]) -> Lost:
        return cast(np.array(numbers, np.float32), dtype(target), src=dtype("float32"), detail=True)[1]

    whole, parts, other = account([*a, *b]), account(a), account(b)
    parts.merge(account(b))
    other += account(a)
    for made in (parts, other):
        assert replace(made, detail=None) == replace(whole, detail=None)
        assert vars(made.detail) == pytest.approx(vars(whole.detail), rel=1e-12)


@pytest.mark.parametrize(
    ("lost", "error", "saturate", "inf"),
    [
        (Lost(9), False, False, False),
        (Lost(9, underflow=3, inexact=2), False, False, False),
        (Lost(9, overflow=1, lowest=300, highest=300), True, False, False),
        (Lost(9, infinite=1), True, False, False),
        (Lost(9, nan=1), True, True, True),
    ],
)
def test_what_each_policy_refuses(lost: Lost, error: bool, saturate: bool, inf: bool) -> None:
    assert (lost.bad("error"), lost.bad("saturate"), lost.bad("inf")) == (error, saturate, inf)


def test_it_is_true_when_there_is_something_to_say() -> None:
    assert not Lost(5)
    for loss in (Lost(5, overflow=1), Lost(5, infinite=1), Lost(5, nan=1), Lost(5, underflow=1), Lost(5, inexact=1)):
        assert loss


def test_the_largest_is_the_one_farthest_from_zero() -> None:
    assert Lost(2, overflow=2, lowest=-7e4, highest=6.6e4).largest == -7e4
    assert Lost(1, overflow=1, lowest=-(2**63), highest=2**63 - 1).largest == -(2**63)
    assert Lost(1, infinite=1).largest is None


@pytest.mark.parametrize(
    ("lost", "src", "dst", "text"),
    [
        (
            Lost(15, overflow=3, underflow=2, lowest=-3.4028234663852886e38, highest=65520.0),
            "float32",
            "float16",
            "3 of 15 values overflow float16 (from -3.4028235e+38 to 65520; its range is ±65504); 2 became 0",
        ),
        (
            Lost(17, overflow=4, infinite=2, lowest=464.0000915527344, highest=1000.0),
            "float32",
            "float8_e4m3fn",
            "4 finite + 2 inf of 17 values overflow float8_e4m3fn (the largest is 1000; its range is ±448)",
        ),
        (
            Lost(10, overflow=1, lowest=464.0000915527344, highest=464.0000915527344),
            "float32",
            "float8_e4m3fn",
            "1 of 10 values overflow float8_e4m3fn (the largest is 464.0001; its range is ±448)",
        ),
        (
            Lost(10, overflow=3, lowest=-1, highest=119546),
            "int64",
            "uint16",
            "3 of 10 values overflow uint16 (from -1 to 119546; its range is 0 to 65535)",
        ),
        (
            Lost(4, overflow=1, lowest=-(2**63), highest=-(2**63)),
            "int64",
            "int8",
            "1 of 4 values overflow int8 (the lowest is -9223372036854775808; its range is -128 to 127)",
        ),
        (
            Lost(3, overflow=1, lowest=3.3895313892515355e38, highest=3.3895313892515355e38),
            "bfloat16",
            "float16",
            "1 of 3 values overflow float16 (the largest is 3.38953e+38; its range is ±65504)",
        ),
        (
            Lost(2, nan=1),
            "float32",
            "int32",
            "1 NaN of 2 values overflow int32 (its range is -2147483648 to 2147483647)",
        ),
        (
            Lost(8, infinite=2),
            "float64",
            "float8_e4m3fn",
            "2 inf of 8 values overflow float8_e4m3fn (its range is ±448)",
        ),
        (
            Lost(2, overflow=1, lowest=float("inf"), highest=float("inf")),
            "float64",
            "float64",
            f"1 of 2 values overflow float64 (the largest is beyond {LARGEST}; its range is ±{LARGEST})",
        ),
        (
            Lost(9, overflow=2, lowest=float("-inf"), highest=70000.0),
            "float64",
            "float16",
            "2 of 9 values overflow float16 (from beyond -1.7976931348623157e+308 to 70000; its range is ±65504)",
        ),
        (Lost(9, underflow=2), "float32", "float16", "2 of 9 values became 0"),
        (Lost(9, inexact=1), "int64", "float32", "1 of 9 values is not exact in float32"),
        (Lost(9, inexact=4), "int64", "float16", "4 of 9 values are not exact in float16"),
        (
            Lost(6, overflow=1, lowest=1e300, highest=1e300),
            "complex128",
            "complex64",
            "1 of 6 parts overflow complex64 (the largest is 1e+300; its range is ±3.4028235e+38)",
        ),
    ],
)
def test_what_is_said(lost: Lost, src: str, dst: str, text: str) -> None:
    assert lost.describe(dtype(src), dtype(dst)) == text


def test_the_ratio_of_signal_and_noise() -> None:
    one = Fraction(1)
    assert Detail(signal=100 * one, noise=one).sqnr == 20
    assert Detail(signal=one / 10**700, noise=one / 10**704).sqnr == pytest.approx(40)
    assert Detail(signal=one * 10**700, noise=one * 10**704).sqnr == pytest.approx(-40)
    assert Detail(signal=5 * one).sqnr == math.inf
    assert Detail().sqnr == math.inf
    assert Detail(noise=2 * one).sqnr == -math.inf


def test_float32_weights_as_float16_have_some_73_decibels() -> None:
    """Rounding to 11 digits leaves 6.02 dB a digit, and a little more for values that fill their binade evenly."""
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    lost = cast(x, dtype("half"), src=dtype("float32"), detail=True)[1]
    assert lost.detail is not None
    wide, made = x.astype(np.float64), x.astype(np.float16).astype(np.float64)
    assert lost.detail.sqnr == pytest.approx(10 * math.log10((wide**2).sum() / ((wide - made) ** 2).sum()))
    assert round(lost.detail.sqnr or 0) in range(72, 77)


@pytest.mark.parametrize(
    ("lost", "stated", "src", "text"),
    [
        (
            Lost(300, overflow=12, minimum=-3, maximum=254),
            (0, 1),
            "uint8",
            "12 of 300 values lie outside the stated range [0, 1]; from -3 to 254",
        ),
        (
            Lost(9, overflow=1, nan=2, infinite=3, minimum=-0.10000000149011612, maximum=0.5),
            (0, 1.5),
            "float32",
            "6 of 9 values lie outside the stated range [0, 1.5] (1 finite + 3 inf + 2 NaN); from -0.1 to 0.5",
        ),
        (Lost(2, nan=2), (0, 1), "float16", "2 of 2 values lie outside the stated range [0, 1] (2 NaN)"),
        (
            Lost(2, overflow=1, minimum=1, maximum=2**63 - 1),
            (0, 1),
            "int64",
            "1 of 2 values lie outside the stated range [0, 1]; from 1 to 9223372036854775807",
        ),
    ],
)
def test_what_is_said_of_a_broken_statement(lost: Lost, stated: tuple[float, float], src: str, text: str) -> None:
    assert lost.outside(stated, dtype(src)) == text
    assert lost.outside(stated, dtype(src), "the range") == text.replace("stated ", "")


def test_remedies_are_those_that_help() -> None:
    over = Lost(3, overflow=1, lowest=7e4, highest=7e4)
    assert "--on-overflow saturate" in over.remedy(dtype("half"))
    assert "inf makes them infinite" in over.remedy(dtype("half"))
    assert "--on-overflow inf" not in over.remedy(dtype("e4m3"))
    assert "--on-overflow" not in Lost(3, nan=1).remedy(dtype("uint8"))
    both = Lost(3, nan=1, infinite=1).remedy(dtype("uint8"))
    assert "saturate" in both
    assert "NaN" in both
