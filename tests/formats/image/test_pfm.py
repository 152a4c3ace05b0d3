"""PFM: both byte orders, the last row first, any bits, and what is incomplete."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tests.formats.image.made import ImageReading, array_of, spec_of, written
from tests.shared_data import shared

if TYPE_CHECKING:
    from tconv.ops import Array

GREY = np.array([[1.5, -2.0, 1e30], [0.0, 0.25, -0.0]], np.float32)


def pfm(x: Array, order: str = "<", scale: str = "1.0") -> bytes:
    head = f"P{'F' if x.ndim == 3 else 'f'}\n{x.shape[1]} {x.shape[0]}\n{'-' * (order == '<')}{scale}\n"
    return head.encode() + x[::-1].astype(f"{order}f4").tobytes()


class TestPfm(ImageReading):
    suffix = ".pfm"

    def sample(self, folder: Path) -> Path:
        return written(folder, pfm(GREY), "sample.pfm")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("scale", ["1.0", "1", "2.5", "1e-1"])
def test_grey_is_what_pillow_reads(tmp_path: Path, order: str, scale: str) -> None:
    data = pfm(GREY, order, scale)
    path = written(tmp_path, data)
    assert array_of(path, channels="keep")[..., 0].tobytes() == GREY.tobytes()
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), GREY)


@pytest.mark.parametrize("order", ["<", ">"])
def test_colours_are_what_opencv_reads(tmp_path: Path, order: str) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    data = pfm(x, order)
    path = written(tmp_path, data)
    assert (spec_of(path).dtype.name, spec_of(path).range) == ("float32", None)
    assert np.array_equal(array_of(path), x)
    other = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert other is not None
    assert np.array_equal(array_of(path, channels="bgr"), other)


def test_every_bit_is_kept(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, (5, 7), dtype=np.uint32)
    path = written(tmp_path, pfm(bits.view(np.float32), ">"))
    assert array_of(path, channels="keep").tobytes() == bits.tobytes()


def test_a_real_file() -> None:
    path = shared("images", "python-pillow__Pillow", "hopper.pfm")
    assert np.array_equal(array_of(path)[..., 0], np.asarray(Image.open(io.BytesIO(path.read_bytes()))))


@pytest.mark.parametrize(
    "data",
    [
        b"Pf 2 1 -1.0\n" + bytes(7),
        b"PF 2 1 -1.0\n" + bytes(23),
        b"Pf 2 1 -1.0",
        b"Pf 2 1 0\n" + bytes(8),
        b"Pf 2 1 1e999\n" + bytes(8),
        b"Pf 2 1 x\n" + bytes(8),
        b"Pf 2 1 ...\n" + bytes(8),
        b"Pf -2 1 1.0\n" + bytes(8),
        b"Pf 999999999 999999999 -1.0\n",
    ],
)
def test_what_is_incomplete_or_senseless_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TconvError, match="truncated or corrupt"):
        spec_of(written(tmp_path, data))


def test_no_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="no pixels"):
        spec_of(written(tmp_path, b"Pf 0 1 -1.0\n"))
