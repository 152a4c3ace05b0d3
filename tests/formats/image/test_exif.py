"""EXIF orientation: parsed from any bytes, applied as Pillow applies it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tconv.formats.image.exif import orientation, place, turn, turn_box
from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
from tests.formats.conformance import values
from tests.formats.image.made import exif_of, oriented

if TYPE_CHECKING:
    from tconv.ops import Array

XMP = b'<rdf:Description tiff:Orientation="6"/>'
TRANSPOSE = Image.Transpose
BY_PILLOW = {
    2: TRANSPOSE.FLIP_LEFT_RIGHT,
    3: TRANSPOSE.ROTATE_180,
    4: TRANSPOSE.FLIP_TOP_BOTTOM,
    5: TRANSPOSE.TRANSPOSE,
    6: TRANSPOSE.ROTATE_270,
    7: TRANSPOSE.TRANSVERSE,
    8: TRANSPOSE.ROTATE_90,
}


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("kind", [3, 4, 6, 8, 9])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_orientation_in_every_spelling(value: int, kind: int, order: str) -> None:
    assert orientation(oriented(value, kind, order)) == value


def test_an_orientation_that_the_camera_does_not_know_turns_nothing() -> None:
    assert orientation(oriented(0)) == 1


ODD = {
    "beyond 8": oriented(9),
    "far beyond": oriented(65535),
    "negative": oriented(-6, 8),
    "BYTE, by which readers disagree": oriented(6, 1),
    "UNDEFINED": oriented(6, 7),
    "FLOAT": oriented(6, 11),
    "a directory": oriented(6, 13),
    "ASCII": exif_of((0x0112, 2, 2, b"6\0")),
    "RATIONAL": exif_of((0x0112, 5, 1, b"\x1a")) + struct.pack("<II", 6, 1),
    "no type": exif_of((0x0112, 0, 1, b"\6")),
    "a type that nobody knows": exif_of((0x0112, 99, 1, b"\6")),
    "no value": oriented(6, count=0),
    "two values": exif_of((0x0112, 3, 2, b"\6\0\6\0")),
    "more values than there are": oriented(6, count=2**32 - 1),
    "twice, and each time otherwise": exif_of((0x0112, 3, 1, b"\6"), (0x0112, 3, 1, b"\3")),
}


@pytest.mark.parametrize("case", ODD)
def test_what_is_no_orientation_is_damage(case: str) -> None:
    """So that it is told, and turns nothing."""
    assert orientation(ODD[case]) is None
    assert orientation(ODD[case], XMP) is None


def test_the_same_orientation_twice_is_one() -> None:
    assert orientation(exif_of((0x0112, 3, 1, b"\6"), (0x0112, 4, 1, b"\6"))) == 6


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_picture_with_such_an_entry_is_taken_as_it_is_stored_and_that_is_told(
    tmp_path: Path, form: str, case: str
) -> None:
    path = tmp_path / "x"
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), np.uint8)
    kept: dict[str, object] = {"lossless": True} if form == "WEBP" else {}
    Image.fromarray(pixels).save(path, form, exif=b"Exif\0\0" + ODD[case], **kept)
    stream = read(path, "x", ReadOptions())
    assert stream.tensors[0].spec.shape == (8, 12, 3)
    assert stream.notes == (f"{path}: its EXIF data are damaged, so it is taken as it is stored",)
    assert values(stream.tensors[0]).shape == (8, 12, 3)
    assert read(path, "x", ReadOptions(exif=False)).notes == ()


def test_a_directory_without_the_tag_turns_nothing() -> None:
    assert orientation(oriented(6).replace(b"\x12\x01", b"\x13\x01")) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"II",
        b"LoremIpsum",
        oriented(6)[:9],
        oriented(6)[:17],
        b'II"\0' + oriented(6)[4:],
        b"II*\0\xff\xff\xff\xff",
    ],
)
def test_damaged_data_are_known_as_such(data: bytes) -> None:
    assert orientation(data) is None


@pytest.mark.parametrize(
    ("exif", "xmp", "want"),
    [
        (b"", b"", 1),
        (b"", XMP, 6),
        (b"", b"<tiff:Orientation>8</tiff:Orientation>", 8),
        (b"", b'tiff:Orientation="9"', 1),
        (b"", b'tiff:Orientation="0"', 1),
        (b"", b"tiff:Orientation", 1),
        (oriented(3), XMP, 3),
        (oriented(1), XMP, 1),
        (oriented(0), XMP, 1),
        (oriented(9), XMP, None),
        (oriented(3).replace(b"\x12\x01", b"\x13\x01"), XMP, 6),
        (b"damaged", XMP, None),
    ],
)
def test_xmp_counts_where_exif_says_nothing(exif: bytes, xmp: bytes, want: int | None) -> None:
    assert orientation(exif, xmp) == want


@given(st.binary(max_size=60))
def test_any_bytes_give_an_orientation_or_none(data: bytes) -> None:
    assert orientation(b"MM\0*" + data) in (None, *range(1, 9))


@pytest.mark.parametrize("value", BY_PILLOW)
def test_images_are_turned_as_pillow_turns_them(value: int) -> None:
    x = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    assert np.array_equal(turn(x, value), np.asarray(Image.fromarray(x).transpose(BY_PILLOW[value])))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (2, 3, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("value", range(1, 9))
def test_placing_is_turning(value: int, dtype: type, shape: tuple[int, ...]) -> None:
    x: Array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    want = np.array(turn(x, value))
    for source in (x, np.repeat(x, 2, axis=1)[:, ::2]):
        out = np.zeros_like(want)
        place(source, value, out)
        assert np.array_equal(out, want)


@pytest.mark.parametrize("value", range(1, 9))
def test_a_box_goes_where_its_pixels_go(value: int) -> None:
    x = np.zeros((5, 7, 3), np.uint8)
    x[1:3, 2:6] = 1
    turned = turn(x, value)[..., 0]
    top, left, bottom, right = turn_box((1, 2, 3, 6), 5, 7, value)
    want = np.zeros_like(turned)
    want[int(top) : int(bottom), int(left) : int(right)] = 1
    np.testing.assert_array_equal(turned, want)


def test_a_box_may_end_within_a_pixel() -> None:
    assert turn_box((0, 0, 4.5, 6.25), 5, 7, 3) == (0.5, 0.75, 5, 7)
    assert turn_box((0, 0, 4.5, 6.25), 5, 7, 6) == (0, 0.5, 6.25, 5)
