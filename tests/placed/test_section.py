"""What of a chain is done on a device: one part of it, so cut that few bytes cross; and why the rest is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tconv.blocks import stages_of
from tconv.dtypes import dtype
from tconv.fuse import Run
from tconv.ops import CastTo, MoveTo, Op, Permute, Promise, Whole
from tconv.placed.section import Section, why_not
from tconv.quant.grid import grid
from tconv.quant.op import Numbers, Quantize
from tconv.steps.clamp import Between
from tconv.steps.normalize import Standardize
from tconv.steps.scale import Multiply, Rescale
from tests.test_evaluate import Flip

CUDA, BACK = MoveTo(device="cuda:0", step="device(cuda)"), MoveTo(device="cpu", step="device(cpu)")
SCALE = Rescale(dtype=dtype("float32"), onto=(0.0, 1.0), known=(0.0, 255.0), step="scale")
NORMALIZE = Standardize(dtype=dtype("float32"), mean=(0.5,), std=(0.5,), step="normalize")
TURN = Permute(perm=(1, 0), step="permute")
CLAMP = Between(dtype=dtype("float32"), lo=0.0, hi=1.0, step="clamp")


def cast(name: str) -> CastTo:
    return CastTo(dtype=dtype(name), step=f"cast({name})")


def shown(ops: list[Op], source: str = "float32", device: str = "cuda:0") -> str:
    """``uint8 [float32 float16 turned] float32``: what each part makes, in brackets what is done on the device."""
    ops = [replace(op, device=device) if op == CUDA else op for op in ops]
    parts = []
    for stage in stages_of(tuple(ops), dtype(source), 2, False):
        if isinstance(stage, Whole):
            parts.append("whole")
        else:
            runs = stage.runs if isinstance(stage, Section) else (stage,)
            made = [word for run in runs for word in _made(run)]
            parts.append(f"[{runs[0].source} -> {' '.join(made)}]" if isinstance(stage, Section) else " ".join(made))
            assert not isinstance(stage, Section) or stage.device == device
    return " ".join(parts)


def _made(run: Run) -> list[str]:
    return [str(segment.dtype) for segment in run.segments] + ["turned"] * (run.perm is not None)


@pytest.mark.parametrize(
    ("ops", "source", "want"),
    [
        ([CUDA, cast("float32"), cast("float16"), BACK], "float16", "[float16 -> float32 float16]"),
        # Narrow before, widen after, and something at least there.
        ([CUDA, cast("float32"), cast("float16"), BACK], "float64", "float32 [float32 -> float16]"),
        ([CUDA, cast("float16"), cast("float32")], "float32", "float16 [float16 -> float32]"),
        ([CUDA, cast("float32"), NORMALIZE, cast("float16"), cast("float32")], "float64",
         "float32 [float32 -> float16] float32"),
        ([CUDA, cast("float16")], "float64", "[float64 -> float16]"),
        ([CUDA, cast("float64")], "float32", "[float32 -> float64]"),
        ([CUDA, NORMALIZE, cast("float16"), cast("float32"), TURN], "float32", "[float32 -> float16 turned] float32"),
        ([CUDA, cast("float32"), TURN], "float16", "[float16 -> turned] float32"),
        ([CUDA, TURN, cast("float64")], "float32", "[float32 -> turned] float64"),
        # Integers cross, and floats are made there.
        ([CUDA, SCALE, NORMALIZE, TURN], "uint8", "[uint8 -> float32 turned]"),
        ([CUDA, SCALE, cast("float16"), cast("float32")], "uint8", "[uint8 -> float16] float32"),
        ([CUDA, SCALE, cast("float8_e4m3fn")], "uint8", "[uint8 -> float8_e4m3fn]"),
        ([CUDA, SCALE], "uint16", "[uint16 -> float32]"),
        # Only what stands between device(cuda) and device(cpu), but for what cannot be taken apart.
        ([SCALE, cast("float16"), CUDA, CLAMP, BACK, NORMALIZE, cast("int8")], "float32", "float16 [float16 -> int8]"),
        ([cast("float16"), CUDA, CLAMP, cast("float16"), BACK, cast("int8")], "float32",
         "float16 [float16 -> float16] int8"),
        ([SCALE, CUDA, NORMALIZE], "float32", "[float32 -> float32]"),
        ([NORMALIZE, CUDA], "float32", "float32"),
        ([CUDA, BACK, NORMALIZE], "float32", "float32"),
        # What needs the array as a whole is done on the CPU, and so is what is not exact.
        ([CUDA, Flip(), SCALE], "uint8", "whole [uint8 -> float32]"),
        ([CUDA, SCALE, Flip(), NORMALIZE, TURN], "uint8", "float32 whole [float32 -> float32 turned]"),
        ([CUDA, SCALE, NORMALIZE, cast("float8_e4m3fn")], "float32", "float8_e4m3fn"),
        ([CUDA, NORMALIZE, cast("float16"), cast("float8_e4m3fn")], "float32", "[float32 -> float16] float8_e4m3fn"),
        ([CUDA, cast("float32"), NORMALIZE], "int64", "float32 [float32 -> float32]"),
        ([CUDA, Promise(range=(0, 1))], "float32", "float32"),
        ([CUDA, Promise(range=(0, 1)), NORMALIZE], "float32", "[float32 -> float32 float32]"),
    ],
)  # fmt: skip
def test_what_is_done_where(ops: list[Op], source: str, want: str) -> None:
    assert shown(ops, source) == want


def test_without_float64_there_only_tables_and_turns_are_done() -> None:
    assert shown([CUDA, SCALE, NORMALIZE, TURN], "uint8", "mps") == "[uint8 -> float32 turned]"
    assert shown([CUDA, NORMALIZE, TURN], "float32", "mps") == "float32 [float32 -> turned]"
    assert shown([CUDA, cast("float16")], "float32", "mps") == "float16"


def test_one_device_a_chain() -> None:
    other = MoveTo(device="cuda:1", step="device(cuda:1)")
    ops = [CUDA, NORMALIZE, cast("float16"), cast("float16"), other, Flip(), CLAMP]
    assert shown(ops) == "[float32 -> float16 float16] whole float32"


def test_why_something_is_done_on_the_cpu() -> None:
    def why(op: Op, source: str = "float32", device: str = "cuda:0") -> str:
        (stage,) = stages_of((op,), dtype(source), 2, False)
        assert not isinstance(stage, Section)
        return why_not(stage, device)

    assert why(Flip()) == "it needs the array as a whole"
    assert why(cast("float8_e5m2")) == "float32 to float8_e5m2 is not exact there"
    assert why(cast("float16"), "int64") == "int64 to float16 is not exact there"
    assert why(NORMALIZE, device="mps") == "there is no float64 there"
    onto = Quantize(grid=grid("int8"), numbers=Numbers(np.ones(1, np.float32)), step="q")
    assert why(onto) == "quantization is done on the CPU"
    like = Multiply(dtype=dtype("float32"), onto=(0.0, 1.0), factor=0.5, single=True, unit=False, step="scale")
    assert why(like) == "scale is NumPy's arithmetic"
    assert why(NORMALIZE) == why(SCALE, "uint8") == why(like, "uint8") == ""
