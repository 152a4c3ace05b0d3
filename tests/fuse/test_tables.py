"""A table gives what a pass over the values gives: the same results, and the same account to the last digit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tconv.account import Account, RangeKey
from tconv.channels import Window, cuts
from tconv.dtypes import DTYPES, dtype
from tconv.fuse import Run, compile_run, tables
from tconv.fuse.tables import SMALL, Tally, histogram, look_up, planes, tabulate
from tconv.lost import Lost
from tconv.ops import CastTo, Promise
from tests.fuse.test_run import Affine

if TYPE_CHECKING:
    from tconv.ops import Array, Op

F32, F16, U8 = dtype("float32"), dtype("float16"), dtype("uint8")
SOURCES = ["uint8", "int8", "bool"]
BY_CHANNEL = Affine(dtype=F32, axis=1, shift=(100.0, 0.0, -3.0), divisor=(-0.25, 51.0, 1e6))

OPS = st.sampled_from(
    [
        Affine(dtype=F32, shift=(3.0,), divisor=(7.0,)),
        Affine(dtype=F32, divisor=(1e-3,)),
        Affine(dtype=F32, divisor=(-255.0,)),
        Affine(dtype=dtype("float64"), divisor=(2.0**150,)),
        Affine(dtype=dtype("float64"), shift=(-1.0,), divisor=(2.0**-1020,)),
        Affine(dtype=dtype("float64"), shift=(9.0,), divisor=(2.0**900,)),
        BY_CHANNEL,
        Promise(range=(0, 1)),
        Promise(range=(-20, 100)),
        Promise(range=(0, 255)),
        CastTo(dtype=F16, step="half"),
        CastTo(dtype=F16, on_overflow="inf", step="half or inf"),
        CastTo(dtype=dtype("bfloat16"), step="brain"),
        CastTo(dtype=dtype("float8_e4m3fn"), on_overflow="saturate", step="e4m3"),
        CastTo(dtype=dtype("int8"), on_overflow="saturate", step="int8"),
        CastTo(dtype=U8, on_overflow="saturate", step="uint8"),
        CastTo(dtype=dtype("int64"), step="int64"),
        CastTo(dtype=dtype("bool"), step="bool"),
    ]
)


def by_pass(run: Run, x: Array, shape: tuple[int, ...], out: Array) -> Account:
    lost = Account()
    for lo, hi, channel in cuts(0, x.size, shape, run.axis, 1 << 62):
        lost += run._pass(x[lo:hi], out[lo:hi], Window(shape, run.axis, channel))
    return lost


def same(a: Account, b: Account) -> None:
    assert (list(a.by_cast), list(a.by_range)) == (list(b.by_cast), list(b.by_range))
    pairs = zip((*a.by_cast.values(), *a.by_range.values()), (*b.by_cast.values(), *b.by_range.values()), strict=True)
    for lost, other in pairs:
        assert replace(lost, detail=None) == replace(other, detail=None)
        if lost.detail is None or other.detail is None:
            assert lost.detail is other.detail
            continue
        for field, value in vars(lost.detail).items():
            expected = getattr(other.detail, field)
            if isinstance(value, Fraction):  # which may be too large for a float
                assert abs(value - expected) <= expected / 10**9, field
            else:
                assert value == pytest.approx(expected, rel=1e-9), field


def test_sums_beyond_float64_are_compared() -> None:
    far = Affine(
        dtype=dtype("float32"), axis=None, on_overflow="saturate", step="a", shift=(-1.0,), divisor=(8.9e-308,)
    )
    (run,) = compile_run((far,), DTYPES["uint8"], 1, True)
    x, out = np.zeros(300, np.uint8), np.empty(300, np.float32)
    same(run(x, (300,), out), by_pass(run, x, (300,), out.copy()))


@given(st.data(), st.sampled_from(SOURCES), st.lists(OPS, min_size=1, max_size=4), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_table_and_a_pass_agree(data: st.DataObject, source: str, ops: list[Op], detail: bool) -> None:
    rows, inner = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 300]))
    shape = (rows, 3, inner)
    some = data.draw(st.lists(st.integers(0, 255), min_size=1, max_size=9))
    plain = np.resize(np.array(some, np.uint8), rows * 3 * inner)
    x = plain % 2 == 1 if source == "bool" else plain.view(DTYPES[source].numpy)
    for run in compile_run(tuple(ops), DTYPES[source], 3, detail):
        want, got = np.empty(x.size, run.dtype.numpy), np.empty(x.size, run.dtype.numpy)
        same(run(x, shape, got), by_pass(run, x, shape, want))
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
        x = got


@pytest.mark.parametrize("detail", [False, True])
def test_the_account_of_many_values(detail: bool) -> None:
    """More than OpenCV's threshold, so that it counts them."""
    x = np.random.default_rng(5).integers(0, 200, 3 * SMALL, np.uint8)
    (run,) = compile_run((Promise(range=(5, 150)), BY_CHANNEL), U8, 2, detail)
    shape = (SMALL, 3)
    want, got = np.empty(x.size, np.float32), np.empty(x.size, np.float32)
    lost = run(x, shape, got)
    same(lost, by_pass(run, x, shape, want))
    np.testing.assert_array_equal(got, want)
    outside = lost.by_range[RangeKey(U8, (5, 150))]
    assert outside == Lost(x.size, overflow=int(((x < 5) | (x > 150)).sum()), minimum=0, maximum=199)


