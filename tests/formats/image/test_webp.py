"""WebP: sizes, alpha and frames known from RIFF chunks, pixels by libwebp."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from PIL import Image

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image.webp import scan
from tconv.tensor import Spec
from tests.formats.conformance import all_values, assert_same, random_bits
from tests.formats.image.made import (
    ImageReading,
    array_of,
    oriented,
    over,
    photo,
    saved,
    spec_of,
    tensor_of,
    written,
)
from tests.formats.image.writing import ImageWriting, write

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo(8, 9)
RGBA = np.dstack([RGB, photo(8, 9, seed=5)[..., :1]])


class TestLossy(ImageReading):
    suffix = ".webp"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "WEBP"), "sample.webp")


class TestLosslessTurned(ImageReading):
    suffix = ".webp"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "WEBP", lossless=True, exif=b"Exif\0\0" + oriented(8)), "sample.webp")


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("exif", [True, False])
def test_alpha(tmp_path: Path, lossless: bool, exif: bool) -> None:
    options = {"exif": b"Exif\0\0" + oriented(1)} if exif else {}
    path = written(tmp_path, saved(RGBA, "WEBP", lossless=lossless, exact=True, **options))
    stored = np.asarray(Image.open(io.BytesIO(path.read_bytes())))
    assert stored.shape == (8, 9, 4)
    assert np.array_equal(array_of(path, channels="keep"), stored)
    assert np.array_equal(array_of(path), over(stored, 255))
    if lossless:
        assert np.array_equal(stored, RGBA)


@pytest.mark.parametrize("size", [(1, 1), (2, 16383), (16383, 1), (300, 257)])
@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0" + oriented(1)}], ids=str)
def test_sizes(size: tuple[int, int], options: dict[str, bool]) -> None:
    header = scan(io.BytesIO(saved(Image.new("RGB", size), "WEBP", **options)), False)
    assert (header.width, header.height, header.alpha) == (*size, False)


def test_animation_with_alpha(tmp_path: Path) -> None:
    pictures = [Image.fromarray(np.dstack([photo(seed=seed), photo(seed=9)[..., :1]])) for seed in range(3)]
    data = saved(pictures[0], "WEBP", save_all=True, append_images=pictures[1:], lossless=True)
    got = array_of(written(tmp_path, data), frames="all", channels="keep")
    stored = Image.open(io.BytesIO(data))
    assert got.shape == (3, 24, 40, 4)
    for i, frame in enumerate(got):
        stored.seek(i)
        assert np.array_equal(frame, np.asarray(stored))


def test_a_bomb_is_refused_before_libwebp_allocates(tmp_path: Path) -> None:
    body = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + b"\xff\xff\xff" + b"\xff\xff\xff"
    path = written(tmp_path, b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body)
    with pytest.raises(TconvError, match="281,474,976,710,656 pixels"):
        spec_of(path)


@pytest.mark.parametrize("data", [b"RIFF\x04\0\0\0WEBP", b"RIFF\x0c\0\0\0WEBPJUNK\0\0\0\0", b"RIFF\xff\0\0\0WEBPVP8 "])
def test_no_image_in_it(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TconvError, match="truncated or corrupt"):
        spec_of(written(tmp_path, data))


class TestWebpWriter(ImageWriting):
    """Grey is written as RGB."""

    suffix = ".webp"
    channels: ClassVar = {"uint8": (3, 4)}

    def reference(self, path: Path) -> dict[str, Array]:
        with Image.open(path) as image:
            return {"x": np.asarray(image)}

    def test_channels_that_it_has_not_are_refused(self) -> None:
        for channels in (2, 5):
            with pytest.raises(TconvError, match=f"has 1, 3 or 4 channels, and this has {channels}"):
                self.writer([Spec("x", DTYPES["uint8"], (4, 5, channels))])

    def test_a_picture_without_channels_has_one(self, tmp_path: Path) -> None:
        x = random_bits("uint8", (5, 6))
        path = self.write(tmp_path / "x.webp", {"x": x})
        np.testing.assert_array_equal(self.reference(path)["x"], np.repeat(x[..., None], 3, axis=2))
        assert_same(all_values(self.again(path, x)), {"x": x[..., None]})


def test_colours_are_kept_where_a_pixel_is_clear(tmp_path: Path) -> None:
    x = random_bits("uint8", (9, 9, 4))
    x[:5, :, 3] = 0
    write(tmp_path / "x.webp", x)
    with Image.open(tmp_path / "x.webp") as image:
        np.testing.assert_array_equal(np.asarray(image), x)


def test_what_is_opaque_all_over_comes_back_with_its_opacity(tmp_path: Path) -> None:
    x = random_bits("uint8", (9, 9, 4))
    x[..., 3] = 255
    writer = write(tmp_path / "x.webp", x)
    got = tensor_of(tmp_path / "x.webp", channels=writer.rereading.channels)
    np.testing.assert_array_equal(got.source.read(0, x.size).reshape(x.shape), x)
