"""BMP: what Pillow makes of it, or a sentence."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tests.formats.image.made import ImageReading, array_of, photo, pillow_rgb, saved, spec_of, written

RGB = photo(8, 9)


class TestBmp(ImageReading):
    suffix = ".bmp"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "BMP"), "sample.bmp")


class TestPalette(ImageReading):
    suffix = ".bmp"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(Image.fromarray(RGB).quantize(8), "BMP"), "sample.bmp")


def rle(data: bytes) -> bytes:
    """4x2 pixels of a palette of two greys, run-length encoded."""
    palette = bytes([10, 10, 10, 0, 200, 200, 200, 0])
    head = struct.pack("<IiiHHIIiiII", 40, 4, 2, 1, 8, 1, len(data), 0, 0, 2, 0)
    return (
        b"BM" + struct.pack("<IHHI", 14 + len(head) + 8 + len(data), 0, 0, 14 + len(head) + 8) + head + palette + data
    )


def test_run_lengths(tmp_path: Path) -> None:
    path = written(tmp_path, rle(b"\x04\x01\0\0\x02\x00\x02\x01\0\x01"))
    assert array_of(path, palette="index").tolist() == [[0, 0, 1, 1], [1, 1, 1, 1]]
    assert array_of(path)[..., 0].tolist() == [[10, 10, 200, 200], [200] * 4]
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(written(tmp_path, rle(b"\x04\x01\0\0\x02\x00")))


def test_alpha(tmp_path: Path) -> None:
    rgba = np.dstack([RGB, RGB[..., :1]])
    masks = struct.pack("<4I", 0xFF, 0xFF00, 0xFF0000, 0xFF000000)
    head = struct.pack("<IiiHHIIiiII", 56, 9, -8, 1, 32, 3, rgba.size, 0, 0, 0, 0) + masks
    path = written(tmp_path, b"BM" + struct.pack("<IHHI", 70 + rgba.size, 0, 0, 70) + head + rgba.tobytes())
    assert np.array_equal(array_of(path, channels="keep"), rgba)
    assert np.array_equal(array_of(path), pillow_rgb(path.read_bytes()))


def test_what_pillow_lacks_is_called_unsupported_and_not_corrupt(tmp_path: Path) -> None:
    data = bytearray(saved(RGB, "BMP"))
    data[28] = 2  # bits a pixel
    with pytest.raises(TconvError, match="cannot be decoded: Unsupported BMP pixel depth"):
        spec_of(written(tmp_path, bytes(data)))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    data = bytearray(saved(RGB, "BMP"))
    data[18:26] = struct.pack("<ii", 100_000, 100_000)
    with pytest.raises(TconvError, match="10,000,000,000 pixels"):
        spec_of(written(tmp_path, bytes(data)))
