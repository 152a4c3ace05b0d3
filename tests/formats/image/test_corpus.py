"""Hundreds of real files, made by others to be hard: each is what an independent decoder says, or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest
from PIL import Image

from tconv import registry
from tconv.errors import TconvError
from tests.formats.image.made import array_of, over, pillow_rgb, spec_of
from tests.shared_data import SHARED

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Spec

ROOT = SHARED / "data" / "images"
MAGIC = [row.magic for row in registry.FORMATS.values() if row.group == "image"]

# What Pillow reads and tconv does not, and why.
REFUSED = {
    "peacock.s-weird.jpeg": "unusual chroma sampling",
    "peacock.s-very-weird.jpeg": "unusual chroma sampling",
    "junk_jpeg_header.jpg": "between the segments",
    "truncated_app14.jpg": "between the segments",
    "invalid_palette_index.png": "uses colour 255 of a palette of 17",
    "png-truncated.png": "ends within its chunk",
    "pgm.pgm": "without white space behind it",
    "ppm.ppm": "without white space behind it",
    "pgmb.pgm": "a value beyond the 1 that it states",
    "tiff.tif": "ends within a directory",
    "hopper.Lab.tif": "CIELAB",
    "lab.tif": "CIELAB",
    "tiff_tiled_planar_16bit_RGB.tiff": "a planar TIFF of RGB with 3 x uint16",
    "multipage_rgb.tif": "a planar TIFF of RGB with 3 x float64",
    "seq-4c-16b-cmyk-c6e52592.tiff": "CMYK with 4 x uint16",
    "tiff_strip_cmyk_16l_jpeg.tif": "CMYK with 4 x uint16",
}

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning:PIL")]


def images() -> list[Path]:
    """The files whose content is one of the kinds that tconv reads."""
    found = []
    for path in sorted(ROOT.rglob("*")) if ROOT.exists() else ():
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(64)
            if any(re.match(magic, head, re.DOTALL) for magic in MAGIC):
                found.append(path)
    return found


def by_opencv(data: bytes, spec: Spec) -> Array:
    """Deep samples: OpenCV's, shifted down where it shifts few bits up, over white."""
    x: Array | None = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if x is None:  # it has no Zstandard
        return pillow_rgb(data).astype(spec.dtype.numpy)
    x = x[..., None] if x.ndim == 2 else x[..., [2, 1, 0, *range(3, x.shape[2])]]
    if x.shape[2] == 4:
        x = over(x, 65535)
    if spec.dtype.name == "uint16" and spec.range is not None and data[:4] != b"\x89PNG":
        x = x >> (16 - int(spec.range[1]).bit_length())
    return np.broadcast_to(x, (*x.shape[:2], 3))


def expected(data: bytes, spec: Spec) -> Array:
    if spec.dtype.name == "int8":
        return pillow_rgb(data).view(np.int8)
    if spec.dtype.name == "uint8":
        try:
            return pillow_rgb(data)
        except SyntaxError:  # Pillow gives up over chunks that make no pixel
            return by_opencv(data, spec)
    x = by_opencv(data, spec)
    if data[:4] == b"\x89PNG" and b"tRNS" in data and data[25] == 0:  # OpenCV passes over a transparent grey
        key = int.from_bytes(data[data.index(b"tRNS") + 4 :][:2], "big")
        x = np.where(x == key, np.uint16(65535), x)
    return x


def outcome(path: Path, **options: Any) -> Array | str:
    """The image, or why it is refused; anything else than these is an error, and so is a line printed."""
    try:
        return array_of(path, **options)
    except TconvError as refusal:
        place, reason = refusal.file, str(refusal)
    assert place == str(path)
    return reason


def check(path: Path) -> None:
    data, got = path.read_bytes(), outcome(path)
    if path.name in REFUSED:
        assert isinstance(got, str)
        assert REFUSED[path.name] in got
    elif isinstance(got, str):
        with pytest.raises((OSError, ValueError, SyntaxError, Image.DecompressionBombError)):
            pillow_rgb(data)
    elif got.dtype == np.uint16 and b"acTL" in data:  # OpenCV's idea of an animation's first frame is another
        assert np.array_equal(got >> 8, pillow_rgb(data))
    else:
        want = expected(data, spec_of(path))
        assert got.dtype == want.dtype
        assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f")


@pytest.mark.parametrize("path", images(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_real_file_is_what_others_read_or_refused(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", images(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_real_file_under_every_option(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The decoded array is as the header promised, whatever is asked for, or there is a sentence."""
    refused = isinstance(outcome(path), str)
    for options in ({"channels": "keep"}, {"channels": "gray", "exif": False}, {"channels": "bgr", "alpha": "drop"}):
        assert isinstance(outcome(path, **options), str) == refused or path.name in REFUSED
    for channels in ("keep", "rgba"):
        every = outcome(path, channels=channels, frames="all")
        assert isinstance(every, str) or every.shape == spec_of(path, channels=channels, frames="all").shape
    for frames in ("first", "all"):
        index = outcome(path, palette="index", frames=frames)
        if not isinstance(index, str):
            assert index.dtype == np.uint8
            assert index.ndim in (2, 3)
    assert capfd.readouterr() == ("", "")
