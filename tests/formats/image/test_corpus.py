"""Hundreds of real files, made by others to be hard: each is what an independent decoder says, or refused."""

from __future__ import annotations

import io
import re
import zlib
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
    "random-fp16-pred3.tiff": "1 x float16",
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
    bits = int(spec.range[1]).bit_length() if spec.range is not None else 0
    if x.shape[2] == 4:
        x = over(x, (1 << bits) - 1, (1 << bits) - 1)
    if spec.dtype.name == "uint16" and data[:4] in (b"II*\0", b"MM\0*"):
        x = x >> (16 - bits)
    x = np.broadcast_to(x, (*x.shape[:2], 3))
    if data[4:8] == b"ftyp":  # OpenCV does not turn it, and Pillow knows how to
        turned = Image.open(io.BytesIO(data)).getexif().get(274, 1)
        return {1: x, 8: np.rot90(x)}[turned]
    return x


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


def unknown_to_others(path: Path, data: bytes, got: Array) -> Array | None:
    """The files that neither Pillow nor OpenCV reads right, and what is known of them otherwise."""
    if "-miniswhite-" in path.name and got.dtype == np.uint16:  # its twin has black as zero
        twin: Array = array_of(path.with_name(path.name.replace("-miniswhite", "")))
        return twin
    if "-fp16-pred2" in path.name:  # strips of Deflate, differenced along the rows
        strips = [
            zlib.decompressobj().decompress(data[m.start() :]) for m in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data)
        ]
        rows = np.frombuffer(b"".join(strips), "<u2").reshape(got.shape[0], got.shape[1])
        values = np.cumsum(rows, axis=1, dtype=np.uint16).view(np.float16)
        return np.broadcast_to(values[..., None], got.shape)
    if path.name == "tiff_tiled_planar_16bit_RGB.tiff":  # Pillow has the upper halves
        return np.where(got >> 8 == pillow_rgb(data), got, 0)
    if path.name == "multipage_rgb.tif":  # planes as they are
        return np.dstack([plane if plane.tobytes() in data else plane * 0 for plane in np.moveaxis(got, -1, 0)])
    return None


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
        with pytest.raises((OSError, ValueError, SyntaxError, RuntimeError, Image.DecompressionBombError)):
            pillow_rgb(data)
    elif got.dtype == np.uint16 and b"acTL" in data:  # OpenCV's idea of an animation's first frame is another
        assert np.array_equal(got >> 8, pillow_rgb(data))
    else:
        known = unknown_to_others(path, data, got)
        want = expected(data, spec_of(path)) if known is None else known
        assert got.dtype == want.dtype
        assert np.array_equal(got, want, equal_nan=got.dtype.kind == "f")


@pytest.mark.parametrize("path", images(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_real_file_is_what_others_read_or_refused(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", images(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_real_file_under_every_option(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each option gives what follows from the RGB image, which others vouch for; or there is a sentence."""
    rgb = outcome(path)
    if isinstance(rgb, str):
        for options in (
            {"channels": "keep"},
            {"channels": "gray", "exif": False},
            {"channels": "bgr", "alpha": "drop"},
        ):
            assert isinstance(outcome(path, **options), str) or path.name in REFUSED
    else:
        check_channels(path, rgb)
        check_turns(path, rgb)
    for channels in ("keep", "rgba"):
        every = outcome(path, channels=channels, frames="all")
        assert isinstance(every, str) or every.shape == spec_of(path, channels=channels, frames="all").shape
    for frames in ("first", "all"):
        index = outcome(path, palette="index", frames=frames)
        if not isinstance(index, str):
            assert index.dtype == np.uint8
            assert index.ndim in (2, 3)
    assert capfd.readouterr() == ("", "")


def check_channels(path: Path, rgb: Array) -> None:
    assert np.array_equal(array_of(path, channels="bgr"), rgb[..., ::-1], equal_nan=rgb.dtype.kind == "f")
    rgba, kept, grey = (array_of(path, channels=channels) for channels in ("rgba", "keep", "gray"))
    assert (rgba.shape[2], grey.shape[2], grey.shape[:2]) == (4, 1, rgb.shape[:2])
    assert kept.shape == spec_of(path, channels="keep").shape
    if rgb.dtype == np.uint8:
        assert np.array_equal(over(rgba, 255), rgb)
        assert np.array_equal(over(rgba, 0), array_of(path, alpha="black"))
        assert np.array_equal(grey[..., 0], np.asarray(Image.fromarray(rgb).convert("L")))
        assert np.array_equal(rgba[..., :3], array_of(path, alpha="drop"))


def check_turns(path: Path, rgb: Array) -> None:
    """Without its orientation the image is one of the eight."""
    plain = array_of(path, exif=False)
    several = [plain, plain[::-1], plain[:, ::-1], plain[::-1, ::-1]]
    turned = [*several, *(x.swapaxes(0, 1) for x in several)]
    assert any(np.array_equal(x, rgb, equal_nan=x.dtype.kind == "f") for x in turned)
