"""PNG's texts: orientations as several programs write them, and profiles; no pixel depends on what they hold."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
from tests.formats.image.made import P3, array_of, curve, oriented, photo, png_of, profile, written

RGB = photo(8, 9)
XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'


def as_text(keyword: bytes, text: bytes) -> tuple[bytes, bytes]:
    return b"tEXt", keyword + b"\0" + text


def packed(keyword: bytes, text: bytes) -> tuple[bytes, bytes]:
    return b"zTXt", keyword + b"\0\0" + zlib.compress(text)


def international(keyword: bytes, text: bytes) -> tuple[bytes, bytes]:
    return b"iTXt", keyword + b"\0\0\0en\0key\0" + text


def international_packed(keyword: bytes, text: bytes) -> tuple[bytes, bytes]:
    return b"iTXt", keyword + b"\0\1\0\0\0" + zlib.compress(text)


def raw_profile(exif: bytes) -> bytes:
    """As ImageMagick has it, with lines of 72 digits."""
    digits = exif.hex().encode()
    lines = b"\n".join(digits[i : i + 72] for i in range(0, len(digits), 72))
    return b"\nexif\n%8d\n%s\n" % (len(exif), lines)


@pytest.mark.parametrize("chunk", [
    as_text(b"Raw profile type exif", raw_profile(oriented(6))),
    as_text(b"Raw profile type exif", raw_profile(b"Exif\0\0" + oriented(6))),
    packed(b"Raw profile type exif", raw_profile(oriented(6))),
    international(b"XML:com.adobe.xmp", XMP % 6),
    international_packed(b"XML:com.adobe.xmp", XMP % 6),
])  # fmt: skip
@pytest.mark.parametrize("behind", [True, False])
def test_an_orientation_in_a_text(tmp_path: Path, chunk: tuple[bytes, bytes], behind: bool) -> None:
    data = png_of(RGB, after=[chunk]) if behind else png_of(RGB, [chunk])
    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    assert np.array_equal(upright, np.rot90(RGB, -1))
    assert np.array_equal(array_of(written(tmp_path, data)), upright)


def test_which_orientation_counts(tmp_path: Path) -> None:
    exif, raw = (b"eXIf", oriented(3)), as_text(b"Raw profile type exif", raw_profile(oriented(6)))
    xmp = international(b"XML:com.adobe.xmp", XMP % 8)
    for chunks, turns in (([raw, xmp, exif], 2), ([xmp, raw], -1), ([xmp], 1), ([exif, xmp], 2)):
        assert np.array_equal(array_of(written(tmp_path, png_of(RGB, chunks))), np.rot90(RGB, turns))


@pytest.mark.parametrize("text", [b"", b"\nexif\n", b"\nexif\n  4\nzz", b"\nexif\n  2\n\xff\xff"])
def test_a_damaged_text_is_a_note_at_most(tmp_path: Path, text: bytes) -> None:
    path = written(tmp_path, png_of(RGB, [as_text(b"Raw profile type exif", text)]))
    damaged = f"{path}: its EXIF data are damaged, so it is taken as it is stored"
    assert read(path, "x", ReadOptions()).notes == ((damaged,) if text.strip() not in (b"", b"exif") else ())
    assert np.array_equal(array_of(path), RGB)


def test_texts_are_not_unpacked_without_end(tmp_path: Path) -> None:
    bomb = packed(b"Raw profile type exif", bytes(1 << 26))
    path = written(tmp_path, png_of(RGB, [bomb, international_packed(b"XML:com.adobe.xmp", bytes(1 << 26))]))
    assert np.array_equal(array_of(path), RGB)


def test_a_profile_is_named_and_left_alone(tmp_path: Path) -> None:
    body = b"P3\0\0" + zlib.compress(profile(P3, curve(2.2), "Display P3"))
    path = written(tmp_path, png_of(RGB, [(b"iCCP", body)]))
    assert read(path, "x", ReadOptions()).notes == (f"{path}: its ICC profile (Display P3) is not applied",)
    assert np.array_equal(array_of(path), RGB)


@pytest.mark.parametrize("body", [b"", b"name", b"name\0\0junk", b"name\0\0" + zlib.compress(b"junk")])
def test_a_damaged_profile_is_nothing(tmp_path: Path, body: bytes) -> None:
    path = written(tmp_path, png_of(RGB, [(b"iCCP", body)]))
    assert read(path, "x", ReadOptions()).notes == ()
    assert np.array_equal(array_of(path), RGB)