def test_an_entry_that_loses_something_counts_as_often_as_it_occurs() -> None:
    ops = (Affine(dtype=F32, divisor=(2.0**-9,)), CastTo(dtype=F16, step="half"))
    (run,) = compile_run(ops, U8, 1)
    out = np.empty(6, np.float16)
    (lost,) = run(np.array([255, 1, 255, 200, 127, 255], np.uint8), (6,), out).by_cast.values()
    assert lost == Lost(6, overflow=4, lowest=102400, highest=130560, minimum=512, maximum=130560)
    (lost,) = run(np.array([1, 2, 3, 4, 5, 127], np.uint8), (6,), out).by_cast.values()
    assert lost == Lost(6, minimum=512, maximum=65024)


def test_a_table_and_a_pass_agree_on_what_is_beyond_float64() -> None:
    x = np.array([0, 1, 0, 200, 255, 200], np.uint8)
    op = Affine(dtype=dtype("float64"), divisor=(2.0**-1021,))
    for policy, most in (("inf", np.inf), ("saturate", 1.7976931348623157e308)):
        for target in ("float64", "complex128"):
            (run,) = compile_run((op, CastTo(dtype=dtype(target), on_overflow=policy, step="wide")), U8, 1)
            want, got = np.empty(6, dtype(target).numpy), np.empty(6, dtype(target).numpy)
            lost = run(x, (6,), got)
            same(lost, by_pass(run, x, (6,), want))
            assert got.tolist() == want.tolist() == [0, 2.0**1021, 0, most, most, most]
            (found,) = lost.by_cast.values()
            assert found == Lost(6, overflow=3, lowest=np.inf, highest=np.inf, minimum=0, maximum=2.0**1021)


def test_where_bytes_need_not_be_counted_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(_x: Array) -> Array:
        raise AssertionError

    monkeypatch.setattr(tables, "histogram", counted)
    x = np.array([7, 3, 250], np.uint8)
    (run,) = compile_run((Promise(range=(0, 255)), BY_CHANNEL, CastTo(dtype=F32, step="single")), U8, 2)
    out = np.empty(3, np.float32)
    lost = run(x, (1, 3), out)
    assert lost.by_range[RangeKey(U8, (0, 255))] == Lost(3, minimum=3, maximum=250)
    assert list(lost.by_cast.values()) == [Lost(3, minimum=253 / 1e6, maximum=(7 - 100) / -0.25)]


def test_what_would_take_too_long_to_tabulate_goes_by_a_pass() -> None:
    channels = tables.MOST_ENTRIES // 256 + 1
    op = Affine(dtype=F32, axis=1, shift=(0.0,) * channels, divisor=(3.0,) * channels)
    (run,) = compile_run((op,), U8, 2, True)
    assert tabulate(U8, run.segments, channels, True) is None
    assert tabulate(U8, run.segments, channels, False) is not None
    out = np.empty(channels, np.float32)
    (lost,) = run(np.full(channels, 6, np.uint8), (1, channels), out).by_cast.values()
    assert lost.detail is not None
    assert (lost.detail.signal, lost.detail.noise) == (Fraction(4 * channels), Fraction(0))
    assert out[0] == 2


@pytest.mark.parametrize("size", [0, 1, SMALL - 1, SMALL, SMALL + 1, 3 * SMALL + 7])
def test_bytes_are_counted(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).integers(0, 256, size, np.uint8)
    assert histogram(x).tolist() == np.bincount(x, minlength=256).tolist()
    monkeypatch.setattr(tables, "_COUNTED", 1000)
    assert histogram(x.view(np.int8)).tolist() == np.bincount(x, minlength=256).tolist()


@pytest.mark.parametrize("name", ["uint8", "float16", "bfloat16", "float32", "float64", "int64", "float8_e5m2"])
@pytest.mark.parametrize("size", [1, 255, SMALL, SMALL + 1, 3 * SMALL + 7])
def test_look_up_moves_bits_of_any_width(name: str, size: int) -> None:
    rng = np.random.default_rng(2)
    target = DTYPES[name].numpy
    row = rng.integers(0, 256, 256 * target.itemsize, np.uint8).view(target)  # NaNs with payloads among them
    x = rng.integers(0, 256, size, np.uint8)
    out = np.zeros(size, target)
    look_up(x, row, out)
    assert out.tobytes() == b"".join(row[i].tobytes() for i in x)


def test_a_tally_of_nothing_is_empty() -> None:
    table = tabulate(U8, compile_run((BY_CHANNEL,), U8, 2)[0].segments, 3, False)
    assert table is not None
    (lost,) = Tally(table).account().by_cast.values()
    assert lost == Lost()


@pytest.mark.parametrize("dtype_", [np.uint8, np.int8, np.bool_, np.uint16])
@pytest.mark.parametrize("shape", [(2, 3, 3), (130, 130, 1), (130, 130, 3), (130, 130, 4), (70, 70, 5), (130, 130)])
def test_planes_are_the_slices_along_an_axis(dtype_: type, shape: tuple[int, ...]) -> None:
    x: Array = (np.arange(np.prod(shape)) % 251).astype(dtype_).reshape(shape)
    for axis in range(x.ndim):
        taken = list(planes(x, axis))
        assert len(taken) == shape[axis]
        for n, plane in enumerate(taken):
            assert plane.dtype == x.dtype
            assert np.array_equal(plane, x.take(n, axis))
