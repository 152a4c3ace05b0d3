"""Every cast against exact arithmetic, value by value, with the account of what it lost."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tconv import casts
from tconv.casts import Lost, cast, exact
from tconv.dtypes import DTYPES, DType, dtype
from tconv.errors import TconvError, UsageError
from tconv.lost import part
from tests.exact import FORMATS, all_bits, bits_of, check, edges, values

if TYPE_CHECKING:
    from tconv.ops import Array

REAL = [d for d in DTYPES.values() if d.kind != "complex"]
FLOATS = [d for d in REAL if d.is_float]
INTEGERS = [d for d in REAL if d.is_integer]
NARROW = [d for d in FLOATS if d.bits <= 16]
BOOL = dtype("bool")
ALL = list(DTYPES.values())
PAIRS = [(s, d) for s in ALL for d in ALL if s.kind != "complex" or d.kind == "complex"]


def name(value: Any) -> str | None:
    return value.name if isinstance(value, DType) else None


def checked(x: Array, src: DType, dst: DType) -> None:
    """Cast under every policy that the target can follow, and compare all there is to compare."""
    for policy in casts.POLICIES:
        if policy != "inf" or dst.has_inf:
            made, lost = cast(x, dst, src=src, on_overflow=policy, detail=True)
            if src == dst:
                assert made is x
            check_parts(x, made, lost, src, dst, policy)
            assert cast(x, dst, src=src, on_overflow=policy)[1] == replace(lost, detail=None)


def check_parts(x: Array, made: Array, lost: Lost, src: DType, dst: DType, policy: str) -> None:
    """Of a complex number each part by itself; a real one becomes the real part, and the imaginary part is 0."""
    if dst.kind == "complex":
        made = made.view(part(dst).numpy)
        if src.kind == "complex":
            x, src = x.view(part(src).numpy), part(src)
        else:
            assert not made[1::2].view(f"u{part(dst).itemsize}").any()
            made = made[::2].copy()
        dst = part(dst)
    check(x, made, lost, src, dst, policy)


def around(centres: list[float], to: type) -> Array:
    """The numbers, both neighbours of each, and the negatives of all."""
    with np.errstate(over="ignore"):
        x: Array = np.array(centres, np.float64).astype(to)
    x = x[np.isfinite(x)]
    with np.errstate(over="ignore", under="ignore"):
        near = np.concatenate([np.nextafter(x, to(-math.inf)), x, np.nextafter(x, to(math.inf))])
    return np.concatenate([near, -near])


def landmarks(dst: DType) -> list[float]:
    """Where rounding to a float dtype changes: its values and the midpoints between them, to beyond its largest."""
    finite = sorted({float(v) for v in values(all_bits(dst), dst) if math.isfinite(v) and v >= 0})
    finite.append(2 * finite[-1] - finite[-2])
    return [*finite, *((a + b) / 2 for a, b in itertools.pairwise(finite))]


# ------------------------------------------------------------------------------------------ all values there are
@pytest.mark.parametrize("dst", REAL, ids=name)
@pytest.mark.parametrize("src", [d for d in REAL if d.bits <= 8 and d.kind != "bool"], ids=name)
def test_every_value_of_8_bits_or_4_to_every_dtype(src: DType, dst: DType) -> None:
    checked(all_bits(src), src, dst)


@pytest.mark.parametrize("dst", REAL, ids=name)
def test_bool_to_every_dtype(dst: DType) -> None:
    checked(np.array([False, True]), BOOL, dst)


def test_a_bool_of_another_byte_than_1_is_1() -> None:
    x = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    np.testing.assert_array_equal(cast(x, dtype("int32"), src=BOOL)[0], [0, 1, 1, 1])


SIXTEEN = [(s, d) for s in REAL if s.bits == 16 for d in REAL]


@pytest.mark.parametrize(("src", "dst"), SIXTEEN, ids=name)
def test_a_sample_of_16_bit_values_to_every_dtype(src: DType, dst: DType) -> None:
    checked(all_bits(src, 61), src, dst)


@pytest.mark.slow
@pytest.mark.parametrize(("src", "dst"), SIXTEEN, ids=name)
def test_every_16_bit_value_to_every_dtype(src: DType, dst: DType) -> None:
    x = all_bits(src)
    made, lost = cast(x, dst, src=src, detail=True)
    check(x, made, lost, src, dst)


# ---------------------------------------------------------------------------------------- where rounding changes
@pytest.mark.parametrize("dst", [d for d in FLOATS if d.bits <= 8], ids=name)
@pytest.mark.parametrize("src", ["float32", "float64"])
def test_8_and_4_bit_floats_around_every_value_and_midpoint(src: str, dst: DType) -> None:
    checked(around(landmarks(dst), dtype(src).numpy.type), dtype(src), dst)


@pytest.mark.parametrize("dst", [dtype("float16"), dtype("bfloat16")], ids=name)
@pytest.mark.parametrize("src", ["float32", "float64"])
def test_16_bit_floats_around_values_and_midpoints(src: str, dst: DType) -> None:
    marks = landmarks(dst)
    x = around([*marks[::29], *marks[:40], *sorted(marks)[-40:]], dtype(src).numpy.type)
    made, lost = cast(x, dst, src=dtype(src), detail=True)
    check(x, made, lost, dtype(src), dst)


@pytest.mark.parametrize("dst", REAL, ids=name)
@pytest.mark.parametrize("src", ["float32", "float64"])
def test_powers_of_two_and_their_neighbours(src: str, dst: DType) -> None:
    form = FORMATS[src]
    powers = [2.0**n for n in range(1 - form.bias - form.mantissa, form.bias + 1, 1 if src == "float32" else 5)]
    kind = dtype(src).numpy.type
    special = np.array([0, -0.0, math.inf, -math.inf, math.nan, dtype(src).max, dtype(src).tiny], kind)
    checked(np.concatenate([around(powers, kind), special]), dtype(src), dst)


@pytest.mark.parametrize("dst", REAL, ids=name)
@pytest.mark.parametrize("src", [d for d in INTEGERS if d.bits >= 32], ids=name)
def test_large_integers_around_powers_of_two(src: DType, dst: DType) -> None:
    near = [s * (2**n + k) for s in (1, -1) for n in range(src.bits + 1) for k in range(-3, 4)]
    halves = [
        s * (2**n + 2 ** (n - d) + k) for s in (1, -1) for n in range(9, 64) for d in range(2, 9) for k in (-1, 0, 1)
    ]
    inside = sorted({v for v in near + halves if src.min <= v <= src.max})
    checked(np.array(inside, src.numpy), src, dst)


@pytest.mark.parametrize(("src", "dst"), [(s, d) for s, d in PAIRS if s.bits >= 32], ids=name)
def test_edges_of_both_dtypes_and_their_neighbours(src: DType, dst: DType) -> None:
    """The bounds of both, what lies between the largest number and the first that overflows, tiny numbers and halves
    of them, powers of two at which integers stop being exact: each with the next smaller and the next larger number.
    """
    real, target = [part(d) if d.kind == "complex" else d for d in (src, dst)]
    checked(edges(real, target).view(src.numpy), src, dst)


@given(st.data(), st.sampled_from([(s, d) for s, d in PAIRS if s.bits >= 32]))
@settings(max_examples=1000)
def test_any_values_of_any_pair(data: st.DataObject, pair: tuple[DType, DType]) -> None:
    src, dst = pair
    count = data.draw(st.integers(1, 8)) * src.itemsize
    checked(np.frombuffer(data.draw(st.binary(min_size=count, max_size=count)), src.numpy), src, dst)


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=name)
def test_the_account_adds_up_over_blocks(src: DType, dst: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "BLOCK", 5)
    top = 2 if src.kind == "bool" else 1 << min(src.bits, 8)
    x = np.random.default_rng(11).integers(0, top, 48 * src.itemsize, dtype=np.uint8).view(src.numpy)
    checked(x, src, dst)


@given(st.data(), st.sampled_from([d for d in INTEGERS if d.bits >= 32]), st.sampled_from(ALL))
def test_any_integers(data: st.DataObject, src: DType, dst: DType) -> None:
    """Small and large ones alike, which random bits hardly ever are."""
    numbers = data.draw(st.lists(st.integers(int(src.min), int(src.max)), min_size=1, max_size=20))
    checked(np.array(numbers, src.numpy), src, dst)


@given(st.data(), st.sampled_from(NARROW))
def test_float64_a_hair_beside_a_midpoint_is_rounded_once(data: st.DataObject, dst: DType) -> None:
    """The fault of every route through an intermediate format that rounds to nearest."""
    form = FORMATS[dst.name]
    exponent = data.draw(st.integers(1 - form.bias, form.bias - 1))
    units = data.draw(st.integers(2**form.mantissa, 2 ** (form.mantissa + 1) - 1))
    hair = data.draw(st.integers(form.mantissa + 2, 52)) * -1
    side = data.draw(st.sampled_from([-1, 0, 1]))
    x = (units + 0.5 + side * 2.0 ** (hair + form.mantissa)) * 2.0 ** (exponent - form.mantissa)
    checked(np.array([x, -x], np.float64), dtype("float64"), dst)


# --------------------------------------------------------------------------------------------- published answers
def test_float32_to_float16_edges() -> None:
    x = np.array([65504, 65519.99, 65520, -70000, -3.4028234663852886e38, 1e-8, 2**-25, 5.96e-8, math.inf], np.float32)
    made, lost = cast(x, dtype("half"), src=dtype("float32"), on_overflow="inf")
    assert made.view(np.uint16).tolist() == [0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0xFC00, 0, 0, 1, 0x7C00]
    assert (lost.count, lost.overflow, lost.underflow) == (9, 3, 2)
    assert (lost.lowest, lost.highest) == (-3.4028234663852886e38, 65520.0)
    assert (lost.minimum, lost.maximum) == (-3.4028234663852886e38, 65520.0)
    made, _ = cast(x, dtype("half"), src=dtype("float32"), on_overflow="saturate")
    assert made.view(np.uint16).tolist() == [0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF, 0xFBFF, 0, 0, 1, 0x7C00]


def test_float64_is_not_rounded_twice() -> None:
    x = np.array([1 + 2**-11 - 2**-40, 1 + 2**-11, 1 + 2**-11 + 2**-40, 65519.99999999999, 2**-25 + 2**-60])
    made, lost = cast(x, dtype("half"), src=dtype("float64"))
    assert made.view(np.uint16).tolist() == [0x3C00, 0x3C00, 0x3C01, 0x7BFF, 0x0001]
    assert lost == Lost(5, minimum=2**-25 + 2**-60, maximum=65519.99999999999)
    made, lost = cast(np.array([1 + 2**-8 + 2**-40]), dtype("bf16"), src=dtype("float64"))
    assert made.view(np.uint16).tolist() == [0x3F81]


def test_float32_to_bfloat16_keeps_nan_and_rounds_to_even() -> None:
    x = bits_of(0x3F808000, 0x3F818000, 0x7F800001, 0xFF800001, 0x7F7F8000, 0x00008001, src=dtype("float32"))
    made, lost = cast(x, dtype("bf16"), src=dtype("float32"))
    assert made.view(np.uint16)[[0, 1, 4, 5]].tolist() == [0x3F80, 0x3F82, 0x7F7F, 0x0001]
    assert np.isnan(made[2:4].astype(np.float32)).all()
    assert lost.overflow == 1


def test_float32_to_e4m3fn_ties_and_overflows_as_specified() -> None:
    x = np.array([0.3, 17, 19, 448, 464, 464.0001, 480, 1000, -1000, math.inf, -math.inf, math.nan], np.float32)
    made, lost = cast(x, dtype("e4m3"), src=dtype("float32"), on_overflow="saturate")
    bits = [0x2A, 0x58, 0x5A, 0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F]
    assert made.view(np.uint8).tolist() == bits
    assert (lost.overflow, lost.infinite, lost.nan) == (4, 2, 0)


def test_float_to_uint8_truncates_before_it_judges() -> None:
    x = np.array([-0.5, -0.999, 255.4, 255.999, 254.5], np.float32)
    made, lost = cast(x, dtype("uint8"), src=dtype("float32"))
    assert made.tolist() == [0, 0, 255, 255, 254]
    assert lost == Lost(5, underflow=2, minimum=-0.9990000128746033, maximum=255.99899291992188)


def test_float_to_the_largest_integers() -> None:
    x = np.array([2.0**63 - 1024, 2.0**63, -(2.0**63), -(2.0**63) - 2048, 2.0**64 - 2048, 2.0**64])
    made, lost = cast(x, dtype("int64"), src=dtype("float64"))
    top, low = 2**63 - 1, -(2**63)
    assert made.tolist() == [2**63 - 1024, top, low, low, top, top]
    assert (lost.overflow, lost.lowest, lost.highest) == (4, -(2.0**63) - 2048, 2.0**64)
    made, lost = cast(x, dtype("uint64"), src=dtype("float64"))
    assert made.tolist() == [2**63 - 1024, 2**63, 0, 0, 2**64 - 2048, 2**64 - 1]
    assert lost.overflow == 3


def test_int64_extremes_are_exact() -> None:
    x = np.array([2**63 - 1, -(2**63), 0, 119546], np.int64)
    made, lost = cast(x, dtype("uint16"), src=dtype("int64"))
    assert made.tolist() == [65535, 0, 0, 65535]
    assert (lost.lowest, lost.highest, lost.largest) == (-(2**63), 2**63 - 1, -(2**63))


def test_uint64_to_int64_does_not_wrap() -> None:
    made, lost = cast(np.array([2**64 - 1, 2**63, 5], np.uint64), dtype("int64"), src=dtype("uint64"))
    assert made.tolist() == [2**63 - 1, 2**63 - 1, 5]
    assert lost == Lost(3, overflow=2, lowest=2**63, highest=2**64 - 1, minimum=5, maximum=2**64 - 1)


def test_integers_that_a_float_cannot_hold_are_counted() -> None:
    made, lost = cast(np.array([2**53, 2**53 + 1, 2**63 - 1], np.int64), dtype("float64"), src=dtype("int64"))
    assert made.tolist() == [2.0**53, 2.0**53, 2.0**63]
    assert lost == Lost(3, inexact=2, minimum=2**53, maximum=2**63 - 1)


def test_bool_is_what_is_not_zero() -> None:
    x = np.array([0, -0.0, 0.3, -2, math.nan, math.inf, 1e-45], np.float32)
    made, lost = cast(x, BOOL, src=dtype("float32"))
    assert made.tolist() == [False, False, True, True, True, True, True]
    assert lost == Lost(7, minimum=-2, maximum=0.30000001192092896)


# ----------------------------------------------------------------------------------------------- complex numbers
def test_complex_parts_are_rounded_and_counted_one_by_one() -> None:
    x = np.array([1 + 2**-24 + 1e-60j, 1e300 - 2j])
    made, lost = cast(x, dtype("complex64"), src=dtype("complex128"))
    assert made.dtype == np.complex64
    assert made.view(np.float32).tolist() == [1.0, 0.0, 3.4028234663852886e38, -2.0]
    assert lost == Lost(4, overflow=1, underflow=1, lowest=1e300, highest=1e300, minimum=-2, maximum=1e300)
    wide, lost = cast(made, dtype("complex128"), src=dtype("complex64"))
    np.testing.assert_array_equal(wide, made)
    assert lost == Lost(4, minimum=-2, maximum=3.4028234663852886e38)


@pytest.mark.parametrize("src", REAL, ids=name)
@pytest.mark.parametrize("dst", ["complex64", "complex128"])
def test_a_real_number_becomes_the_real_part(src: DType, dst: str) -> None:
    x = np.array([0, 1], np.uint8).astype(src.numpy)
    made, lost = cast(x, dtype(dst), src=src)
    assert made.tolist() == [0j, 1 + 0j]
    assert lost == Lost(2, minimum=0, maximum=1)


@pytest.mark.parametrize("dst", REAL, ids=name)
def test_complex_to_real_is_refused(dst: DType) -> None:
    with pytest.raises(TconvError, match="imaginary"):
        cast(np.ones(2, np.complex64), dst, src=dtype("complex64"))


def test_float32_to_float4_ties_and_overflows_as_specified() -> None:
    x = np.array([0.25, 0.75, 2.5, 5, 6.99, 7, -7, math.inf, -0.0, math.nan, 0.26, -1e-30], np.float32)
    made, lost = cast(x, dtype("fp4"), src=dtype("float32"), on_overflow="saturate")
    assert made.view(np.uint8).tolist() == [0, 2, 4, 6, 7, 7, 15, 7, 8, 0, 1, 8]
    assert (lost.overflow, lost.infinite, lost.nan, lost.underflow) == (2, 1, 1, 2)
    assert (lost.lowest, lost.highest) == (-7, 7)
    assert lost.bad("saturate")  # NaN has no answer


def test_integers_to_4_bits() -> None:
    x = np.array([-9, -8, -7, -1, 0, 5, 7, 8, 15, 16], np.int64)
    made, lost = cast(x, dtype("int4"), src=dtype("int64"), on_overflow="saturate")
    assert made.astype(np.int64).tolist() == [-8, -8, -7, -1, 0, 5, 7, 7, 7, 7]
    assert (lost.overflow, lost.lowest, lost.highest) == (4, -9, 16)
    made, lost = cast(x, dtype("uint4"), src=dtype("int64"), on_overflow="saturate")
    assert made.astype(np.int64).tolist() == [0, 0, 0, 0, 0, 5, 7, 8, 15, 15]
    made, lost = cast(x, dtype("fp4"), src=dtype("int64"), on_overflow="saturate")
    assert made.astype(np.float32).tolist() == [-6, -6, -6, -1, 0, 4, 6, 6, 6, 6]
    assert (lost.overflow, lost.inexact) == (7, 1)  # 7 is a tie with 8; 5 lies between 4 and 6


# --------------------------------------------------------------------------------------------- shapes and places


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=name)
def test_any_layout_of_input_and_output_gives_the_same(src: DType, dst: DType) -> None:
    rng = np.random.default_rng(7)
    top = 2 if src.kind == "bool" else 1 << min(src.bits, 8)
    x = rng.integers(0, top, 24 * src.itemsize, dtype=np.uint8).view(src.numpy)
    made, lost = cast(x, dst, src=src)
    plain = made.view(np.uint8).copy()
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(src.numpy)
    spaced = np.repeat(x, 2)[::2]
    turned = np.ascontiguousarray(x.reshape(4, 6).T).T
    for same in (x.reshape(2, 3, 4), unaligned, spaced, turned):
        again, more = cast(same, dst, src=src)
        assert (again.shape, again.dtype) == (same.shape, dst.numpy)
        np.testing.assert_array_equal(np.ascontiguousarray(again.reshape(-1)).view(np.uint8), plain)
        assert more == lost
    for out in (np.empty(24, dst.numpy), np.empty((4, 6), dst.numpy), np.empty(48, dst.numpy)[::2]):
        filled, more = cast(x, dst, out, src=src)
        assert filled is out
        np.testing.assert_array_equal(np.ascontiguousarray(out).reshape(-1).view(np.uint8), plain)
        assert more == lost


@pytest.mark.parametrize(("src", "dst"), PAIRS, ids=name)
def test_empty_and_0_d(src: DType, dst: DType) -> None:
    empty, lost = cast(np.empty((0, 3), src.numpy), dst, src=src)
    assert (empty.shape, empty.dtype, lost.count) == ((0, 3), dst.numpy, 0)
    single, _ = cast(np.ones((), src.numpy), dst, src=src)
    assert (single.shape, single.dtype) == ((), dst.numpy)
    assert complex(single) == 1


def test_the_same_dtype_is_the_same_object_unless_there_is_a_place_for_it() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    made, lost = cast(x, dtype("float32"), src=dtype("float32"))
    assert made is x
    assert lost == Lost(6, minimum=0, maximum=5)
    out = np.empty(6, np.float32)
    made, _ = cast(x, dtype("float32"), out, src=dtype("float32"))
    assert made is out
    assert out.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_input_is_not_changed_and_may_be_read_only() -> None:
    x = np.array([1e10, math.nan, -5, 0.3], np.float32)
    x.flags.writeable = False
    before = x.tobytes()
    for dst in ALL:
        cast(x, dst, src=dtype("float32"))
    assert x.tobytes() == before


# ------------------------------------------------------------------------------------------------------ policies
@pytest.mark.parametrize("dst", [d for d in ALL if not d.has_inf], ids=name)
def test_inf_is_refused_where_there_is_none(dst: DType) -> None:
    with pytest.raises(UsageError, match=rf"{dst} has no inf"):
        casts.check_policy(dst, "inf")


def test_an_unknown_policy_is_refused_naming_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"'wrap'.*error, saturate, inf"):
        cast(np.ones(1, np.int64), dtype("int8"), src=dtype("int64"), on_overflow="wrap")


def test_ml_dtypes_agrees_on_float32() -> None:
    """ml_dtypes rounds float32 once; on float64 it does not, which is why it is asked for nothing else."""
    x = np.random.default_rng(3).integers(0, 2**32, 1 << 20, dtype=np.uint32).view(np.float32)
    for dst in (d for d in NARROW if d.has_nan):
        made, _ = cast(x, dst, src=dtype("float32"), on_overflow="inf" if dst.has_inf else "error")
        with np.errstate(all="ignore"):
            wanted = x.astype(dst.numpy if dst.name == "float16" else getattr(ml_dtypes, dst.name))
        finite = np.isfinite(wanted.astype(np.float32)) | dst.has_inf
        nan = np.isnan(x)
        bits = f"u{dst.itemsize}"
        np.testing.assert_array_equal(made.view(bits)[finite & ~nan], wanted.view(bits)[finite & ~nan])
        assert np.isnan(made.astype(np.float32)[nan]).all()
