"""What breaks a rule and what does not, at the edges: each rule by itself, in pieces and in one."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tconv.casts import cast
from tconv.casts.extent import outside
from tconv.dtypes import dtype
from tconv.measure.rules import Expect, Finite, Fits, Rule, Seen, Shape, Within
from tconv.tensor import Spec

if TYPE_CHECKING:
    from tconv.ops import Array


def spec(name: str, *shape: int) -> Spec:
    return Spec("x", dtype(name), shape)


def look(rule: Rule, x: Array, name: str, cuts: tuple[int, ...] = ()) -> Seen:
    bounds = [0, *sorted(cuts), x.size]
    seen = Seen()
    for lo, hi in reversed(list(itertools.pairwise(bounds))):
        if lo < hi:
            seen.merge(rule.look(lo, x[lo:hi], dtype(name)))
    return seen


def judge(rule: Rule, x: Any, name: str, shape: tuple[int, ...] | None = None) -> str:
    array = np.array(x, dtype(name).numpy).reshape(-1)
    of = spec(name, *(shape or array.shape))
    return rule.judge(look(rule, array, name), of)


def test_expect() -> None:
    rule = Expect((dtype("float32"), dtype("int64")))
    assert rule.wanted == "float32 or int64"
    assert not rule.against(spec("float32"))
    assert rule.against(spec("float64")) == "is float64, expected float32 or int64"
    assert not rule.reads(spec("float64"))


@pytest.mark.parametrize(
    ("sizes", "shape", "holds"),
    [
        ((None, 3), (7, 3), True),
        ((None, 3), (0, 3), True),
        ((None, 3), (3,), False),
        ((None, 3), (7, 4), False),
        ((), (), True),
        ((), (1,), False),
    ],
)
def test_shape(sizes: tuple[int | None, ...], shape: tuple[int, ...], holds: bool) -> None:
    assert bool(Shape(sizes).against(spec("int8", *shape))) is not holds


def test_the_shape_is_told() -> None:
    assert Shape((None, 3)).against(spec("int8", 2, 4)) == "has the shape 2x4, expected *x3"
    assert Shape(()).against(spec("int8", 2)) == "has the shape 2, expected ()"


def test_finite() -> None:
    rule = Finite()
    assert judge(rule, [1, 2], "float32") == ""
    text = judge(rule, [[1, -math.inf], [math.nan, math.inf]], "float32", (2, 2))
    assert text == "1 NaN and 2 inf of 4 values, the first, -inf, at [0, 1]"
    assert judge(rule, [1, math.nan], "bfloat16") == "1 NaN of 2 values, the first, NaN, at [1]"
    assert judge(rule, [1, complex(0, math.inf)], "complex64") == "1 inf of 2 values, the first, inf, at [1]"
    assert judge(rule, math.nan, "float8_e4m3fn", ()) == "1 NaN of 1 values, the first, NaN, at [0]"
    assert [rule.reads(spec(n)) for n in ("bool", "int64", "float8_e5m2", "complex64")] == [False, False, True, True]


def test_within() -> None:
    rule = Within(0, 1)
    assert judge(rule, [0, 1, 0.5], "float32") == ""
    text = judge(rule, [0, 1.5, -3, 2], "float64", (2, 2))
    assert text == "3 of 4 values lie outside [0, 1], the worst, -3, at [1, 0]"
    text = judge(rule, [9, math.nan, math.inf], "float16")
    assert text == "3 of 3 values lie outside [0, 1] (1 NaN), the worst, NaN, at [1]"
    assert Within(-1.5, 1234567.0).wanted == "[-1.5, 1234567]"
    assert judge(Within(0, 0.1), [0.1], "float32") == ""  # the bound as the dtype has it
    assert judge(Within(-1, 2**63), [2**63, 2**64 - 1], "uint64").endswith("18446744073709551615, at [1]")
    assert rule.against(spec("complex64"))
    assert not rule.reads(spec("bool"))
    assert not Within(0, 255).reads(spec("uint8"))
    assert rule.reads(spec("uint8"))


@pytest.mark.parametrize("source", ["float8_e5m2", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("most", [1e39, 1e308, 10**39, 65504.0, 3.4028234663852886e38])
def test_bounds_that_a_dtype_does_not_have_let_no_infinity_pass(source: str, most: float) -> None:
    for value in (math.inf, -math.inf, math.nan):
        assert "1 of 2 values lie outside" in judge(Within(-most, most), [1, value], source)
    assert judge(Within(-most, most), [1, 57344, -57344], source) == ""


@pytest.mark.parametrize(
    ("high", "values", "source", "worst"),
    [
        (9007199254740992.0, [2**53 + 1, 2**53], "int64", "9007199254740993, at [0]"),
        (9007199254740992.0, [5, 2**53 + 1], "uint64", "9007199254740993, at [1]"),
        (2.0**63, [2**63, 2**63 + 1], "uint64", "9223372036854775809, at [1]"),
        (-0.5, [0, -(2**63)], "int64", "-9223372036854775808, at [1]"),
    ],
)
def test_integers_are_compared_exactly(high: float, values: list[int], source: str, worst: str) -> None:
    text = judge(Within(-1.5, high), values, source)
    assert re.fullmatch(r"[12] of 2 values lie outside \[.*\], the worst, " + re.escape(worst), text)


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_a_bound_is_the_value_that_its_text_would_be(source: str) -> None:
    assert judge(Within(0.1, 0.7), [0.1, 0.7], source) == ""
    assert judge(Within(0.1, 0.7), [0, 0.6], source).startswith("1 of 2 values")


@given(arrays.arrays(np.float16, 8), st.floats(), st.floats())
def test_a_range_counts_what_a_conversion_counts(x: Array, a: float, b: float) -> None:
    low, high = sorted(0.0 if math.isnan(v) or math.isinf(v) else v for v in (a, b))
    lost = outside(x, dtype("float16"), (low, high))
    seen = look(Within(low, high), x, "float16")
    assert (seen.bad, seen.nan) == (lost.overflow + lost.infinite + lost.nan, lost.nan)


@pytest.mark.parametrize(
    ("x", "source", "target", "text"),
    [
        ([65519.0, -65519.0, math.inf, math.nan], "float64", "float16", ""),
        (
            [1, 65520, -7e4],
            "float32",
            "float16",
            "2 of 3 values overflow float16 (from -70000 to 65520; its range is ±65504), the worst, -70000, at [2]",
        ),
        (
            [1, math.inf, 1000],
            "float32",
            "float8_e4m3fn",
            (
                "1 finite + 1 inf of 3 values overflow float8_e4m3fn (the largest is 1000; its range is ±448), "
                "the worst, inf, at [1]"
            ),
        ),
        ([math.nan], "float32", "float8_e4m3fn", ""),
        ([127.9, -128.9], "float32", "int8", ""),
        (
            [127.9, -129.0],
            "float32",
            "int8",
            "1 of 2 values overflow int8 (the lowest is -129; its range is -128 to 127), the worst, -129, at [1]",
        ),
        (
            [5.0, math.nan, 1e9],
            "float64",
            "int8",
            (
                "1 finite + 1 NaN of 3 values overflow int8 (the largest is 1000000000; its range is -128 to 127), "
                "the worst, NaN, at [1]"
            ),
        ),
        (
            [300, -1],
            "int64",
            "uint8",
            "2 of 2 values overflow uint8 (from -1 to 300; its range is 0 to 255), the worst, 300, at [0]",
        ),
        ([complex(1, 1e300)], "complex128", "complex128", ""),
        (
            [1, complex(1, 1e300)],
            "complex128",
            "complex64",
            (
                "1 of 4 parts overflow complex64 (the largest is 1e+300; its range is ±3.4028235e+38), "
                "the worst, 1e+300, at [1]"
            ),
        ),
        ([2, 0, -1], "int16", "bool", ""),
    ],
)
def test_fits(x: list[Any], source: str, target: str, text: str) -> None:
    assert judge(Fits(dtype(target)), x, source) == text


def test_what_fits_says_of_zeros_and_inexact_integers() -> None:
    rule = Fits(dtype("float16"))
    seen = look(rule, np.array([1e-9, 0, 1, 1e-20], np.float32), "float32")
    assert rule.judge(seen, spec("float32", 4)) == ""
    assert rule.warn(seen, spec("float32", 4)) == "2 of 4 values would become 0 in float16"
    seen = look(rule, np.array([2049, 2048]), "int64")
    assert rule.warn(seen, spec("int64", 2)) == "1 of 2 values is not exact in float16"
    assert rule.warn(look(rule, np.array([1.0]), "float64"), spec("float64", 1)) == ""


def test_what_no_cast_can_be_is_told_without_reading() -> None:
    assert "imaginary" in Fits(dtype("float16")).against(spec("complex64"))
    assert not Fits(dtype("float16")).reads(spec("float16"))


@given(
    st.sampled_from([("float32", "float16"), ("float64", "float8_e4m3fn"), ("float32", "int8"), ("int64", "uint16")]),
    st.data(),
    st.lists(st.integers(0, 20), max_size=3),
)
def test_pieces_add_up_and_agree_with_the_cast(pair: tuple[str, str], data: st.DataObject, cuts: list[int]) -> None:
    source, target = pair
    x = data.draw(arrays.arrays(source, 20))
    rule = Fits(dtype(target))
    whole, parts = look(rule, x, source), look(rule, x, source, tuple(cuts))
    for seen in (whole, parts):
        assert (seen.count, seen.bad) == (20, whole.bad)
        assert (seen.at, repr(seen.worst)) == (whole.at, repr(whole.worst))
    _, lost = cast(x, dtype(target), src=dtype(source))
    assert whole.bad == lost.overflow + lost.infinite + lost.nan
    assert bool(rule.judge(whole, spec(source, 20))) == lost.bad("error")
    if whole.bad:
        _, alone = cast(x[whole.at : whole.at + 1], dtype(target), src=dtype(source))
        assert alone.bad("error")
        if lost.largest is not None and not lost.infinite and not lost.nan:
            assert whole.worst in (lost.lowest, lost.highest)


@given(arrays.arrays(np.float32, 20), st.lists(st.integers(0, 20), max_size=3))
def test_pieces_of_other_rules_add_up(x: Array, cuts: list[int]) -> None:
    for rule in (Finite(), Within(-1, 1)):
        whole, parts = look(rule, x, "float32"), look(rule, x, "float32", tuple(cuts))
        assert rule.judge(parts, spec("float32", 20)) == rule.judge(whole, spec("float32", 20))
        bad = ~np.isfinite(x) if isinstance(rule, Finite) else ~((x >= -1) & (x <= 1))
        assert whole.bad == int(bad.sum())
        assert not whole.bad or bad[whole.at]


@pytest.mark.parametrize(("values", "fits"), [([-8, 7], True), ([-9, 0], False), ([8], False)])
def test_what_fits_4_bits(values: list[int], fits: bool) -> None:
    assert bool(judge(Fits(dtype("int4")), values, "int64")) is not fits


@pytest.mark.parametrize("source", ["int4", "uint4", "float4_e2m1fn"])
def test_rules_read_4_bits(source: str) -> None:
    assert not judge(Fits(dtype("float16")), [1, 2, 6], source)
    assert not judge(Within(1, 6), [1, 2, 6], source)
    assert judge(Within(1, 5), [1, 2, 6], source)
    assert not judge(Finite(), [1, 2, 6], source)
