"""The account of a cast: that it adds up, what it refuses, what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.casts import cast
from tconv.dtypes import dtype
from tconv.lost import Lost

VALUES = st.floats(width=32) | st.sampled_from([70000.0, -1e30, 1e-10, 300.0, float("nan"), float("-inf")])


@given(
    st.lists(VALUES, max_size=20), st.lists(VALUES, max_size=20), st.sampled_from(["half", "e4m3", "uint8", "int64"])
)
def test_accounts_of_parts_add_up_to_that_of_the_whole(a: list[float], b: list[float], target: str) -> None:
    def account(numbers: list[float]) -> Lost:
        return cast(np.array(numbers, np.float32), dtype(target), src=dtype("float32"))[1]

    whole, parts = account([*a, *b]), account(a)
    parts.merge(account(b))
    assert parts == whole
    other = account(b)
    other += account(a)
    assert other == whole


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


def test_remedies_are_those_that_help() -> None:
    over = Lost(3, overflow=1, lowest=7e4, highest=7e4)
    assert "--on-overflow saturate" in over.remedy(dtype("half"))
    assert "--on-overflow inf" in over.remedy(dtype("half"))
    assert "--on-overflow inf" not in over.remedy(dtype("e4m3"))
    assert "--on-overflow" not in Lost(3, nan=1).remedy(dtype("uint8"))
    both = Lost(3, nan=1, infinite=1).remedy(dtype("uint8"))
    assert "saturate" in both
    assert "NaN" in both
