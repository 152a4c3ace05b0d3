"""JPEG 2000: every depth and colour, boxes or none, and every way to be cut off."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest
from PIL import Image, features

from tconv.errors import TconvError
from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
from tests.formats.image.made import P3, ImageReading, array_of, curve, over, photo, profile, saved, spec_of, written
from tests.shared_data import shared

if TYPE_CHECKING:
    from tconv.ops import Array

pytestmark = pytest.mark.skipif(not features.check("jpg_2000"), reason="this Pillow has no JPEG 2000")
RGB = photo(40, 48)


def deep(x: Array) -> bytes:
    """Without loss, by OpenCV."""
    picture = x[..., [2, 1, 0, 3][: x.shape[2]]] if x.shape[2] > 1 else x
    done, data = cv2.imencode(".jp2", picture, [cv2.IMWRITE_JPEG2000_COMPRESSION_X1000, 1000])
    assert done
    return bytes(data.tobytes())


def with_sizes(data: bytes, component: int, change: bytes) -> bytes:
    """The depth, and the steps across and down, of one component replaced."""
    at = data.index(b"\xff\x4f\xff\x51") + 4 + 38 + 3 * component
    return data[:at] + change + data[at + 3 :]


def boxed(stream: bytes, *inner: tuple[bytes, bytes], samples: int = 1) -> bytes:
    def box(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I4s", 8 + len(body), kind) + body

    height, width = struct.unpack_from(">II", stream, 12), struct.unpack_from(">II", stream, 8)
    head = box(b"ihdr", struct.pack(">IIHBBBB", height[0], width[0], samples, 7, 7, 0, 0))
    header = box(b"jp2h", head + b"".join(box(*one) for one in inner))
    start = b"\0\0\0\x0cjP  \r\n\x87\n" + box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + header + box(b"jp2c", stream)


class TestBoxes(ImageReading):
    suffix = ".jp2"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(photo(8, 9), "JPEG2000"), "sample.jp2")


class TestStream(ImageReading):
    suffix = ".j2k"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(photo(8, 9), "JPEG2000", no_jp2=True), "sample.j2k")


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "CMYK", "YCbCr"])
@pytest.mark.parametrize("no_jp2", [True, False])
def test_modes_of_pillow(tmp_path: Path, mode: str, no_jp2: bool) -> None:
    image = Image.fromarray(np.dstack([RGB, RGB[..., :1]]))
    image = image.convert("RGB").convert(mode) if mode in ("CMYK", "YCbCr") else image.convert(mode)
    data = saved(image, "JPEG2000", no_jp2=no_jp2)
    stored = Image.open(io.BytesIO(data))
    path = written(tmp_path, data)
    assert np.array_equal(array_of(path, channels="keep"), np.asarray(stored).reshape(40, 48, -1))
    blended = stored.mode in ("LA", "RGBA")  # which four components are unless a box says that they are inks
    rgb = over(np.asarray(stored.convert("RGBA")), 255) if blended else np.asarray(stored.convert("RGB"))
    assert np.array_equal(array_of(path), rgb)


@pytest.mark.parametrize("samples", [1, 3, 4])
def test_16_bits_are_kept(tmp_path: Path, samples: int) -> None:
    x = np.random.default_rng(0).integers(0, 65536, (40, 48, samples), dtype=np.uint16)
    path = written(tmp_path, deep(x))
    assert (spec_of(path).dtype.name, spec_of(path).range) == ("uint16", (0, 65535))
    assert np.array_equal(array_of(path, channels="keep"), x)
    assert np.array_equal(array_of(path), np.broadcast_to(over(x, 65535) if samples == 4 else x, (40, 48, 3)))


@pytest.mark.parametrize(
    ("file", "bits"), [("9bit.j2k", 9), ("16bit.cropped.jp2", 16)],
)  # fmt: skip
def test_public_files_of_many_bits(file: str, bits: int) -> None:
    path = shared("images", "python-pillow__Pillow", file)
    stored = np.asarray(Image.open(io.BytesIO(path.read_bytes())))
    assert spec_of(path).range == (0, (1 << bits) - 1)
    assert np.array_equal(array_of(path, channels="keep")[..., 0], stored >> (16 - bits))  # Pillow shifts them up


@pytest.mark.parametrize("bits", [1, 2, 4, 7])
def test_few_bits_are_scaled_to_eight(tmp_path: Path, bits: int) -> None:
    """A file of 8 bits that only uses the lowest, made one of so few by its header."""
    top = (1 << bits) - 1
    levels = (np.arange(40 * 48).reshape(40, 48) % (top + 1)).astype(np.uint8)
    # What is coded is the difference from the middle, which moves with the depth.
    stored = levels + np.uint8(128 - (top + 1) // 2)
    data = saved(stored, "JPEG2000", no_jp2=True)
    path = written(tmp_path, with_sizes(data, 0, bytes([bits - 1, 1, 1])))
    want = [round(255 * v / top) for v in levels.reshape(-1).tolist()]
    assert array_of(path, channels="keep").reshape(-1).tolist() == want


@pytest.mark.parametrize("options", [{"tile_size": (16, 16)}, {"num_resolutions": 1}, {"irreversible": True}])
def test_tiles_and_codings(tmp_path: Path, options: dict[str, Any]) -> None:
    data = saved(RGB, "JPEG2000", **options)
    assert np.array_equal(array_of(written(tmp_path, data)), np.asarray(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize("no_jp2", [True, False])
@pytest.mark.parametrize("options", [{}, {"tile_size": (16, 16)}])
def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path, no_jp2: bool, options: dict[str, Any]) -> None:
    data = saved(RGB, "JPEG2000", no_jp2=no_jp2, **options)
    assert array_of(written(tmp_path, data)).shape == (40, 48, 3)
    for cut in (*range(20, len(data), len(data) // 40), len(data) - 1):
        with pytest.raises(TconvError, match="truncated or corrupt"):
            spec_of(written(tmp_path, data[:cut]))


def test_a_missing_tile_is_refused(tmp_path: Path) -> None:
    data = saved(RGB, "JPEG2000", no_jp2=True, tile_size=(16, 16))
    at = data.index(b"\xff\x90\0\x0a\0\x03")
    length = int.from_bytes(data[at + 6 : at + 10], "big")
    with pytest.raises(TconvError, match="8 of its 9 tiles"):
        spec_of(written(tmp_path, data[:at] + data[at + length :]))


@pytest.mark.parametrize("length", [1, 13, 1 << 31])
def test_lengths_of_tiles_that_lie(tmp_path: Path, length: int) -> None:
    data = saved(RGB, "JPEG2000", no_jp2=True)
    at = data.index(b"\xff\x90\0\x0a")
    with pytest.raises(TconvError, match="truncated or corrupt"):
        spec_of(written(tmp_path, data[: at + 6] + struct.pack(">I", length) + data[at + 10 :]))


def test_the_last_tile_may_leave_its_length_open(tmp_path: Path) -> None:
    data = saved(RGB, "JPEG2000", no_jp2=True)
    at = data.index(b"\xff\x90\0\x0a")
    path = written(tmp_path, data[: at + 6] + bytes(4) + data[at + 10 :])
    assert np.array_equal(array_of(path), RGB)


@pytest.mark.parametrize(
    ("component", "change", "said"),
    [
        (0, b"\x87\1\1", "int8, uint8, uint8"),
        (1, b"\x0f\1\1", "uint8, uint16, uint8"),
        (2, b"\x25\1\1", "uint8, uint8, uint38"),
    ],
)
def test_odd_components_are_named(tmp_path: Path, component: int, change: bytes, said: str) -> None:
    data = with_sizes(saved(RGB, "JPEG2000", no_jp2=True), component, change)
    with pytest.raises(TconvError, match=said) as caught:
        spec_of(written(tmp_path, data))
    assert caught.value.remedy == "save it as PNG or TIFF"


def test_deep_subsampled_components_are_refused(tmp_path: Path) -> None:
    data = deep(np.zeros((40, 48, 1), np.uint16))
    with pytest.raises(TconvError, match="uint16, subsampled"):
        spec_of(written(tmp_path, with_sizes(data, 0, b"\x0f\2\2")))


def test_palettes_and_other_colour_spaces_are_refused(tmp_path: Path) -> None:
    stream = saved(RGB[..., 0], "JPEG2000", no_jp2=True)
    grey, lab = (b"colr", b"\1\0\0\0\0\0\x11"), (b"colr", b"\1\0\0\0\0\0\x0e" + bytes(28))
    assert np.array_equal(array_of(written(tmp_path, boxed(stream, grey)), channels="keep")[..., 0], RGB[..., 0])
    with pytest.raises(TconvError, match="with a palette"):
        spec_of(written(tmp_path, boxed(stream, grey, (b"pclr", b"\0\1\3\7\7\7\0\0\0"))))
    with pytest.raises(TconvError, match="colour space 14"):
        spec_of(written(tmp_path, boxed(stream, lab)))


def test_a_profile_is_named_and_left_alone(tmp_path: Path) -> None:
    stream = saved(RGB, "JPEG2000", no_jp2=True)
    data = boxed(stream, (b"colr", b"\2\0\0" + profile(P3, curve(2.2), "Display P3")), samples=3)
    path = written(tmp_path, data)
    assert read(path, "x", ReadOptions()).notes == (f"{path}: its ICC profile (Display P3) is not applied",)
    assert np.array_equal(array_of(path), RGB)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    data = saved(RGB, "JPEG2000", no_jp2=True)
    huge = (
        data[:8] + struct.pack(">II", 1 << 20, 1 << 20) + data[16:24] + struct.pack(">II", 1 << 20, 1 << 20) + data[32:]
    )
    with pytest.raises(TconvError, match=r"1,099,511,627,776 pixels"):
        spec_of(written(tmp_path, huge))
