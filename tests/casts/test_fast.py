"""float32 ↔ float16 through OpenCV: bit for bit what NumPy and torch give, and counted as counting one by one does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tconv.casts import Lost, cast, fast
from tconv.dtypes import dtype

if TYPE_CHECKING:
    from tconv.ops import Array

ALL_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def half(x: Array) -> Array:
    out = np.empty(x.size, np.float16)
    fast.to_half(x, out)
    return out


def same(a: Array, b: Array) -> None:
    """Equal bits, or both NaN."""
    word = f"u{a.dtype.itemsize}"
    differ = a.view(word) != b.view(word)
    assert np.isnan(a[differ]).all()
    assert np.isnan(b[differ]).all()


def with_numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_opencv", lambda nbytes: None)


@pytest.mark.parametrize("library", ["numpy", "opencv"])
def test_every_half_comes_back_from_float32(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "numpy":
        with_numpy_alone(monkeypatch)
    single = np.empty(ALL_HALVES.size, np.float32)
    fast.from_half(ALL_HALVES, single)
    same(single, ALL_HALVES.astype(np.float32))
    same(half(single), ALL_HALVES)


@pytest.mark.parametrize("library", ["numpy", "opencv"])
def test_every_midpoint_between_halves_and_its_neighbours(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="the answers are torch's")
    if library == "numpy":
        with_numpy_alone(monkeypatch)
    with np.errstate(invalid="ignore"):  # some halves are signalling NaNs
        wide = ALL_HALVES.astype(np.float64)
        middle = (wide[:-1] + wide[1:]) / 2
    x = middle[np.isfinite(middle)].astype(np.float32)
    bits = x.view(np.uint32)
    x = np.concatenate(
        [x, (bits + 1).view(np.float32), (bits - 1).view(np.float32), np.array([65520, 65519.996], np.float32)]
    )
    with np.errstate(over="ignore"):
        same(half(x), torch.from_numpy(x).half().numpy())


@pytest.mark.slow
def test_every_float32_and_the_account_of_all() -> None:
    """All 2**32 values: the halves that torch gives, and the number of those that overflow and vanish."""
    torch = pytest.importorskip("torch", reason="the answers are torch's")
    lost, block = Lost(), 1 << 23
    out = np.empty(block, np.float16)
    with np.errstate(all="ignore"):
        for start in range(0, 1 << 32, block):
            x = np.arange(start, start + block, dtype=np.uint32).view(np.float32)
            _, more = cast(x, dtype("float16"), out, src=dtype("float32"), on_overflow="inf")
            lost += more
            same(out, torch.from_numpy(x).half().numpy())
    # 65520 is 0x477FF000 and rounds to 65536; 2**-25 is 0x33000000 and rounds to 0, a tie.
    assert lost.overflow == 2 * (0x7F800000 - 0x477FF000)
    assert lost.underflow == 2 * 0x33000000
    assert (lost.count, lost.infinite, lost.nan) == (1 << 32, 0, 0)
    assert lost.highest == -(lost.lowest or 0) == float(np.finfo(np.float32).max)
    assert (lost.minimum, lost.maximum) == (lost.lowest, lost.highest)


def test_any_size() -> None:
    x = np.random.default_rng(1).standard_normal(300_001).astype(np.float32)
    for size in (0, 1, 2, 4, 1023, 1025, x.size):
        same(half(x[:size]), x[:size].astype(np.float16))


def test_a_read_only_input_of_odd_address() -> None:
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    shifted = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    made, _ = cast(shifted, dtype("float16"), src=dtype("float32"))
    same(made, x.astype(np.float16))


def test_a_destination_that_opencv_does_not_like_is_filled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(-9, 9, 1000, dtype=np.float32)
    function = "convertFp16" if hasattr(cv2, "convertFp16") else "subtract"
    real = getattr(cv2, function)
    monkeypatch.setattr(cv2, function, lambda *args, **more: real(*args, **more).copy())
    same(half(x), x.astype(np.float16))
    back = np.empty(x.size, np.float32)
    fast.from_half(x.astype(np.float16), back)
    same(back, x.astype(np.float16).astype(np.float32))


VANISHING = [0.0, -0.0, 1e-8, -1e-8, 2.0**-25, -(2.0**-25), 3.1e-8, 1.0, -7.5, float("nan"), float("inf")]
tiny = st.sampled_from([float(np.float32(value)) for value in VANISHING])


@given(arrays.arrays(np.float32, st.integers(1, 200), elements=tiny), st.integers(1, 3000), st.floats(0, 1))
def test_zeros_are_counted_exactly(few: Array, repeats: int, share: float) -> None:
    """A few vanishing values in many others, and many of them: by the definition, value by value."""
    x = np.ones(few.size * repeats, np.float32)
    start = int(share * (x.size - few.size))
    x[start : start + few.size] = few
    for values in (x, np.tile(few, repeats)):
        made, lost = cast(values, dtype("float16"), src=dtype("float32"))
        assert lost.underflow == int(np.count_nonzero((values != 0) & (made.view(np.uint16) << 1 == 0)))


def test_opencv_is_imported_when_there_is_enough_to_convert() -> None:
    code = """
import sys
import numpy as np
from tconv.casts import cast
from tconv.dtypes import dtype
half, single = dtype("float16"), dtype("float32")
cast(np.ones(100_000, np.float32), half, src=single)
assert "cv2" not in sys.modules
for _ in range(30):
    cast(np.ones(100_000, np.float32), half, src=single)
assert "cv2" in sys.modules
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
