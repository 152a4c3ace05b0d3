"""AVIF: 8 bits as Pillow reads them, 10 and 12 bits kept, turned by its own boxes, frames, and damage."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from PIL import Image, ImageOps

from tconv.errors import TconvError
from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
from tests.formats.image.made import (
    AVIF,
    P3,
    ImageReading,
    array_of,
    curve,
    oriented,
    over,
    photo,
    profile,
    saved,
    spec_of,
    written,
)
from tests.shared_data import shared

if TYPE_CHECKING:
    from tconv.ops import Array

pytestmark = [
    pytest.mark.skipif(not AVIF, reason="this Pillow has no AVIF"),
    pytest.mark.filterwarnings("ignore::UserWarning:PIL"),
]
RGB = photo(16, 24)


def deep(x: Array, bits: int) -> bytes:
    """Without loss, by OpenCV."""
    options = [cv2.IMWRITE_AVIF_DEPTH, bits, cv2.IMWRITE_AVIF_QUALITY, 100]
    done, data = cv2.imencode(".avif", x[..., [2, 1, 0, 3][: x.shape[2]]] if x.shape[2] > 1 else x, options)
    assert done
    return bytes(data.tobytes())


class TestAvif(ImageReading):
    suffix = ".avif"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "AVIF", exif=b"Exif\0\0" + oriented(6)), "sample.avif")


class TestSequence(ImageReading):
    suffix = ".avif"

    def sample(self, folder: Path) -> Path:
        pictures = [Image.fromarray(photo(8, 8, seed)) for seed in range(2)]
        data = saved(pictures[0], "AVIF", save_all=True, append_images=pictures[1:])
        return written(folder, data, "sample.avif")


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_modes_of_pillow(tmp_path: Path, mode: str) -> None:
    data = saved(Image.fromarray(np.dstack([RGB, RGB[..., :1]])).convert(mode), "AVIF")
    path, stored = written(tmp_path, data), Image.open(io.BytesIO(data))
    assert np.array_equal(array_of(path, channels="keep"), np.asarray(stored).reshape(16, 24, -1))
    assert np.array_equal(array_of(path, channels="rgba"), np.asarray(stored.convert("RGBA")))


@pytest.mark.parametrize("bits", [10, 12])
@pytest.mark.parametrize("samples", [1, 3, 4])
def test_deep_samples_are_kept(tmp_path: Path, bits: int, samples: int) -> None:
    x = np.random.default_rng(0).integers(0, 1 << bits, (16, 24, samples), dtype=np.uint16)
    path = written(tmp_path, deep(x, bits))
    spec = spec_of(path, channels="keep")
    assert (spec.dtype.name, spec.range, spec.shape) == ("uint16", (0, (1 << bits) - 1), (16, 24, samples))
    assert np.array_equal(array_of(path, channels="keep"), x)


def test_deep_alpha_is_blended_by_its_own_white(tmp_path: Path) -> None:
    x = np.zeros((16, 16, 4), np.uint16)
    x[..., 3], x[0, 0] = 1023, (100, 200, 300, 0)
    got = array_of(written(tmp_path, deep(x, 10)))
    assert got[0, 0].tolist() == [1023, 1023, 1023]
    assert got[1, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", range(1, 9))
def test_orientations_become_boxes_and_are_applied(tmp_path: Path, value: int) -> None:
    data = saved(RGB, "AVIF", exif=b"Exif\0\0" + oriented(value))
    path = written(tmp_path, data)
    stored = Image.open(io.BytesIO(data))
    assert np.array_equal(array_of(path), np.asarray(ImageOps.exif_transpose(stored)))
    assert np.array_equal(array_of(path, exif=False), np.asarray(stored))


@pytest.mark.parametrize("name", ["rot1mir0", "rot1mir1", "hopper", "exif", "icc_profile_none"])
def test_public_files(name: str) -> None:
    path = shared("images", "python-pillow__Pillow", "avif", f"{name}.avif")
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(path.read_bytes())))
    assert np.array_equal(array_of(path), np.asarray(upright))


def test_all_frames(tmp_path: Path) -> None:
    path = shared("images", "python-pillow__Pillow", "avif", "star.avifs")
    stored = Image.open(io.BytesIO(path.read_bytes()))
    assert read(path, "x", ReadOptions()).notes == (f"{path}: the first of 5 frames; --frames all reads all",)
    got = array_of(path, frames="all", channels="rgba")
    for i in range(5):
        stored.seek(i)
        assert np.array_equal(got[i], np.asarray(stored.convert("RGBA")))


def test_all_deep_frames() -> None:
    """The frames of a film of which a sound track is the first are tested by another public file."""
    path = shared("images", "AOMediaCodec__libavif", "colors-animated-12bpc-keyframes-0-2-3.avif")
    _, frames = cv2.imdecodemulti(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
    got = array_of(path, frames="all", channels="keep")
    assert (got.shape, spec_of(path).range) == ((5, 64, 64, 4), (0, 4095))
    assert np.array_equal(got, np.stack(frames)[..., [2, 1, 0, 3]])


def test_a_grid_is_one_image() -> None:
    path = shared("images", "AOMediaCodec__libavif", "color_grid_alpha_nogrid.avif")
    stored = np.asarray(Image.open(io.BytesIO(path.read_bytes())))
    assert np.array_equal(array_of(path, channels="keep"), stored)
    assert np.array_equal(array_of(path), over(stored, 255))


def test_a_profile_is_named_and_left_alone(tmp_path: Path) -> None:
    data = saved(RGB, "AVIF", icc_profile=profile(P3, curve(2.2), "Display P3"))
    path = written(tmp_path, data)
    assert read(path, "x", ReadOptions()).notes == (f"{path}: its ICC profile (Display P3) is not applied",)
    assert np.array_equal(array_of(path), np.asarray(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize("data", [saved(photo(64, 64), "AVIF") if AVIF else b"", b"deep"])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, data: bytes) -> None:
    if data == b"deep":
        data = deep(photo(64, 64).astype(np.uint16) * 4, 10)
    assert array_of(written(tmp_path, data)).shape == (64, 64, 3)
    for cut in range(32, len(data), max(1, len(data) // 40)):
        with pytest.raises(TconvError, match="truncated or corrupt"):
            array_of(written(tmp_path, data[:cut]))


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
def test_heif_of_another_coding_is_named(tmp_path: Path, brand: bytes) -> None:
    data = b"\0\0\0\x18ftyp" + brand + bytes(4) + b"mif1heic" + bytes(100)
    with pytest.raises(TconvError, match="HEIC") as caught:
        spec_of(written(tmp_path, data))
    assert caught.value.remedy == "save it as JPEG or PNG"


def test_a_pillow_without_avif_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, saved(RGB, "AVIF"))
    monkeypatch.delattr("PIL._avif", raising=False)
    monkeypatch.setitem(sys.modules, "PIL._avif", None)
    with pytest.raises(TconvError, match="cannot decode") as caught:
        spec_of(path)
    assert "Pillow 11.3" in caught.value.remedy
