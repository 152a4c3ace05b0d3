"""Resampling is Pillow's, bit for bit in 8 bits and mode F; beyond, torch's antialiased one is the witness."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from tconv.steps import resample

METHODS = ("box", "bilinear", "bicubic", "lanczos")
Array = np.ndarray[Any, np.dtype[Any]]

sides = st.integers(1, 40)
methods = st.sampled_from(METHODS)
seeds = st.integers(0, 2**32 - 1)


def pillow(x: Array, mode: str, height: int, width: int, method: str) -> Array:
    image = Image.fromarray(np.ascontiguousarray(x), mode)
    return np.asarray(image.resize((width, height), Image.Resampling[method.upper()]))


def picture(
    x: Array, height: int, width: int, method: str, alpha: bool = False, known: tuple[float, float] | None = None
) -> Array:
    before = x.copy()
    y = resample.picture(x, height, width, method, alpha, known)
    np.testing.assert_array_equal(x, before)
    assert (y.shape, y.dtype) == ((height, width, *x.shape[2:]), x.dtype)
    return y


@given(sides, sides, sides, sides, methods, st.sampled_from([0, 1, 2, 3, 4, 5]), seeds)
def test_eight_bits_are_pillows_in_every_channel(
    height: int, width: int, high: int, wide: int, method: str, channels: int, seed: int
) -> None:
    shape = (height, width, channels) if channels else (height, width)
    x = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    y = picture(x, high, wide, method, known=(0, 255))
    for channel in range(channels):
        np.testing.assert_array_equal(y[..., channel], pillow(x[..., channel], "L", high, wide, method))
    if channels == 0:
        np.testing.assert_array_equal(y, pillow(x, "L", high, wide, method))
    if channels == 3:
        np.testing.assert_array_equal(y, pillow(x, "RGB", high, wide, method))


@given(sides, sides, sides, sides, methods, st.booleans(), seeds)
def test_rgb_by_way_of_opencv_is_pillows(
    height: int, width: int, high: int, wide: int, method: str, padded: bool, seed: int
) -> None:
    x = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    y = resample.rgb(x if padded else x[..., :3].copy(), high, wide, method, None)
    np.testing.assert_array_equal(y, pillow(x[..., :3], "RGB", high, wide, method))


@given(sides, sides, sides, sides, methods, st.booleans(), st.lists(st.floats(0, 1), min_size=4, max_size=4), seeds)
def test_rgb_of_a_part_is_pillows(
    height: int, width: int, high: int, wide: int, method: str, padded: bool, ends: list[float], seed: int
) -> None:
    top, bottom = sorted(round(end * height, 2) for end in ends[:2])
    left, right = sorted(round(end * width, 2) for end in ends[2:])
    assume(top < bottom and left < right)
    x = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    y = resample.rgb(x if padded else x[..., :3].copy(), high, wide, method, (top, left, bottom, right))
    image = Image.fromarray(np.ascontiguousarray(x[..., :3]))
    want = image.resize((wide, high), Image.Resampling[method.upper()], (left, top, right, bottom))
    np.testing.assert_array_equal(y, np.asarray(want))


def test_a_resized_picture_is_not_overwritten_by_the_next() -> None:
    x = np.random.default_rng(0).integers(0, 256, (60, 80, 4), dtype=np.uint8)
    first = resample.rgb(x, 30, 40, "bilinear", None)
    kept = first.copy()
    resample.rgb(255 - x, 30, 40, "bilinear", None)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(20, 30), (150, 200)])
def test_a_part_of_a_picture_may_become_the_picture(shape: tuple[int, int], channels: int) -> None:
    x = np.random.default_rng(0).integers(0, 256, (*shape, channels), dtype=np.uint8)
    top, left, bottom, right = box = (1.5, 0.25, shape[0] - 0.5, shape[1] - 2.75)
    y = resample.picture(x, 9, 11, "bilinear", False, (0, 255), box)
    for channel in range(channels):
        image = Image.fromarray(np.ascontiguousarray(x[..., channel]))
        want = np.asarray(image.resize((11, 9), Image.Resampling.BILINEAR, (left, top, right, bottom)))
        np.testing.assert_array_equal(y[..., channel], want)


@pytest.mark.parametrize("method", METHODS)
def test_pictures_of_a_usual_size_are_pillows(method: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (333, 500, 3), dtype=np.uint8)
    for high, wide in ((224, 224), (500, 333), (333, 700)):
        np.testing.assert_array_equal(picture(x, high, wide, method), pillow(x, "RGB", high, wide, method))


@given(sides, sides, sides, sides, methods, st.sampled_from([(2, "LA"), (4, "RGBA")]), seeds)
def test_eight_bits_with_opacity_are_pillows(
    height: int, width: int, high: int, wide: int, method: str, kind: tuple[int, str], seed: int
) -> None:
    channels, mode = kind
    x = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    np.testing.assert_array_equal(picture(x, high, wide, method, alpha=True), pillow(x, mode, high, wide, method))


@given(sides, sides, sides, sides, methods, seeds)
def test_float32_is_pillows_mode_f(height: int, width: int, high: int, wide: int, method: str, seed: int) -> None:
    x = np.random.default_rng(seed).normal(0, 1000, (height, width, 2)).astype(np.float32)
    y = picture(x, high, wide, method)
    for channel in range(2):
        np.testing.assert_array_equal(y[..., channel], pillow(x[..., channel], "F", high, wide, method))
    np.testing.assert_array_equal(picture(x[..., 0], high, wide, method), y[..., 0])


@given(sides, sides, sides, sides, methods, st.sampled_from(["int8", "int16", "uint16", "float16", "bfloat16"]), seeds)
def test_what_float32_holds_exactly_goes_through_mode_f(
    height: int, width: int, high: int, wide: int, method: str, name: str, seed: int
) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.random.default_rng(seed).integers(-30000, 30000, (height, width)).astype(dtype)
    want = pillow(x.astype(np.float32), "F", high, wide, method)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        want = np.clip(np.rint(want), limits.min, limits.max)
    np.testing.assert_array_equal(picture(x, high, wide, method), want.astype(dtype))


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("high", "wide"), [(11, 17), (64, 50), (37, 5), (1, 1), (90, 90)])
def test_float64_is_torchs_antialiased_interpolation(method: str, high: int, wide: int) -> None:
    x = np.random.default_rng(7).normal(size=(37, 53, 2))
    planes = torch.from_numpy(x.transpose(2, 0, 1).copy())[None]
    want = torch.nn.functional.interpolate(planes, (high, wide), mode=method, antialias=True, align_corners=False)
    np.testing.assert_allclose(picture(x, high, wide, method), want[0].numpy().transpose(1, 2, 0), rtol=0, atol=1e-14)


@given(sides, sides, sides, sides, methods, seeds)
def test_float64_is_mode_f_but_for_its_rounding(
    height: int, width: int, high: int, wide: int, method: str, seed: int
) -> None:
    x = np.random.default_rng(seed).random((height, width), np.float32)
    want = pillow(x, "F", high, wide, method)
    np.testing.assert_allclose(picture(x.astype(np.float64), high, wide, method), want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("method", METHODS)
def test_wide_integers_keep_what_float32_would_round(dtype: Any, method: str) -> None:
    x = np.full((5, 7), 2**31 - 129, dtype)  # float32 makes 2**31 of it, which int32 has not
    np.testing.assert_array_equal(picture(x, 9, 3, method), np.full((9, 3), 2**31 - 129, dtype))


def test_integers_are_rounded_half_to_even() -> None:
    x = np.array([[0, 1], [2, 3], [4, 5]], np.uint16)
    np.testing.assert_array_equal(picture(x, 3, 1, "box"), [[0], [2], [4]])  # 0.5, 2.5, 4.5


@pytest.mark.parametrize("method", ["bicubic", "lanczos"])
def test_overshoot_is_cut_off_at_the_known_range(method: str) -> None:
    edge = np.zeros((8, 8, 1), np.float32)
    edge[:, 4:] = 1
    raw = picture(edge, 16, 16, method)
    assert raw.min() < 0
    assert raw.max() > 1
    for dtype in (np.float16, np.float32, np.float64):
        cut = picture(edge.astype(dtype), 16, 16, method, known=(0.0, 1.0))
        np.testing.assert_allclose(cut, raw.clip(0, 1), atol=1e-3)
        assert (cut.min(), cut.max()) == (0, 1)
    for name, top in (("uint8", 200), ("uint16", 4095), ("int32", 4095)):
        levels = (edge * top).astype(name)
        cut = picture(levels, 16, 16, method, known=(0, top))
        assert (cut.min(), cut.max()) == (0, top)
        assert picture(levels, 16, 16, method).max() > top
    full = picture((edge * 65535).astype(np.uint16), 16, 16, method, known=(0, 65535))
    assert (full.min(), full.max()) == (0, 65535)


def test_values_outside_the_known_range_are_not_hidden() -> None:
    x = np.array([[0, 1, 3, np.nan]], np.float32)
    np.testing.assert_array_equal(picture(x, 2, 4, "bicubic", known=(0.0, 1.0)), [[0, 1, 3, np.nan]] * 2)
    np.testing.assert_array_equal(picture(x[:, :1] * np.nan, 2, 1, "box", known=(0.0, 1.0)), [[np.nan]] * 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_infinities_stay(dtype: Any) -> None:
    x = np.array([[1, np.inf], [1, -np.inf]], dtype)
    np.testing.assert_array_equal(picture(x, 4, 2, "box"), np.repeat(x, 2, axis=0))


def test_an_overshoot_of_the_largest_float16_is_no_infinity() -> None:
    x = np.zeros((1, 8), np.float16)
    x[:, 4:] = 65504
    assert picture(x, 1, 16, "lanczos").max() == 65504


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_the_invisible_does_not_bleed_beyond_eight_bits_either(dtype: Any) -> None:
    x = np.zeros((4, 4, 4), dtype)
    x[:, ::2] = [100, 200, 300, 1000]  # visible columns between invisible ones of another colour
    x[:, 1::2] = [900, 900, 900, 0]
    np.testing.assert_array_equal(picture(x, 2, 2, "box", alpha=True), np.full((2, 2, 4), [100, 200, 300, 500]))
    np.testing.assert_array_equal(picture(x[:, 1::2], 2, 2, "box", alpha=True)[..., :3], np.zeros((2, 2, 3)))


@settings(max_examples=50)
@given(
    sides, sides, sides, sides,
    st.sampled_from(["bool", "uint8", "int64", "uint64", "float64", "complex128", "bfloat16", "float8_e4m3fn", "int4"]),
)  # fmt: skip
def test_nearest_takes_pillows_pixels_of_any_dtype(height: int, width: int, high: int, wide: int, name: str) -> None:
    where = np.arange(height * width, dtype=np.int32).reshape(height, width)
    chosen = pillow(where, "I", high, wide, "nearest")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.random.default_rng(0).integers(0, 2, (2, height, width, 3)).astype(dtype)
    y = resample.nearest(x, 1, high, wide)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.astype(np.complex128), x.reshape(2, -1, 3)[:, chosen].astype(np.complex128))
