"""PNG: every colour type and depth, transparency, 16 bits, checksums, and APNG."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tconv.errors import TconvError
from tconv.formats.image.header import Header
from tconv.formats.image.png import decode, scan
from tests.formats.conformance import random_bits
from tests.formats.image.made import (
    ImageReading,
    apng,
    array_of,
    oriented,
    over,
    photo,
    pillow_rgb,
    png,
    png_chunk,
    png_of,
    saved,
    spec_of,
    written,
)
from tests.formats.image.writing import ImageWriting, by_opencv, three_axes, write

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo()
DEEP = np.random.default_rng(0).integers(0, 65536, (5, 7, 4), dtype=np.uint16)


class TestPng(ImageReading):
    suffix = ".png"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(photo(8, 9), "PNG", exif=oriented(6)), "sample.png")


class TestPaletteWithAlpha(ImageReading):
    suffix = ".png"

    def sample(self, folder: Path) -> Path:
        image = Image.fromarray(photo(8, 9)).quantize(16)
        return written(folder, saved(image, "PNG", transparency=bytes(range(0, 256, 16))), "sample.png")


class TestDeepPng(ImageReading):
    """Made of 8-bit values times 257, so that Pillow's high byte tells the whole."""

    suffix = ".png"

    def sample(self, folder: Path) -> Path:
        return written(folder, png_of(photo(8, 9).astype(np.uint16) * 257), "sample.png")

    def reference(self, path: Path) -> dict[str, Array]:
        return {"x": unfiltered(path.read_bytes())}


