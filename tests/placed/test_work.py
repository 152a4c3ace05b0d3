"""A chain on a device is the same chain: through torch's CPU, which goes the way of all devices."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tconv import evaluate
from tconv.blocks import stages_of
from tconv.dtypes import DTYPES, dtype
from tconv.ops import CastTo, Elementwise, MoveTo, Op, Permute
from tconv.placed.section import Section
from tconv.quant.grid import grid
from tconv.quant.op import Numbers, Quantize
from tconv.steps.normalize import Standardize
from tconv.steps.scale import Rescale
from tests.memory import ArraySource, tensor
from tests.placed.laws import (
    SOURCES,
    any_bits,
    assert_every_cast_on,
    assert_nans_are_the_same_on,
    assert_same_on,
    chains,
    on,
)

if TYPE_CHECKING:
    from tconv.ops import Array

pytest.importorskip("torch")

DEVICE = "torch"
U8, F32, F16 = dtype("uint8"), dtype("float32"), dtype("float16")
SCALE = Rescale(dtype=F32, onto=(0.0, 1.0), known=(0.0, 255.0), step="scale")
NORMALIZE = Standardize(dtype=F32, axis=2, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), step="normalize")


def crosses(ops: tuple[Op, ...], x: Array) -> bool:
    _, there = on(DEVICE, ops, x)
    stages = stages_of(there.ops, there.source.dtype, x.ndim, False)
    return any(isinstance(stage, Section) for stage in stages)


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("detail", [False, True])
def test_every_cast(src: str, detail: bool) -> None:
    assert_every_cast_on(DEVICE, src, detail)


@pytest.mark.parametrize(
    ("src", "dst", "there"),
    [
        ("float32", "float16", True), ("float64", "bfloat16", True), ("float16", "float32", True),
        ("int32", "float32", True), ("float32", "int64", True), ("uint16", "uint8", True),
        ("uint8", "float8_e4m3fn", True), ("int8", "int4", True), ("bool", "float16", True),
        ("int64", "float32", False), ("uint64", "int8", False), ("float32", "float8_e5m2", False),
        ("float32", "uint64", False), ("float8_e4m3fn", "float32", False), ("float32", "complex64", False),
    ],
)  # fmt: skip
def test_which_casts_are_made_there(src: str, dst: str, there: bool) -> None:
    assert crosses((CastTo(dtype=dtype(dst)),), any_bits(src)) == there


def test_float64_is_rounded_once() -> None:
    """1 + 2**-11 is halfway between two float16 numbers: what little is above it must not be rounded away before."""
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-8 + 2.0**-50, 65519.99999999999, 65520.0, 1e-9])
    made = np.array([1 + 2.0**-10, 1, 1 + 2.0**-8, 65504, np.inf, 0], np.float16)
    _, there = on(DEVICE, (CastTo(dtype=F16, on_overflow="inf", step="c"),), x)
    got, lost = evaluate.evaluate(there)
    assert got.tolist() == made.tolist()
    (told,) = lost.by_cast.values()
    assert (told.count, told.overflow, told.underflow, told.highest) == (6, 1, 1, 65520.0)


@pytest.mark.parametrize("src", ["float16", "bfloat16"])
def test_every_half_to_every_float(src: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(DTYPES[src].numpy)
    for dst in ("float16", "bfloat16", "float32", "float64", "uint8", "int32"):
        assert_same_on(DEVICE, (CastTo(dtype=dtype(dst), on_overflow="saturate", step="c"),), x)


@pytest.mark.parametrize("src", ["uint8", "int8", "uint16", "int32", "float32", "float64", "float16"])
@pytest.mark.parametrize("perm", [None, (2, 0, 1), (1, 2, 0)])
def test_pictures(src: str, perm: tuple[int, ...] | None) -> None:
    x = (np.random.default_rng(0).random((9, 7, 3)) * 255).astype(src)
    turn: tuple[Op, ...] = () if perm is None else (Permute(perm=perm, step="p"),)
    ops: tuple[Op, ...] = (SCALE, NORMALIZE, *turn, CastTo(dtype=F16, step="c"))
    assert crosses(ops, x)
    assert_same_on(DEVICE, ops, x)
    back = Rescale(dtype=U8, onto=(0.0, 255.0), known=(-2.2, 2.7), step="scale(uint8)")
    assert_same_on(DEVICE, (SCALE, NORMALIZE, back, *turn), x)


def test_nans_are_the_same() -> None:
    assert_nans_are_the_same_on(DEVICE)


@settings(max_examples=60)
@given(chains, st.sampled_from(SOURCES), st.booleans(), st.integers(0, 5))
def test_every_chain(ops: tuple[Op, ...], src: str, detail: bool, seed: int) -> None:
    assert_same_on(DEVICE, ops, any_bits(src, seed=seed), detail=detail)


@pytest.mark.parametrize("piece", [7, 36, 1 << 20])
@pytest.mark.parametrize("seekable", [True, False])
def test_however_it_is_cut(monkeypatch: pytest.MonkeyPatch, piece: int, seekable: bool) -> None:
    monkeypatch.setattr(evaluate, "PIECE", piece)
    for src in ("uint8", "float32"):
        x = (np.random.default_rng(1).random((6, 4, 3)) * 255).astype(src)
        for ops in ((SCALE, NORMALIZE), (SCALE, NORMALIZE, Permute(perm=(0, 2, 1), step="p")), (CastTo(dtype=F16),)):
            here, there = on(DEVICE, ops, x)
            there = replace(there, source=ArraySource(x, seekable=seekable))
            np.testing.assert_array_equal(evaluate.evaluate(there)[0], evaluate.evaluate(here)[0])


def test_results_too_large_for_float64_are_limited_and_counted() -> None:
    x = np.array([[1e200, -1e200, np.inf, np.nan, 1.0]])
    up = Standardize(dtype=dtype("float64"), mean=(0.0,), std=(1e-200,), step="n")
    assert_same_on(DEVICE, (up,), x)
    assert_same_on(DEVICE, (up, CastTo(dtype=F32, on_overflow="saturate", step="c")), x, detail=True)


def test_whatever_starts_from_bytes_is_a_table_even_onto_a_grid() -> None:
    x = any_bits("uint8")
    onto = Quantize(grid=grid("int8"), numbers=Numbers(np.array([0.01], np.float32)), step="quantize(int8)")
    assert crosses((SCALE, onto), x)
    assert_same_on(DEVICE, (SCALE, onto), x)
    assert not crosses((onto,), any_bits("float32"))


def test_bytes_of_too_many_channels_for_a_table() -> None:
    """Arithmetic then, or where there is none of it on a device the CPU."""
    x = np.random.default_rng(0).integers(0, 256, (4, 300), np.uint8)
    mean = tuple(float(n) for n in range(300))
    many = Standardize(dtype=F32, axis=1, mean=mean, std=(2.0,) * 300, step="n")
    assert_same_on(DEVICE, (many,), x)
    assert_same_on(DEVICE, (many, CastTo(dtype=dtype("float8_e4m3fn"), on_overflow="saturate", step="c")), x)


def test_nothing_is_nothing() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        assert_same_on(DEVICE, (CastTo(dtype=F16, step="c"),), np.ones(shape, np.float32))


def test_the_cpu_is_no_device() -> None:
    made = tensor(any_bits("float32")).then(MoveTo(device="cpu", step="d")).then(CastTo(dtype=F16))
    assert not any(isinstance(s, Section) for s in stages_of(made.ops, made.source.dtype, 3, False))


def test_arithmetic_of_unknown_kind_stays_with_numpy() -> None:
    from tests.fuse.test_run import Affine

    foreign: Elementwise = Affine(dtype=F32, axis=2, shift=(1.0, 2.0, 3.0), divisor=(2.0, 3.0, 7.0), step="affine")
    assert not crosses((foreign,), any_bits("float32"))
    assert crosses((foreign,), any_bits("uint8"))
    for src in ("float32", "uint8"):
        assert_same_on(DEVICE, (foreign, CastTo(dtype=F16, on_overflow="saturate", step="c")), any_bits(src))
