"""What was written is read again: which differences count, and whose file it is that does not read back."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tconv import registry
from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.job import convert
from tconv.pipeline import Sugar
from tconv.request import Request, Silent
from tconv.tensor import Extra, Spec
from tconv.verify import Comparison

NAN = math.nan


def compared(written: Any, meant: Any, dtype: str, tmp_path: Path) -> None:
    """A file of the values that were written held against those that were meant."""
    array = np.array(written, DTYPES[dtype].numpy)
    np.save(tmp_path / "staged.npy", array)
    spec = Spec("x", DTYPES[dtype], array.shape)
    comparison = Comparison([spec], Extra("data"), registry.by_name("npy"), tmp_path / "x.npy")
    comparison.open(tmp_path / "staged.npy")
    comparison.write(0, 0, np.array(meant, array.dtype))


@pytest.mark.parametrize(
    ("written", "meant", "dtype", "first"),
    [
        ([complex(2, NAN), 3], [complex(1, NAN), 3], "complex64", 0),
        ([1, complex(NAN, 2)], [1, complex(NAN, 1)], "complex128", 1),
        ([complex(0.0, NAN)], [complex(-0.0, NAN)], "complex128", 0),
        ([complex(NAN, 1)], [complex(2, 1)], "complex64", 0),
        ([1, 2, NAN], [1, NAN, NAN], "float32", 1),
        ([NAN, 2.0], [NAN, 3.0], "float16", 1),
        ([0.0], [-0.0], "float64", 0),
        ([1, 3], [1, 4], "int64", 1),
    ],
)
def test_a_value_that_is_not_the_one_meant(written: Any, meant: Any, dtype: str, first: int, tmp_path: Path) -> None:
    with pytest.raises(TconvError, match=rf"x\.npy: x: differs .* first at element {first};"):
        compared(written, meant, dtype, tmp_path)


def test_the_first_difference_is_one_that_counts(tmp_path: Path) -> None:
    other = np.array([0x7FF8000000000001, 0x3FF0000000000000], np.uint64).view(np.float64)
    with pytest.raises(TconvError, match="first at element 1;"):
        compared([NAN, 2.0], other, "float64", tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_any_nan_is_as_good_as_another(dtype: str, tmp_path: Path) -> None:
    bits = np.array([0x7FC00001, 0x3F800000, 0xFFC00000, 0x7FC00000], np.uint32)
    written = np.array([0x7FC00000, 0x3F800000, 0x7FC00000, 0xFFC00001], np.uint32)
    compared(written.view(dtype), bits.view(dtype), dtype, tmp_path)


@pytest.mark.parametrize("output", ["made.npz", "made.npy", "made.safetensors", "made.pt"])
def test_what_does_not_read_back_is_the_target(output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", x=np.arange(1000.0))
    written = os.pwrite

    def faulty(fd: int, data: Any, offset: int) -> int:
        return written(fd, bytes(data).replace(np.float32(5).tobytes(), np.float32(6).tobytes()), offset)

    monkeypatch.setattr(os, "pwrite", faulty)
    with pytest.raises(TconvError) as caught:
        convert(Request(("in.npz",), output, sugar=Sugar(to="float32"), verify=True), Silent(), print, lambda _: None)
    assert str(caught.value).startswith(f"{tmp_path}/{output}: x: ")
    assert ".tconv" not in str(caught.value)
    assert str(caught.value).endswith(
        "nothing was put in place; memory or disk may be faulty: try again, and elsewhere"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["in.npz"]
