"""What is told from bits, against what the bits mean."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tconv.casts.bits import layout
from tconv.dtypes import DTYPES
from tests.exact import FORMATS, decode

NARROW = [name for name in FORMATS if 8 <= DTYPES[name].bits <= 16]


@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("float16", 0x7BFF),
        ("bfloat16", 0x7F7F),
        ("float32", 0x7F7FFFFF),
        ("float64", 0x7FEFFFFFFFFFFFFF),
        ("float8_e4m3fn", 0x7E),
        ("float8_e5m2", 0x7B),
        ("float8_e4m3fnuz", 0x7F),
        ("float8_e5m2fnuz", 0x7F),
    ],
)
def test_the_largest_finite_value(name: str, top: int) -> None:
    assert layout(DTYPES[name]).top == top


@pytest.mark.parametrize("name", NARROW)
def test_every_value_is_classified_as_its_bits_mean(name: str) -> None:
    dtype, form, how = DTYPES[name], FORMATS[name], layout(DTYPES[name])
    bits = np.arange(1 << dtype.bits, dtype=how.unsigned)
    meant = [decode(int(b), form) for b in bits]
    a = bits.view(dtype.numpy)
    infinite = [math.isinf(v) or math.isnan(v) for v in meant]
    assert how.nonfinite(a).tolist() == infinite
    assert how.nonzeros(a) == sum(v != 0 for v in meant)
    for n in range(0, bits.size, 7 if dtype.bits == 16 else 1):
        one = a[n : n + 1]
        assert how.has_nonfinite(one) == infinite[n]
        assert how.has_zero(one) == (meant[n] == 0)
        assert how.nonzeros(one) == (meant[n] != 0)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_wide_floats(name: str) -> None:
    dtype, how = DTYPES[name], layout(DTYPES[name])
    a = np.array([0, -0.0, dtype.tiny, -dtype.tiny, dtype.max, -dtype.max, math.inf, -math.inf, math.nan], dtype.numpy)
    assert how.nonfinite(a).tolist() == [False] * 6 + [True] * 3
    assert how.nonzeros(a) == 7
    assert [how.has_nonfinite(v) for v in a.reshape(-1, 1)] == [False] * 6 + [True] * 3
    assert [how.has_zero(v) for v in a.reshape(-1, 1)] == [True] * 2 + [False] * 7


@pytest.mark.parametrize("name", NARROW)
def test_extremes_and_subnormals_are_those_of_what_the_bits_mean(name: str) -> None:
    dtype, form, how = DTYPES[name], FORMATS[name], layout(DTYPES[name])
    bits = np.arange(1 << dtype.bits, dtype=how.unsigned)
    finite = bits[~how.nonfinite(bits.view(dtype.numpy))]
    rng = np.random.default_rng(4)
    halves = (finite[finite < how.sign], finite[finite >= how.sign], finite)
    for some in [rng.choice(half, 7) for half in halves for _ in range(50)]:
        meant = [decode(int(b), form) for b in some]
        low, high = how.extremes(some.view(dtype.numpy))
        assert (decode(low, form), decode(high, form)) == (min(meant), max(meant))
    meant = [decode(int(b), form) for b in bits]
    smallest = Fraction(2) ** (1 - form.bias)
    assert how.subnormals(bits.view(dtype.numpy)) == sum(0 < abs(float(v)) < smallest for v in meant)


@pytest.mark.parametrize("name", FORMATS)
def test_clamping(name: str) -> None:
    dtype = DTYPES[name]
    a = np.ones(4, dtype.numpy)
    layout(dtype).clamp(a, np.array([True, True, False, False]), np.array([True, False, True, False]))
    assert a.astype(np.float64).tolist() == [-dtype.max, dtype.max, 1, 1]


def test_float4_is_counted_by_its_lower_half() -> None:
    every = np.arange(16, dtype=np.uint8).view(DTYPES["float4_e2m1fn"].numpy)  # ±0, 0.5, 1, 1.5, 2, 3, 4, 6
    how = layout(DTYPES["float4_e2m1fn"])
    assert (how.nonzeros(every), how.subnormals(every)) == (14, 2)