def unfiltered(data: bytes) -> Array:
    """A slow decoder of non-interlaced 16-bit PNG files of several channels, by the standard's section 9."""
    width, height, depth, kind = struct.unpack_from(">IIBB", data, 16)
    assert (depth, data[28]) == (16, 0)
    at, stream = 8, b""
    while data[at + 4 : at + 8] != b"IEND":
        length = int.from_bytes(data[at : at + 4], "big")
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(data[at + 4 : at + 8] + body) == int.from_bytes(data[at + 8 + length :][:4], "big")
        stream += body if data[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    pixel = 2 * {2: 3, 4: 2, 6: 4}[kind]
    raw, row_length = zlib.decompress(stream), width * pixel
    above = [0] * row_length
    rows = []
    for top in range(0, len(raw), row_length + 1):
        row = list(raw[top + 1 : top + 1 + row_length])
        for i in range(row_length):
            left, up = row[i - pixel] if i >= pixel else 0, above[i]
            corner = above[i - pixel] if i >= pixel else 0
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda v: abs(guess - v))
            row[i] = row[i] + [0, left, up, (left + up) // 2, nearest][raw[top]] & 255
        rows.append(row)
        above = row
    assert len(rows) == height
    return np.array(rows, np.uint8).view(">u2").astype(np.uint16).reshape(height, width, -1)


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_grey_of_few_bits_is_scaled_to_eight(tmp_path: Path, depth: int) -> None:
    largest = (1 << depth) - 1
    levels = np.arange(8) % (largest + 1)
    bits = np.unpackbits(levels.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :]
    path = written(tmp_path, png(8, 1, depth, 0, [np.packbits(bits).tobytes()]))
    assert array_of(path)[0, :, 0].tolist() == [255 * v // largest for v in levels]


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("key", [0, 1])
def test_a_transparent_grey_of_few_bits(tmp_path: Path, depth: int, key: int) -> None:
    """Pillow compares the key with the scaled value, and finds none in 2 and 4 bits."""
    largest = (1 << depth) - 1
    levels = np.arange(8) % (largest + 1)
    bits = np.unpackbits(levels.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :]
    data = png(8, 1, depth, 0, [np.packbits(bits).tobytes()], [(b"tRNS", struct.pack(">H", key))])
    path = written(tmp_path, data)
    want = [[255 * v // largest, 0 if v == key else 255] for v in levels]
    assert array_of(path, channels="keep")[0].tolist() == want
    assert array_of(path)[0, :, 0].tolist() == [255 if v == key else 255 * v // largest for v in levels]
    assert array_of(path, alpha="drop", channels="gray")[0, :, 0].tolist() == [255 * v // largest for v in levels]


def test_a_transparent_colour(tmp_path: Path) -> None:
    x = np.array([[[1, 2, 3], [1, 2, 4]]], np.uint8)
    key = (b"tRNS", struct.pack(">HHH", 0x0101, 2, 3))  # of 8-bit samples the low byte counts
    path = written(tmp_path, png_of(x, [key]))
    assert array_of(path, channels="rgba").tolist() == [[[1, 2, 3, 0], [1, 2, 4, 255]]]
    assert array_of(path).tolist() == [[[255, 255, 255], [1, 2, 4]]]


def test_a_transparent_colour_of_16_bits(tmp_path: Path) -> None:
    x = DEEP[..., :3]
    path = written(tmp_path, png_of(x, [(b"tRNS", x[2, 3].astype(">u2").tobytes())]))
    want = np.concatenate([x, np.full((5, 7, 1), 65535, np.uint16)], -1)
    want[2, 3, 3] = 0
    assert np.array_equal(array_of(path, channels="keep"), want)
    grey = written(tmp_path, png_of(x[..., :1], [(b"tRNS", x[2, 3, :1].astype(">u2").tobytes())]))
    assert np.array_equal(array_of(grey, channels="keep"), want[..., [0, 3]])


@pytest.mark.parametrize("samples", [1, 2, 3, 4])
def test_16_bits_of_every_colour_type(tmp_path: Path, samples: int) -> None:
    x = DEEP[..., :samples]
    path = written(tmp_path, png_of(x))
    assert spec_of(path).range == (0, 65535)
    assert np.array_equal(array_of(path, channels="keep"), x)
    assert np.array_equal(
        array_of(path, channels="rgba")[..., :3], np.broadcast_to(x[..., : 3 if samples > 2 else 1], (5, 7, 3))
    )
    opaque = over(x, 65535) if samples in (2, 4) else x
    assert np.array_equal(array_of(path), np.broadcast_to(opaque, (5, 7, 3)))
    assert np.array_equal(array_of(path, channels="bgr"), array_of(path)[..., ::-1])


def test_alpha_of_a_palette(tmp_path: Path) -> None:
    colours, alpha = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]), bytes([0, 51])
    path = written(tmp_path, png(3, 1, 8, 3, [bytes([0, 1, 2])], [(b"PLTE", colours), (b"tRNS", alpha)]))
    assert array_of(path, channels="keep").tolist() == [[[255, 0, 0, 0], [0, 255, 0, 51], [0, 0, 255, 255]]]
    assert array_of(path).tolist() == [[[255, 255, 255], [204, 255, 204], [0, 0, 255]]]
    assert array_of(path, channels="gray").tolist() == [[[255], [234], [29]]]
    assert array_of(path, palette="index").tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_mode_of_pillow(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(np.dstack([RGB, RGB[..., :1]])).convert(mode)
    path = written(tmp_path, saved(image, "PNG"))
    assert np.array_equal(array_of(path), pillow_rgb(path.read_bytes()))
    if mode != "P":
        assert np.array_equal(array_of(path, channels="keep"), np.asarray(image).reshape(24, 40, -1))


def test_exif_behind_the_pixels_counts(tmp_path: Path) -> None:
    path = written(tmp_path, png_of(RGB, after=[(b"eXIf", oriented(6))]))
    assert np.array_equal(array_of(path), np.rot90(RGB, -1))


def test_what_makes_no_pixel_is_not_looked_at(tmp_path: Path) -> None:
    """Broken profiles, texts that would unpack to megabytes, unknown chunks."""
    bomb = b"x\0\0" + zlib.compress(bytes(1 << 22))
    odd = [(b"iCCP", b"name\0\x09junk"), (b"zTXt", bomb), (b"gAMA", b"\0" * 4), (b"abCd", b""), (b"pHYs", b"")]
    assert np.array_equal(array_of(written(tmp_path, png_of(RGB, odd))), RGB)


def test_data_behind_the_last_row_do_not_matter(tmp_path: Path) -> None:
    for row in (10, 19):
        data = with_stream(8 if row == 10 else 16, 2, bytes(5 * row))
        assert array_of(written(tmp_path, data)).shape == (2, 3, 3)


@pytest.mark.parametrize("kind", [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"tEXt"])
def test_a_wrong_checksum_is_refused_wherever_it_is(tmp_path: Path, kind: bytes) -> None:
    """Even of a text: damage can have made it one."""
    data = bytearray(png(2, 1, 8, 3, [b"\0\1"], [(b"PLTE", bytes(6)), (b"tRNS", b"\x80"), (b"tEXt", b"a\0b")]))
    at = data.index(kind)
    length = int.from_bytes(data[at - 4 : at], "big")
    data[at + 4 + length] ^= 1
    with pytest.raises(TconvError, match="checksum of its chunk"):
        array_of(written(tmp_path, bytes(data)))


def with_stream(depth: int, kind: int, raw: bytes, cut: int | None = None) -> bytes:
    """3x2 pixels with these bytes for rows, the compressed stream cut but its chunk sound."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, depth, kind, 0, 0, 0))
    body = png_chunk(b"IDAT", zlib.compress(raw)[:cut])
    return b"\x89PNG\r\n\x1a\n" + head + body + png_chunk(b"IEND", b"")


@pytest.mark.parametrize(("depth", "kind", "row"), [(8, 2, 10), (16, 0, 7), (16, 2, 19), (16, 4, 13), (16, 6, 25)])
def test_too_little_or_senseless_pixel_data(tmp_path: Path, depth: int, kind: int, row: int) -> None:
    assert array_of(written(tmp_path, with_stream(depth, kind, bytes(2 * row)))).shape == (2, 3, 3)
    for data in (
        with_stream(depth, kind, bytes(2 * row - 1)),
        with_stream(depth, kind, bytes(row)),
        with_stream(depth, kind, b"\x05" + bytes(2 * row - 1)),
        with_stream(depth, kind, bytes(row) + b"\xff" + bytes(row - 1)),
        with_stream(depth, kind, bytes(2 * row), 3),
        with_stream(depth, kind, b""),
    ):
        with pytest.raises(TconvError, match="truncated or corrupt"):
            array_of(written(tmp_path, data))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ((8, 1, 0, 0, 0), "no such colour type"),
        ((3, 0, 0, 0, 0), "no such colour type"),
        ((16, 3, 0, 0, 0), "no such colour type"),
        ((8, 2, 1, 0, 0), "no such colour type"),
        ((8, 2, 0, 1, 0), "no such colour type"),
        ((8, 2, 0, 0, 2), "no such colour type"),
        ((8, 3, 0, 0, 0), "a palette of 0 bytes"),
    ],
)
def test_headers_that_mean_nothing(tmp_path: Path, head: tuple[int, ...], said: str) -> None:
    chunk = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, *head))
    data = b"\x89PNG\r\n\x1a\n" + chunk + png_chunk(b"IDAT", b"") + png_chunk(b"IEND", b"")
    with pytest.raises(TconvError, match=said):
        spec_of(written(tmp_path, data))


@pytest.mark.parametrize("size", [(0, 1), (1, 0)])
def test_no_pixels_are_refused(tmp_path: Path, size: tuple[int, int]) -> None:
    with pytest.raises(TconvError, match="no pixels"):
        spec_of(written(tmp_path, png(*size, 8, 0, [])))


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_chunks_behind_the_signature_give_a_header_or_an_exception(tail: bytes) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever it is, read() makes a sentence of it
        scan(io.BytesIO(b"\x89PNG\r\n\x1a\n" + tail), False)


# ------------------------------------------------------------------------------------------------- APNG
def animation(mode: str, **options: object) -> bytes:
    pictures = [
        Image.fromarray(np.dstack([photo(seed=seed), photo(seed=9)[..., :1]])).convert(mode) for seed in range(3)
    ]
    return saved(pictures[0], "PNG", save_all=True, append_images=pictures[1:], **options)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P"])
def test_animations_are_composited_as_by_pillow(tmp_path: Path, mode: str) -> None:
    data = animation(mode, blend=0)
    got = array_of(written(tmp_path, data), frames="all", channels="rgba")
    stored = Image.open(io.BytesIO(data))
    assert got.shape == (3, 24, 40, 4)
    for i, frame in enumerate(got):
        stored.seek(i)
        assert np.array_equal(frame, np.asarray(stored.convert("RGBA")))


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_opaque_animations_have_no_alpha(tmp_path: Path, mode: str) -> None:
    path = written(tmp_path, animation(mode))
    assert spec_of(path, frames="all", channels="keep").shape == (3, 24, 40, 3 if mode == "RGB" else 1)
    assert spec_of(path, frames="all", channels="keep").dtype.name == "uint8"


def test_an_extra_default_image_is_a_frame(tmp_path: Path) -> None:
    data = animation("RGB", default_image=True)
    assert spec_of(written(tmp_path, data), frames="all").shape == (3, 24, 40, 3)
    assert np.array_equal(array_of(written(tmp_path, data)), array_of(written(tmp_path, data), frames="all")[0])


def test_all_frames_are_turned_upright(tmp_path: Path) -> None:
    data = animation("RGB")
    turned = data[:-12] + png_chunk(b"eXIf", oriented(6)) + data[-12:]
    upright = array_of(written(tmp_path, data), frames="all")
    assert np.array_equal(array_of(written(tmp_path, turned), frames="all"), np.rot90(upright, -1, (1, 2)))


def test_a_frame_beyond_the_canvas_is_refused(tmp_path: Path) -> None:
    for width, height in ((41, 24), (40, 25), (0, 24), (40, 0), (1 << 31, 1 << 31)):
        data = bytearray(animation("RGB"))
        at = data.rindex(b"fcTL")
        data[at + 8 : at + 16] = struct.pack(">II", width, height)
        data[at + 30 : at + 34] = struct.pack(">I", zlib.crc32(data[at : at + 30]))
        with pytest.raises(TconvError, match=f"a frame of {width}x{height} on a canvas of 40x24"):
            array_of(written(tmp_path, bytes(data)), frames="all")


def test_a_cut_stream_of_a_later_frame_is_refused(tmp_path: Path) -> None:
    data = animation("RGB")
    at = data.rindex(b"fdAT")
    length = int.from_bytes(data[at - 4 : at], "big")
    cut = data[: at - 4] + png_chunk(b"fdAT", data[at + 4 : at + 4 + length // 2]) + data[at + 8 + length :]
    path = written(tmp_path, cut)
    assert array_of(path).shape == (24, 40, 3)
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(path, frames="all")


def test_missing_frames_are_refused(tmp_path: Path) -> None:
    data = animation("RGB")
    at = data.index(b"acTL")
    more = data[: at - 4] + png_chunk(b"acTL", struct.pack(">II", 5, 0)) + data[at + 16 :]
    path = written(tmp_path, more)
    assert array_of(path).shape == (24, 40, 3)
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(path, frames="all")


def test_deep_animations_keep_their_depth(tmp_path: Path) -> None:
    second = np.full((2, 3, 4), 65535, np.uint16)
    path = written(tmp_path, apng((DEEP, (0, 0), 0, 0), (second, (4, 3), 0, 0), canvas=(5, 7)))
    want = DEEP.copy()
    want[3:, 4:] = 65535
    assert np.array_equal(array_of(path, channels="keep"), DEEP)
    assert np.array_equal(array_of(path, channels="keep", frames="all"), np.stack([DEEP, want]))
    assert spec_of(path, frames="all").range == (0, 65535)


def test_a_transparent_colour_counts_in_every_frame(tmp_path: Path) -> None:
    grey = [np.full((1, 2, 1), value, np.uint8) for value in (7, 8)]
    data = apng((grey[0], (0, 0), 0, 0), (grey[1], (0, 0), 0, 0), canvas=(1, 2))
    keyed = data.replace(data[8:33], data[8:33] + png_chunk(b"tRNS", b"\0\x08"))
    path = written(tmp_path, keyed)
    assert array_of(path, frames="all", channels="keep").tolist() == [[[[7, 255]] * 2], [[[8, 0]] * 2]]


@pytest.mark.parametrize("at", [1, 2])
def test_frames_out_of_order_are_refused(tmp_path: Path, at: int) -> None:
    data = apng(*((photo(2, 3, seed), (0, 0), 0, 0) for seed in range(2)), canvas=(2, 3))
    (place,) = [i for i in range(len(data)) if data[i : i + 4] == (b"fcTL" if at == 1 else b"fdAT")][-1:]
    length = int.from_bytes(data[place - 4 : place], "big")
    wrong = png_chunk(data[place : place + 4], struct.pack(">I", 9) + data[place + 8 : place + 4 + length])
    path = written(tmp_path, data[: place - 4] + wrong + data[place + 8 + length :])
    with pytest.raises(TconvError, match="out of order"):
        array_of(path, frames="all")


def test_a_zero_of_frames_is_no_animation(tmp_path: Path) -> None:
    path = written(tmp_path, png_of(RGB, [(b"acTL", bytes(8))]))
    assert np.array_equal(array_of(path, frames="all"), RGB)


def test_decoding_is_lazy_and_checks_first() -> None:
    data = png_of(RGB)
    header = scan(io.BytesIO(data), False)
    assert header == Header(40, 24, "rgb")
    (picture,) = decode(data, header, 1)
    assert np.array_equal(picture.pixels, RGB)


class TestPngWriter(ImageWriting):
    suffix = ".png"
    channels: ClassVar = {"uint8": (1, 2, 3, 4), "uint16": (1, 2, 3, 4), "bool": (1,)}

    def reference(self, path: Path) -> dict[str, Array]:
        with Image.open(path) as image:
            if image.mode == "1":
                return {"x": np.asarray(image.convert("L"))[..., None] == 255}
            depth, kind = path.read_bytes()[24:26]
            if (depth, kind) == (16, 4):  # by OpenCV as RGBA
                return {"x": by_opencv(path)[..., [0, 3]]}
            return {"x": by_opencv(path) if depth == 16 else three_axes(np.asarray(image))}


@settings(deadline=None, max_examples=60)
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    channels=st.sampled_from((1, 3, 4)),
    kind=st.sampled_from(("uint8", "uint16")),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_is_written_is_what_opencv_reads(
    tmp_path_factory: pytest.TempPathFactory, size: tuple[int, int], channels: int, kind: str, seed: int
) -> None:
    x = random_bits(kind, (*size, channels), seed)
    path = tmp_path_factory.mktemp("png") / "x.png"
    write(path, x)
    np.testing.assert_array_equal(by_opencv(path), x)


def test_a_mask_has_one_bit_a_pixel(tmp_path: Path) -> None:
    x = np.array([[True, False, True], [False, False, True]])
    write(tmp_path / "x.png", x)
    with Image.open(tmp_path / "x.png") as image:
        assert image.mode == "1"
        assert np.asarray(image).tolist() == x.tolist()
        assert np.asarray(image.convert("L")).tolist() == [[255, 0, 255], [0, 0, 255]]
    assert (tmp_path / "x.png").read_bytes()[24] == 1


def test_a_depth_map_has_16_bits_for_pillow_too(tmp_path: Path) -> None:
    x = np.arange(0, 65536, 1024).astype(np.uint16).reshape(8, 8)
    write(tmp_path / "x.png", x)
    with Image.open(tmp_path / "x.png") as image:
        assert image.mode == "I;16"
        assert np.asarray(image).tolist() == x.tolist()
