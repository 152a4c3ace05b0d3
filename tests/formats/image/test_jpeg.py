"""JPEG: bit for bit what Pillow decodes, its odd kinds, and that nothing damaged passes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image.jpeg import scan
from tests.formats.image.made import ImageReading, array_of, oriented, photo, pillow_rgb, saved, spec_of, written
from tests.formats.image.writing import ImageWriting, three_axes, write

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo()
PLAIN = saved(RGB, "JPEG")


class TestJpeg(ImageReading):
    suffix = ".jpg"

    def sample(self, folder: Path) -> Path:
        return written(folder, PLAIN, "sample.jpg")


class TestProgressiveTurnedJpeg(ImageReading):
    suffix = ".jpg"

    def sample(self, folder: Path) -> Path:
        data = saved(RGB, "JPEG", progressive=True, exif=b"Exif\0\0" + oriented(6))
        return written(folder, data, "sample.jpg")


class TestInks(ImageReading):
    suffix = ".jpg"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(Image.fromarray(RGB).convert("CMYK"), "JPEG"), "sample.jpg")


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2, "big") + body


def with_segments(*segments: bytes) -> bytes:
    return PLAIN[:2] + b"".join(segments) + PLAIN[2:]


def frame(marker: int, precision: int = 8, height: int = 24, components: int = 3) -> bytes:
    """A header that ends with such a frame."""
    body = bytes((precision,)) + height.to_bytes(2, "big") + b"\0\x28" + bytes((components,)) + b"\1\x11\0" * components
    return b"\xff\xd8" + segment(marker, body) + segment(0xDA, b"\0")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"progressive": True},
        {"subsampling": 0},
        {"subsampling": 1},
        {"restart_marker_blocks": 1},
        {"quality": 1},
        {"quality": 100},
        {"optimize": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_every_way_of_saving_is_pillows(tmp_path: Path, mode: str, options: dict[str, Any]) -> None:
    if mode == "CMYK" and options.get("subsampling") == 1:
        pytest.skip("Pillow gives black half the width of cyan then, which is refused as unusual")
    for size in ((24, 40), (1, 1), (7, 9), (17, 33)):
        data = saved(Image.fromarray(photo(*size)).convert(mode), "JPEG", **options)
        path = written(tmp_path, data)
        stored = Image.open(io.BytesIO(data))
        assert np.array_equal(array_of(path), pillow_rgb(data))
        assert np.array_equal(array_of(path, channels="gray")[..., 0], np.asarray(stored.convert("RGB").convert("L")))
        assert np.array_equal(array_of(path, channels="keep"), np.asarray(stored).reshape(*size, -1))


def adobe(transform: int) -> bytes:
    return segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([transform]))


@pytest.mark.parametrize("mark", [b"", adobe(0), adobe(2)], ids=["none", "CMYK", "YCCK"])
def test_inks_with_every_kind_of_mark(tmp_path: Path, mark: bytes) -> None:
    data = saved(Image.fromarray(RGB).convert("CMYK"), "JPEG")
    data = data[:2] + mark + data[2 + len(adobe(0)) :]  # in place of Pillow's own
    path = written(tmp_path, data)
    assert np.array_equal(array_of(path, channels="keep"), np.asarray(Image.open(io.BytesIO(data))))
    assert np.array_equal(array_of(path), pillow_rgb(data))


@pytest.mark.parametrize("transform", [0, 1])
def test_colours_stored_as_rgb_or_ycbcr(tmp_path: Path, transform: int) -> None:
    data = saved(RGB, "JPEG", subsampling=0)
    data = data[:2] + adobe(transform) + data[data.index(b"\xff\xdb") :]
    assert np.array_equal(array_of(written(tmp_path, data)), pillow_rgb(data))


def test_what_stands_behind_the_end_does_not_matter(tmp_path: Path) -> None:
    for tail in (b"garbage", bytes(1000), PLAIN, saved(photo(8, 8), "JPEG")):
        assert np.array_equal(array_of(written(tmp_path, PLAIN + tail)), pillow_rgb(PLAIN))


def test_of_several_images_in_a_file_the_first_counts(tmp_path: Path) -> None:
    pictures = [Image.fromarray(photo(seed=seed)) for seed in range(2)]
    data = saved(pictures[0], "MPO", save_all=True, append_images=pictures[1:])
    assert np.array_equal(array_of(written(tmp_path, data)), pillow_rgb(data))


def test_a_header_of_many_segments(tmp_path: Path) -> None:
    many = [segment(0xE0 + n % 16, bytes(n * 37 % 5000)) for n in range(2, 60) if n % 16 != 14]
    exif = segment(0xE1, b"Exif\0\0" + oriented(6) + bytes(60000))
    path = written(tmp_path, with_segments(*many, b"\xff\xff\xff" + segment(0xFE, b"fill bytes")[1:], exif))
    assert spec_of(path).shape == (40, 24, 3)
    assert np.array_equal(array_of(path, exif=False), pillow_rgb(PLAIN))


@pytest.mark.parametrize("padding", range(4070, 4100))
def test_segments_across_the_edge_of_what_is_read_at_once(padding: int) -> None:
    data = with_segments(segment(0xEF, bytes(padding)), segment(0xE1, b"Exif\0\0" + oriented(8)))
    header = scan(io.BytesIO(data), False)
    assert (header.width, header.height, header.orientation) == (40, 24, 8)


def test_the_first_exif_counts() -> None:
    both = [segment(0xE1, b"Exif\0\0" + oriented(value)) for value in (1, 6)]
    assert scan(io.BytesIO(with_segments(*both)), False).orientation == 1


def test_a_thumbnail_is_not_the_image() -> None:
    thumbnail = b"Exif\0\0" + oriented(3) + saved(photo(8, 8), "JPEG")
    header = scan(io.BytesIO(with_segments(segment(0xE1, thumbnail))), False)
    assert (header.width, header.height, header.orientation) == (40, 24, 3)


def test_a_broken_colour_profile_damages_no_pixel(tmp_path: Path) -> None:
    data = with_segments(segment(0xE2, b"ICC_PROFILE\0\x07\x02abc"))
    assert np.array_equal(array_of(written(tmp_path, data)), pillow_rgb(PLAIN))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (frame(0xC1, precision=12), "a 12-bit JPEG"),
        (frame(0xC3), "a lossless JPEG"),
        (frame(0xCB), "a lossless arithmetic JPEG"),
        (frame(0xC5), "a hierarchical JPEG"),
        (frame(0xF7), "a JPEG-LS JPEG"),
        (frame(0xC0, height=0), "states its height behind the pixels"),
        (frame(0xC0, components=2), "a JPEG of 2 components"),
        (PLAIN[:2] + segment(0xDA, b"\0"), "no frame header"),
        (PLAIN[:2] + b"\xff\xd9\0\0", "no frame header"),
        (PLAIN[:100], "ends within its header"),
        (PLAIN[: PLAIN.index(b"\xff\xda") + 5], "ends within its header"),
        (PLAIN[:2] + b"\xff\xfe", "ends within its header"),
        (b"\xff\xd8\xff\xe0\0\x02junk" + PLAIN[2:], "between the segments"),
    ],
)
def test_what_is_not_read_is_said_in_a_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(TconvError, match=said) as caught:
        spec_of(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


def test_unusual_chroma_sampling_is_refused(tmp_path: Path) -> None:
    at = PLAIN.index(b"\xff\xc0")
    odd = bytearray(PLAIN)
    odd[at + 11] = 0x31  # the luma three times as wide as the chroma
    with pytest.raises(TconvError, match="unusual chroma sampling"):
        array_of(written(tmp_path, bytes(odd)))


def test_arithmetic_coding_is_decoded_or_refused(tmp_path: Path) -> None:
    swapped = PLAIN.replace(b"\xff\xc0", b"\xff\xc9")  # Huffman data that claim to be arithmetic
    with pytest.raises(TconvError):
        array_of(written(tmp_path, swapped))


class TestJpegWriter(ImageWriting):
    """Values are those that went in or nearly so; of what stays flat they are exact."""

    suffix = ".jpg"
    channels: ClassVar = {"uint8": (1, 3)}

    def reference(self, path: Path) -> dict[str, Array]:
        with Image.open(path) as image:
            return {"x": three_axes(np.asarray(image))}

    @pytest.mark.parametrize("dtype", list(DTYPES))
    def test_a_dtype_is_kept_bit_for_bit_or_refused_by_name(self, tmp_path: Path, dtype: str) -> None:  # type: ignore[override]  # nearly is not bit for bit
        if dtype != "uint8":
            super().test_a_dtype_is_kept_bit_for_bit_or_refused_by_name(tmp_path, dtype, (4, 5))
            return
        smooth = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8) * np.uint8(2)
        x = np.stack([smooth, smooth[::-1], smooth[:, ::-1]], axis=-1)
        for picture in (x, x[..., :1]):
            path = self.write(tmp_path / f"{picture.shape[2]}.jpg", {"x": np.ascontiguousarray(picture)})
            assert np.abs(self.reference(path)["x"].astype(int) - picture).max() <= 3


def test_colours_have_the_full_resolution_and_the_quality_is_told(tmp_path: Path) -> None:
    x = photo(64, 64)
    sizes = {}
    for quality in (None, 95, 40):
        writer = write(tmp_path / "x.jpg", x, quality=quality)
        sizes[quality] = writer.size
        with Image.open(tmp_path / "x.jpg") as image:
            assert image.layer[1][1:3] == image.layer[0][1:3] == (1, 1)
        (tmp_path / "x.jpg").unlink()
        assert writer.notes == (f"JPEG is lossy: pixels change a little (quality {quality or 95}); png keeps them",)
        assert writer.lossy
    assert sizes[None] == sizes[95] > sizes[40]


def test_it_is_the_file_that_pillow_writes(tmp_path: Path) -> None:
    x = photo(64, 64)
    write(tmp_path / "ours.jpg", x, quality=80)
    Image.fromarray(x).save(tmp_path / "theirs.jpg", quality=80, subsampling=0)
    assert (tmp_path / "ours.jpg").read_bytes() == (tmp_path / "theirs.jpg").read_bytes()
