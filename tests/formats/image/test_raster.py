"""JPEGs decoded for a resize: exactly what the long way gives, or with ``fast`` what Pillow's draft mode does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tconv.errors import TconvError
from tconv.evaluate import evaluate, raster_of, shrink_of
from tconv.formats.image.reader import read
from tconv.pipeline import steps_from_text
from tconv.tensor import Tensor
from tconv.writer import ReadOptions
from tests.formats.image.made import array_of, oriented, photo, pillow_rgb, saved, written

if TYPE_CHECKING:
    from tconv.ops import Array

BILINEAR = Image.Resampling.BILINEAR
# Neither side is a multiple of 8, and what is to be seen is larger than a pixel of the smallest draft.
LARGE = np.asarray(Image.fromarray(photo(64, 48)).resize((302, 403), Image.Resampling.BICUBIC))


def through(path: Path, chain: str, **options: Any) -> Tensor:
    stream = read(path, "x", ReadOptions(**options))
    for step in steps_from_text([chain]):
        stream = step.apply(stream)
    (tensor,) = stream.tensors
    return tensor


def made(path: Path, chain: str, **options: Any) -> Array:
    tensor = through(path, chain, **options)
    values, _ = evaluate(tensor)
    assert (values.shape, values.dtype) == (tensor.spec.shape, tensor.spec.dtype.numpy)
    return values


def difference(a: Array, b: Array) -> Array:
    found: Array = np.abs(a.astype(int) - b.astype(int))
    return found


@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 60), st.integers(1, 60), st.sampled_from(["rgb", "bgr"]))
def test_without_fast_nothing_changes(
    tmp_path_factory: pytest.TempPathFactory, height: int, width: int, high: int, wide: int, channels: str
) -> None:
    path = written(tmp_path_factory.mktemp("x"), saved(photo(height, width), "JPEG"), "x.jpg")
    with Image.open(path) as image:
        want = np.asarray(image.resize((wide, high), BILINEAR))
    np.testing.assert_array_equal(
        made(path, f"resize({high}x{wide})", channels=channels), want[..., ::-1] if channels == "bgr" else want
    )


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("size", "shrink"), [("100x75", 2), ("50x37", 4), ("50x30", 4), ("25x18", 8), ("3x3", 8)])
def test_fast_is_pillows_draft_and_its_resize_of_the_box(tmp_path: Path, size: str, shrink: int, method: str) -> None:
    path = written(tmp_path, saved(LARGE, "JPEG", quality=90), "x.jpg")
    high, wide = map(int, size.split("x"))
    with Image.open(path) as image:
        assert image.draft("RGB", (302 // shrink, 403 // shrink)) == ("RGB", (0, 0, 302 / shrink, 403 / shrink))
        resampling = Image.Resampling[method.upper()]
        want = np.asarray(image.resize((wide, high), resampling, (0, 0, 302 / shrink, 403 / shrink)))
    chain = f"resize({size}, method={method})"
    assert shrink_of(through(path, chain, fast=True)) == shrink
    np.testing.assert_array_equal(made(path, chain, fast=True), want)
    assert difference(want, made(path, chain)).mean() < 2


@pytest.mark.parametrize(
    ("height", "width", "size", "shrink"),
    [
        (3000, 4000, "224x224", 4),  # 750x1000 is three times as large, 375x500 is not twice as large
        (3584, 4000, "224x224", 8),
        (3583, 4000, "224x224", 4),
        (896, 896, "224x224", 2),
        (895, 4000, "224x224", 1),
        (4000, 895, "224x224", 1),
        (4000, 4000, "2000x10", 1),
        (100, 100, "200x200", 1),
        (63, 4000, "2x2", 1),
        (64, 64, "4x4", 8),
    ],
)
def test_both_sides_stay_twice_as_large_as_they_become(
    tmp_path: Path, height: int, width: int, size: str, shrink: int
) -> None:
    path = written(tmp_path, saved(np.zeros((height, width, 3), np.uint8), "JPEG"), "x.jpg")
    assert shrink_of(through(path, f"resize({size})", fast=True)) == shrink
    assert shrink_of(through(path, f"resize({size})")) == 1


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize(("size", "shrink"), [("80x60", 2), ("50x37", 4), ("20x15", 8)])
def test_what_exif_turns_is_turned_and_lies_where_it_did(tmp_path: Path, value: int, size: str, shrink: int) -> None:
    data = saved(LARGE, "JPEG", quality=95, exif=b"Exif\0\0" + oriented(value))
    path = written(tmp_path, data, "x.jpg")
    chain = f"resize({size})" if value < 5 else f"resize({'x'.join(reversed(size.split('x')))})"
    assert shrink_of(through(path, chain, fast=True)) == shrink
    exact = made(path, chain)
    upright = Image.fromarray(pillow_rgb(data))
    np.testing.assert_array_equal(exact, np.asarray(upright.resize(exact.shape[1::-1], BILINEAR)))
    found = difference(made(path, chain, fast=True), exact)
    assert found.mean() < 1
    assert found.max() < 16  # half a pixel beside its place, edges differ by more


@pytest.mark.parametrize("channels", ["rgb", "bgr", "gray", "rgba", "keep"])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_every_colour_and_every_order_of_channels(tmp_path: Path, mode: str, channels: str) -> None:
    path = written(tmp_path, saved(Image.fromarray(LARGE).convert(mode), "JPEG", quality=95), "x.jpg")
    chain = "resize(50x37)"
    assert shrink_of(through(path, chain, channels=channels, fast=True)) == 4
    exact = made(path, chain, channels=channels)
    decoded = array_of(path, channels=channels)
    for channel in range(decoded.shape[2]):
        want = Image.fromarray(decoded[..., channel]).resize((37, 50), BILINEAR)
        np.testing.assert_array_equal(exact[..., channel], np.asarray(want))
    assert difference(made(path, chain, channels=channels, fast=True), exact).mean() < 1.5


@pytest.mark.parametrize(
    "chain",
    [
        "resize(20x15, method=nearest)",
        "resize(20x15, method=box)",
        "crop(200) | resize(20x15)",
        "scale | resize(20x15)",
        "permute(CHW)",
        "scale",
    ],
)
def test_only_smooth_resizes_that_come_first_are_fast(tmp_path: Path, chain: str) -> None:
    path = written(tmp_path, saved(LARGE, "JPEG"), "x.jpg")
    assert raster_of(through(path, chain, fast=True)) is None
    np.testing.assert_array_equal(made(path, chain, fast=True), made(path, chain))


def test_what_comes_after_the_resize_sees_the_picture_that_it_makes(tmp_path: Path) -> None:
    path = written(tmp_path, saved(LARGE, "JPEG"), "x.jpg")
    small = made(path, "resize(50)", fast=True)
    assert small.shape == (66, 50, 3)
    np.testing.assert_array_equal(made(path, "resize(50) | crop(40)", fast=True), small[13:53, 5:45])


def test_other_kinds_of_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path, saved(LARGE, "PNG"), "x.png")
    assert raster_of(through(path, "resize(20x15)", fast=True)) is None


@pytest.mark.parametrize("fast", [False, True])
def test_damage_is_told_at_every_size(tmp_path: Path, fast: bool) -> None:
    data = saved(LARGE, "JPEG")
    path = written(tmp_path, data[: len(data) // 2], "x.jpg")
    tensor = through(path, "resize(20x15)", fast=fast)
    with pytest.raises(TconvError, match="truncated or corrupt"):
        evaluate(tensor)


@pytest.mark.parametrize("fast", [False, True])
def test_a_file_that_changes_is_told(tmp_path: Path, fast: bool) -> None:
    path = written(tmp_path, saved(LARGE, "JPEG", exif=b"Exif\0\0" + oriented(6)), "x.jpg")
    tensor = through(path, "resize(15x20)", fast=fast)
    path.write_bytes(saved(LARGE[:300], "JPEG"))
    with pytest.raises(TconvError, match="changed while it was read"):
        evaluate(tensor)


def test_a_broken_profile_spoils_no_draft(tmp_path: Path) -> None:
    data = saved(LARGE, "JPEG")
    broken = data[:2] + b"\xff\xe2\x00\x10ICC_PROFILE\0\x05\x09" + data[2:]
    path, plain = written(tmp_path, broken, "x.jpg"), written(tmp_path, data, "y.jpg")
    np.testing.assert_array_equal(made(path, "resize(20x15)", fast=True), made(plain, "resize(20x15)", fast=True))


def test_a_progressive_file_is_drafted_too(tmp_path: Path) -> None:
    data = saved(LARGE, "JPEG", progressive=True)
    path = written(tmp_path, data, "x.jpg")
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (75, 100))
    want = image.resize((37, 50), BILINEAR, (0, 0, 302 / 4, 403 / 4))
    np.testing.assert_array_equal(made(path, "resize(50x37)", fast=True), np.asarray(want))
