"""Fused runs give what NumPy gives operation by operation in float64, rounded once; by table, by pass, permuted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.account import RangeKey
from tconv.channels import Window
from tconv.dtypes import DTYPES, dtype
from tconv.fuse import Run, compile_run
from tconv.fuse.run import CHUNK
from tconv.fuse.tables import SMALL
from tconv.ops import CastTo, Elementwise, Permute, Promise

if TYPE_CHECKING:
    from tconv.ops import Array, Op, Pick
    from tconv.tensor import Spec

F32, F16, U8 = dtype("float32"), dtype("float16"), dtype("uint8")


@dataclass(frozen=True, kw_only=True)
class Affine(Elementwise):
    """(x - shift) / divisor, by channel."""

    shift: tuple[float, ...] = (0.0,)
    divisor: tuple[float, ...] = (1.0,)

    def spec(self, spec: Spec) -> Spec:
        return replace(spec, dtype=self.dtype)

    def compute(self, x: Array, pick: Pick) -> Array:
        return (x - pick(self.shift)) / pick(self.divisor)


NORMALIZE = Affine(dtype=F32, axis=2, shift=(0.485, 0.456, 0.406), divisor=(0.229, 0.224, 0.225))
SCALE = Affine(dtype=F32, divisor=(255.0,))


def run_all(ops: tuple[Op, ...], x: Array) -> tuple[Array, Any]:
    """Every run after the other on the whole array."""
    shape, values, lost = x.shape, x.reshape(-1), None
    source = DTYPES[x.dtype.name]
    for run in compile_run(ops, source, x.ndim):
        out = np.empty(values.size, run.dtype.numpy)
        lost = run(values, shape, out)
        shape = shape if run.perm is None else tuple(shape[p] for p in run.perm)
        values = out
    return values.reshape(shape), lost


def image(height: int, width: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("size", [(3, 2), (64, 65), (200, 150)])
def test_scale_and_normalize_are_rounded_once(size: tuple[int, int]) -> None:
    x = image(*size)
    got, _ = run_all((SCALE, NORMALIZE), x)
    want = (x / 255.0 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    np.testing.assert_array_equal(got, want.astype(np.float32))


@pytest.mark.parametrize("size", [(3, 2), (64, 65), (200, 150)])
@pytest.mark.parametrize("perm", [(2, 0, 1), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_a_permutation_goes_along(size: tuple[int, int], perm: tuple[int, ...]) -> None:
    x = image(*size)
    want = ((x / 255.0 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).astype(np.float32).transpose(perm)
    after = Affine(dtype=F32, axis=perm.index(2), shift=NORMALIZE.shift, divisor=NORMALIZE.divisor)
    for ops in [(SCALE, NORMALIZE, Permute(perm=perm)), (Permute(perm=perm), SCALE, after)]:
        assert len(compile_run(ops, U8, 3)) == 1
        np.testing.assert_array_equal(run_all(ops, x)[0], want)


def test_permutations_alone_move_bits() -> None:
    x = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    got, _ = run_all((Permute(perm=(2, 0, 1)), Permute(perm=(1, 0, 2))), x)
    np.testing.assert_array_equal(got, x.transpose(2, 0, 1).transpose(1, 0, 2))
    assert compile_run((Permute(perm=(1, 0)), Permute(perm=(1, 0))), F32, 2) == []


def test_a_cast_in_the_middle_rounds_there() -> None:
    x = np.arange(256, dtype=np.uint8)
    got, _ = run_all((SCALE, CastTo(dtype=F16), Affine(dtype=F32, divisor=(3.0,))), x)
    np.testing.assert_array_equal(got, ((x / 255.0).astype(np.float16).astype(np.float64) / 3).astype(np.float32))


def test_without_a_cast_nothing_rounds_in_the_middle() -> None:
    x = np.arange(65536, dtype=np.uint16)
    got, _ = run_all((Affine(dtype=F32, divisor=(65535.0,)), CastTo(dtype=F16)), x)
    np.testing.assert_array_equal(got, (x / 65535.0).astype(np.float16))
    assert got[-1] == 1.0  # through float16 first, 65535 would be infinite


@pytest.mark.parametrize("source", ["uint8", "int8", "bool"])
def test_tables_and_passes_agree_on_every_byte(source: str) -> None:
    values = np.arange(256, dtype=np.uint8)
    x = values.view(np.int8) if source == "int8" else (values % 2 == 1) if source == "bool" else values
    x = np.tile(x, 2 * SMALL // 256)
    ops = (Affine(dtype=F32, shift=(3.0,), divisor=(7.0,)),)
    (run,) = compile_run(ops, DTYPES[source], 1)
    by_table, by_pass = np.empty(x.size, np.float32), np.empty(x.size, np.float32)
    run(x, x.shape, by_table)
    run._pass(x, by_pass, Window(x.shape, None))
    np.testing.assert_array_equal(by_table, by_pass)
    np.testing.assert_array_equal(by_table, ((x.astype(np.float64) - 3) / 7).astype(np.float32))


def test_a_table_that_overflows_counts_what_it_loses() -> None:
    x = np.array([1, 200, 255, 0, 255], np.uint8)
    _, lost = run_all((Affine(dtype=F32, divisor=(1 / 300,)), CastTo(dtype=F16, step="cast(float16)")), x)
    ((key, found),) = lost.refused()
    assert key.step == "cast(float16)"
    assert (found.count, found.overflow, found.largest) == (5, 2, 76500)


def test_every_cast_keeps_its_own_account() -> None:
    x = np.array([1e6, 1e-9, 2.0], np.float32)
    ops = (CastTo(dtype=F16, on_overflow="inf", step="a"), CastTo(dtype=F32, step="b"), CastTo(dtype=U8, step="c"))
    got, lost = run_all(ops, x)
    found = {key.step: value for key, value in lost.by_cast.items()}
    assert (found["a"].overflow, found["a"].underflow) == (1, 1)
    assert not found["b"]
    assert found["c"].infinite == 1
    assert [key.step for key, _ in lost.refused()] == ["c"]
    assert got.tolist() == [255, 0, 2]


def test_channels_along_two_axes_make_two_runs() -> None:
    x = image(3, 2)
    rows = Affine(dtype=F32, axis=0, shift=(1.0, 2.0, 3.0))
    assert len(compile_run((rows, NORMALIZE), U8, 3)) == 2
    got, _ = run_all((rows, NORMALIZE), x)
    first = (x.astype(np.float64) - np.array([1, 2, 3])[:, None, None]).astype(np.float32)
    want = (first.astype(np.float64) - NORMALIZE.shift) / NORMALIZE.divisor
    np.testing.assert_array_equal(got, want.astype(np.float32))


@given(st.integers(0, 200), st.integers(0, 200))
def test_any_part_of_an_array_by_itself_gives_that_part(a: int, b: int) -> None:
    lo, hi = sorted((a, b))
    x = image(10, 7).astype(np.float32)
    (run,) = compile_run((NORMALIZE,), F32, 3)
    whole, part = np.empty(x.size, np.float32), np.empty(hi - lo, np.float32)
    run(x.reshape(-1), x.shape, whole)
    run(x.reshape(-1)[lo:hi], x.shape, part, first=lo)
    np.testing.assert_array_equal(part, whole[lo:hi])


def test_long_passes_are_cut_without_a_seam() -> None:
    x = np.random.default_rng(1).random((2, 3, CHUNK // 2 + 5), np.float32)
    op = replace(NORMALIZE, axis=1)
    got, _ = run_all((op,), x)
    want = (x.astype(np.float64) - np.array(op.shift)[:, None]) / np.array(op.divisor)[:, None]
    np.testing.assert_array_equal(got, want.astype(np.float32))


@pytest.mark.parametrize("source", ["uint8", "int64", "float64"])
def test_a_promise_is_held_against_the_values_where_it_stands(source: str) -> None:
    x = np.array([0, 1, 200, 3], source)
    ops = (
        Promise(range=(0, 1)),
        Affine(dtype=F32, divisor=(100.0,)),
        Promise(range=(0, 1)),
        CastTo(dtype=F16, step="c"),
    )
    got, lost = run_all(ops, x)
    assert got.tolist() == [float(np.float16(np.float32(v / 100))) for v in (0, 1, 200, 3)]
    first, second = lost.by_range[RangeKey(DTYPES[source], (0, 1))], lost.by_range[RangeKey(F32, (0, 1))]
    assert (first.count, first.overflow, first.minimum, first.maximum) == (4, 2, 0, 200)
    assert (second.count, second.overflow, second.minimum, second.maximum) == (4, 1, 0, 2)


def test_promises_alone_leave_a_run_inert() -> None:
    x = np.array([5, -3, 7], np.float32)
    (run,) = compile_run((Promise(range=(0, 6)), Promise(range=(-9, 9))), F32, 1)
    assert (run.inert, run.dtype) == (True, F32)
    out = np.empty_like(x)
    for lost in (run.check(x), run(x, x.shape, out)):
        assert [value.overflow for value in lost.by_range.values()] == [2, 0]
    assert out.tolist() == x.tolist()
    assert not any(run.inert for run in compile_run((Promise(range=(0, 1)), Permute(perm=(1, 0))), F32, 2))
    assert not compile_run((CastTo(dtype=F16),), F32, 1)[0].inert


@pytest.mark.parametrize("detail", [False, True])
def test_details_are_told_if_they_were_asked_for(detail: bool) -> None:
    x = np.array([1, 2, 3], np.int32)
    (run,) = compile_run(
        (Affine(dtype=F32, divisor=(3.0,)), CastTo(dtype=F16, step="half")), DTYPES["int32"], 1, detail
    )
    (lost,) = run(x, (3,), np.empty(3, np.float16)).by_cast.values()
    assert (lost.detail is not None) == detail
    if lost.detail is not None:
        assert lost.detail.inexact == 2
        assert lost.detail.max_abs_error == abs(2 / 3 - float(np.float16(2 / 3)))


def test_a_run_without_operations_copies() -> None:
    out = np.empty(3, np.float32)
    Run(F32, (), None, None)(np.array([1, 2, 3], np.float32), (3,), out)
    assert out.tolist() == [1, 2, 3]
