"""TIFF: every kind of sample exact or refused, byte orders, compressions, pages, and damaged structure."""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image.reader import read
from tconv.formats.image.tiff import scan
from tconv.writer import ReadOptions
from tests.formats.conformance import random_bits
from tests.formats.image.made import (
    P3,
    ImageReading,
    array_of,
    curve,
    over,
    photo,
    pillow_rgb,
    profile,
    saved,
    spec_of,
    tiff,
    written,
)
from tests.formats.image.writing import ImageWriting, by_opencv, write

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo(8, 9)
# Pillow warns of odd tags. tconv silences it in earnest; here such a warning would become an error.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL.TiffImagePlugin")


class TestTiff(ImageReading):
    suffix = ".tif"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "TIFF", tiffinfo={274: 6}), "sample.tif")


class TestLzw(ImageReading):
    suffix = ".tif"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB[..., 0], "TIFF", compression="tiff_lzw"), "sample.tif")


def random(dtype: str, samples: int, seed: int = 0) -> Array:
    """Values of any bits, NaN included."""
    kind = DTYPES[dtype].numpy
    bits = np.random.default_rng(seed).integers(0, 256, 5 * 7 * samples * kind.itemsize, dtype=np.uint8)
    return bits.view(kind).reshape(5, 7, samples)


def page(folder: Path, x: Array, **options: Any) -> Path:
    return written(folder, tiff(x, **options), "x.tif")


@pytest.mark.parametrize("compression", [1, 8])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("samples", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "uint32", "int32", "float32", "float64"])
def test_samples_are_kept_bit_for_bit(tmp_path: Path, dtype: str, samples: int, order: str, compression: int) -> None:
    x = random(dtype, samples)
    path = page(tmp_path, x, order=order, compression=compression, extra=(2,) * (samples == 4))
    spec = spec_of(path, channels="keep")
    known = DTYPES[dtype]
    assert (spec.dtype, spec.shape) == (known, (5, 7, samples))
    assert spec.range == (None if known.is_float else (known.min, known.max))
    assert array_of(path, channels="keep").tobytes() == x.tobytes()
    if samples == 3:
        assert array_of(path, channels="bgr").tobytes() == np.ascontiguousarray(x[..., ::-1]).tobytes()


def test_signed_bytes_are_signed(tmp_path: Path) -> None:
    x = random("int8", 1)
    path = page(tmp_path, x)
    assert spec_of(path).range == (-128, 127)
    assert np.array_equal(array_of(path, channels="keep"), x)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("bits", [10, 12, 14])
def test_few_deep_bits_are_left_as_they_are(tmp_path: Path, bits: int, samples: int, order: str) -> None:
    x = np.random.default_rng(0).integers(0, 1 << bits, (5, 7, samples), dtype=np.uint16)
    spread = np.unpackbits(x.astype(">u2").view(np.uint8).reshape(5, -1, 2), axis=-1)[..., 16 - bits :]
    path = page(tmp_path, x, bits=bits, order=order, data=np.packbits(spread.reshape(5, -1), axis=-1).tobytes())
    spec = spec_of(path, channels="keep")
    assert (spec.dtype, spec.range) == (DTYPES["uint16"], (0, (1 << bits) - 1))
    assert np.array_equal(array_of(path, channels="keep"), x)


def pieces(x: Array, rows: int, columns: int, order: str, compression: int, predictor: int) -> list[bytes]:
    """Strips, or tiles (which are padded); differenced with predictor 2 and, for floats, 3 (TIFF Technical Note 3)."""
    found = []
    for top in range(0, x.shape[0], rows):
        for left in range(0, x.shape[1], columns):
            tile = x[top : top + rows, left : left + columns]
            if columns < x.shape[1]:
                tile = np.pad(tile, ((0, rows - tile.shape[0]), (0, columns - tile.shape[1]), (0, 0)))
            if predictor == 2:
                tile = np.concatenate([tile[:, :1], tile[:, 1:] - tile[:, :-1]], axis=1)
            raw = tile.astype(tile.dtype.newbyteorder(order))  # type: ignore[arg-type]  # < and > are such orders
            if predictor == 3:
                planes = tile.astype(tile.dtype.newbyteorder(">")).view(np.uint8)
                planes = planes.reshape(len(tile), -1, tile.itemsize).swapaxes(1, 2).reshape(len(tile), -1)
                step = x.shape[2]
                raw = np.concatenate([planes[:, :step], planes[:, step:] - planes[:, :-step]], axis=1)
            found.append(zlib.compress(raw.tobytes()) if compression == 8 else raw.tobytes())
    return found


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("samples", [1, 3, 4])
@pytest.mark.parametrize(
    ("dtype", "compression", "predictor"),
    [
        *((d, 1, 1) for d in ("uint8", "uint16", "int16", "uint32", "float32", "float64")),
        *((d, 8, 2) for d in ("uint8", "uint16", "int16", "uint32")),
        *((d, 8, 3) for d in ("float32", "float64")),
    ],
)
def test_strips_and_tiles(
    tmp_path: Path, dtype: str, compression: int, predictor: int, samples: int, order: str, tiled: bool
) -> None:
    x = np.random.default_rng(0).integers(0, 100, (37, 45, samples)).astype(dtype)
    parts = pieces(x, 32 if tiled else 10, 16 if tiled else 45, order, compression, predictor)
    offsets = [8 + sum(map(len, parts[:i])) for i in range(len(parts))]
    where = [(324, "I", offsets), (325, "I", [len(part) for part in parts]), (322, "I", [16]), (323, "I", [32])]
    if not tiled:
        where = [(273, "I", offsets), (279, "I", [len(part) for part in parts]), (278, "I", [10])]
    path = page(
        tmp_path, x, order=order, compression=compression, data=b"".join(parts), extra=(2,) * (samples == 4),
        more=[*where, (317, "H", [predictor])], without=(273, 278, 279) if tiled else (),
    )  # fmt: skip
    assert np.array_equal(array_of(path, channels="keep"), x)


def planar(folder: Path, x: Array, **options: Any) -> Path:
    planes = [np.ascontiguousarray(x[..., i]).tobytes() for i in range(x.shape[2])]
    offsets = [8 + i * len(planes[0]) for i in range(len(planes))]
    where = [(273, "I", offsets), (279, "I", [len(planes[0])] * len(planes)), (284, "H", [2])]
    return page(folder, x, data=b"".join(planes), more=where, **options)


def test_planes_of_8_bits_are_put_together(tmp_path: Path) -> None:
    assert np.array_equal(array_of(planar(tmp_path, RGB)), RGB)


@pytest.mark.parametrize("dtype", ["uint16", "int16", "float16", "float32", "float64"])
@pytest.mark.parametrize("samples", [3, 4])
def test_deep_planes_are_put_together(tmp_path: Path, dtype: str, samples: int) -> None:
    """OpenCV would jumble them without a word."""
    x = random(dtype, samples)
    path = planar(tmp_path, x, extra=(2,) * (samples == 4))
    assert array_of(path, channels="keep").tobytes() == x.tobytes()
    if samples == 4:
        assert array_of(planar(tmp_path, x, extra=(0,)), channels="keep").tobytes() == x[..., :3].tobytes()


def test_planes_of_several_pieces(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 65536, (37, 45, 3), dtype=np.uint16)
    parts = [piece for i in range(3) for piece in pieces(x[..., i : i + 1], 32, 16, "<", 8, 2)]
    offsets = [8 + sum(map(len, parts[:i])) for i in range(len(parts))]
    where = [(324, "I", offsets), (325, "I", [len(part) for part in parts]), (322, "I", [16]), (323, "I", [32])]
    more = [*where, (317, "H", [2]), (284, "H", [2])]
    options = {"compression": 8, "data": b"".join(parts), "without": (273, 278, 279)}
    assert np.array_equal(array_of(page(tmp_path, x, more=more, **options)), x)
    more[0], more[1] = (324, "I", offsets[:-1]), (325, "I", [len(part) for part in parts[:-1]])
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(page(tmp_path, x, more=more, **options))


def test_bits_may_be_stored_last_first(tmp_path: Path) -> None:
    for dtype in ("uint8", "uint16"):
        x = random(dtype, 3)
        mirrored = np.packbits(np.unpackbits(np.frombuffer(x.tobytes(), np.uint8)), bitorder="little")
        path = page(tmp_path, x, data=mirrored.tobytes(), more=[(266, "H", [2])])
        assert np.array_equal(array_of(path, channels="keep"), x)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_white_may_be_zero(tmp_path: Path, dtype: str, order: str) -> None:
    x = random(dtype, 1)
    assert np.array_equal(array_of(page(tmp_path, x, photometric=0, order=order), channels="keep"), ~x)


def test_white_may_be_zero_in_few_deep_bits(tmp_path: Path) -> None:
    x = np.array([[[0], [1], [4095], [2048]]], np.uint16)
    path = page(tmp_path, x, photometric=0, bits=12, data=bytes([0x00, 0x00, 0x01, 0xFF, 0xF8, 0x00]))
    assert array_of(path, channels="keep")[0, :, 0].tolist() == [4095, 4094, 0, 2047]


def test_white_is_not_zero_in_floats(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="white-is-zero grey with 1 x float32"):
        spec_of(page(tmp_path, random("float32", 1), photometric=0))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize(("compression", "predictor"), [(1, 1), (8, 1), (8, 2)])
def test_half_floats(tmp_path: Path, samples: int, order: str, compression: int, predictor: int) -> None:
    x = random("float16", samples)
    (data,) = pieces(x.view(np.uint16), 5, 7, order, compression, predictor)
    path = page(tmp_path, x, order=order, compression=compression, data=data, more=[(317, "H", [predictor])])
    assert spec_of(path).dtype.name == "float16"
    assert array_of(path, channels="keep").tobytes() == x.tobytes()


def test_half_floats_by_the_predictor_for_floats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="1 x float16"):
        spec_of(page(tmp_path, random("float16", 1), compression=8, more=[(317, "H", [3])]))


def test_deep_alpha_is_blended_dropped_or_kept(tmp_path: Path) -> None:
    x = random("uint16", 4)
    path = page(tmp_path, x, extra=(2,))
    assert np.array_equal(array_of(path), over(x, 65535))
    assert np.array_equal(array_of(path, alpha="drop"), x[..., :3])
    assert np.array_equal(array_of(path, channels="rgba"), x)
    unspecified = page(tmp_path, x, extra=(0,))
    assert np.array_equal(array_of(unspecified, channels="keep"), x[..., :3])


def test_float_alpha_is_not_guessed_at(tmp_path: Path) -> None:
    x = np.abs(random("float32", 4))
    path = page(tmp_path, x, extra=(2,))
    with pytest.raises(TconvError, match="nobody knows which float32 is opaque"):
        spec_of(path)
    assert array_of(path, alpha="drop").tobytes() == np.ascontiguousarray(x[..., :3]).tobytes()
    assert array_of(path, channels="rgba").tobytes() == x.tobytes()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd"])
def test_modes_and_compressions_of_pillow(tmp_path: Path, mode: str, compression: str) -> None:
    image = Image.fromarray(np.dstack([RGB, RGB[..., :1]]))
    if mode == "I;16":
        image = Image.fromarray(RGB[..., 0].astype(np.uint16) * 257)
    else:
        image = image.convert("RGB" if mode == "CMYK" else mode).convert(mode)
    path = written(tmp_path, saved(image, "TIFF", compression=compression))
    assert np.array_equal(array_of(path), pillow_rgb(path.read_bytes()))
    if mode != "P":
        assert np.array_equal(array_of(path, channels="keep"), np.asarray(image).reshape(8, 9, -1))


@pytest.mark.parametrize("compression", ["group3", "group4", "tiff_ccitt"])
def test_fax(tmp_path: Path, compression: str) -> None:
    image = Image.fromarray(RGB[..., 0] > 127)
    path = written(tmp_path, saved(image, "TIFF", compression=compression))
    assert np.array_equal(array_of(path, channels="keep")[..., 0], np.asarray(image) != 0)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_in_tiff(tmp_path: Path, mode: str) -> None:
    data = saved(Image.fromarray(photo(40, 50)).convert(mode), "TIFF", compression="jpeg")
    assert np.array_equal(array_of(written(tmp_path, data)), pillow_rgb(data))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"photometric": 8}, "CIELAB"),
        ({"photometric": 32845}, "photometric 32845"),
        ({"compression": 6}, "compression 6"),
        ({"bits": 7}, "3 x uint7"),
        ({"form": 2}, "3 x int8"),
        ({"form": 6}, "3 x complex8"),
        ({"more": [(258, "H", [8, 8, 16])]}, "not of one type"),
    ],
)
def test_what_is_not_read_is_said_in_a_sentence(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    path = page(tmp_path, RGB, **options)
    with pytest.raises(TconvError, match=said) as caught:
        spec_of(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


@pytest.mark.parametrize("samples", [2, 5])
def test_deep_samples_in_other_numbers_are_refused(tmp_path: Path, samples: int) -> None:
    with pytest.raises(TconvError, match=f"{samples} x uint16"):
        spec_of(page(tmp_path, random("uint16", samples), extra=(2,) * (samples % 3)))


def test_deep_inks_are_not_cut_to_8_bits(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="CMYK with 4 x uint16"):
        spec_of(page(tmp_path, random("uint16", 4), photometric=5))


def test_deep_colours_multiplied_by_alpha_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match="multiplied by alpha"):
        spec_of(page(tmp_path, random("uint16", 4), extra=(1,)))


def test_shallow_colours_multiplied_by_alpha_are_divided_by_it(tmp_path: Path) -> None:
    x = np.array([[[100, 50, 0, 200], [0, 0, 0, 0]]], np.uint8)
    path = page(tmp_path, x, extra=(1,))
    assert array_of(path, channels="keep")[0, 0].tolist() == [127, 63, 0, 200]  # as Pillow does: 127.5, 63.75 cut
    grey = page(tmp_path, np.array([[[100, 200]]], np.uint8), extra=(1,))
    assert array_of(grey, channels="keep").tolist() == [[[127, 200]]]


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_of_shallow_and_deep(tmp_path: Path, dtype: str, value: int, order: str) -> None:
    x = np.arange(5 * 7 * 3).reshape(5, 7, 3).astype(dtype)
    path = page(tmp_path, x, order=order, more=[(274, "H", [value])])
    upright = x[:, ::-1] if value in (2, 3, 7, 8) else x
    upright = upright[::-1] if value in (3, 4, 6, 7) else upright
    assert np.array_equal(array_of(path), upright.swapaxes(0, 1) if value > 4 else upright)
    assert np.array_equal(array_of(path, exif=False), x)


@pytest.mark.parametrize(
    ("kind", "numbers", "turned"),
    [
        ("I", [3], True), ("b", [3], True), ("h", [3], True), ("i", [3], True), ("H", [0], False),
        ("B", [3], None), ("H", [3, 3], None), ("H", [9], None), ("i", [-3], None), ("f", [3], None), ("d", [3], None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_an_orientation_of_an_odd_type_never_turns_unseen(
    tmp_path: Path, dtype: str, kind: str, numbers: list[int], turned: bool | None, order: str
) -> None:
    """Half a turn keeps the shape: what a decoder does of its own accord nobody would notice."""
    x = np.arange(5 * 7 * 3).reshape(5, 7, 3).astype(dtype)
    path = page(tmp_path, x, order=order, more=[(274, kind, numbers)])
    assert np.array_equal(array_of(path), x[::-1, ::-1] if turned else x)
    assert np.array_equal(array_of(path, exif=False), x)
    told = f"{path}: its EXIF data are damaged, so it is taken as it is stored"
    assert read(path, "x", ReadOptions()).notes == (() if turned is not None else (told,))


XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_an_orientation_in_xmp_counts_where_no_tag_states_one(tmp_path: Path, dtype: str) -> None:
    x = RGB.astype(dtype)
    path = page(tmp_path, x, more=[(700, "B", XMP)])
    assert np.array_equal(array_of(path), np.rot90(x, -1))
    assert np.array_equal(array_of(path, exif=False), x)
    for stated, turns in ((1, 0), (3, 2)):
        both = page(tmp_path, x, more=[(700, "B", XMP), (274, "H", [stated])])
        assert np.array_equal(array_of(both), np.rot90(x, turns))


@pytest.mark.parametrize("tag", [700, 34675])
def test_xmp_and_profiles_that_are_not_there_cost_no_image(tmp_path: Path, tag: int) -> None:
    data = bytearray(tiff(RGB, more=[(tag, "B", bytes(100))]))
    at = data.index(struct.pack("<HH", tag, 1))
    for count, offset in ((0xFFFFFFFF, 8), (100, 0xFFFFFF00), (2, 0xFFFFFFFF), (0, 0)):
        struct.pack_into("<II", data, at + 4, count, offset)
        assert np.array_equal(array_of(written(tmp_path, bytes(data))), RGB)


def test_a_profile_is_named_and_left_alone(tmp_path: Path) -> None:
    path = page(tmp_path, RGB, more=[(34675, "B", profile(P3, curve(2.2), "Display P3"))])
    assert read(path, "x", ReadOptions()).notes == (f"{path}: its ICC profile (Display P3) is not applied",)
    assert np.array_equal(array_of(path), RGB)


# ------------------------------------------------------------------------------------------------ pages
def pages(folder: Path, *images: Array) -> Path:
    pictures = [Image.fromarray(x) for x in images]
    return written(folder, saved(pictures[0], "TIFF", save_all=True, append_images=pictures[1:]))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_all_pages(tmp_path: Path, dtype: str) -> None:
    x = np.arange(3 * 5 * 7).reshape(3, 5, 7).astype(dtype)
    path = pages(tmp_path, *x)
    assert spec_of(path, frames="all", channels="keep").shape == (3, 5, 7, 1)
    assert np.array_equal(array_of(path, frames="all", channels="keep")[..., 0], x)


def test_palette_pages(tmp_path: Path) -> None:
    images = [Image.fromarray(photo(8, 9, seed)).quantize(4) for seed in range(2)]
    path = written(tmp_path, saved(images[0], "TIFF", save_all=True, append_images=images[1:]))
    got = array_of(path, frames="all", palette="index")
    assert spec_of(path, frames="all", palette="index").axes == "NHW"
    assert np.array_equal(got, np.stack([np.asarray(image) for image in images]))


def test_pages_of_unequal_size_or_kind_are_refused(tmp_path: Path) -> None:
    for other in (np.zeros((5, 8), np.uint8), np.zeros((5, 7), np.uint16), np.zeros((5, 7, 3), np.uint8)):
        path = pages(tmp_path, np.zeros((5, 7), np.uint8), other)
        assert spec_of(path).shape == (5, 7, 3)
        with pytest.raises(TconvError, match="unequal size or kind"):
            spec_of(path, frames="all")


def test_directories_in_a_circle_end_where_they_meet(tmp_path: Path) -> None:
    data = bytearray(tiff(RGB))
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    struct.pack_into("<I", data, start + 2 + 12 * count, start)
    path = written(tmp_path, bytes(data))
    assert np.array_equal(array_of(path, frames="all"), RGB)


# --------------------------------------------------------------------------------------------- damage
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("compression", [1, 8])
def test_strips_that_are_too_short(tmp_path: Path, dtype: str, compression: int) -> None:
    x = random(dtype, 3)
    whole = zlib.compress(x.tobytes()) if compression == 8 else x.tobytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 5):
        path = page(tmp_path, x, compression=compression, data=whole[:size])
        with pytest.raises(TconvError, match="truncated or corrupt"):
            array_of(path)


@pytest.mark.parametrize(
    "more",
    [
        [(273, "I", [5000])],
        [(279, "I", [5000])],
        [(273, "I", [8, 8])],
        [(279, "I", [0])],
        [(324, "I", [8]), (325, "I", [216])],
        [(256, "I", [90])],
        [(257, "I", [80])],
    ],
)
def test_pixels_that_are_not_there(tmp_path: Path, more: list[tuple[int, str, list[int]]]) -> None:
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(page(tmp_path, RGB, more=more))


def test_a_wrong_checksum_of_deflate_is_noticed(tmp_path: Path) -> None:
    for dtype in ("uint8", "uint16"):
        x = random(dtype, 3)
        whole = bytearray(zlib.compress(x.tobytes()))
        whole[-1] ^= 1
        with pytest.raises(TconvError, match="truncated or corrupt"):
            array_of(page(tmp_path, x, compression=8, data=bytes(whole)))


def test_a_cut_jpeg_stream_is_noticed(tmp_path: Path) -> None:
    data = saved(photo(40, 50), "TIFF", compression="jpeg")
    assert array_of(written(tmp_path, data)).shape == (40, 50, 3)
    tags = Image.open(io.BytesIO(data)).tag_v2  # type: ignore[attr-defined]  # a TIFF has them
    end = tags[273][0] + tags[279][0]
    cut = data[: end - 30] + b"\xff\xd9" + data[end - 28 :]
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(written(tmp_path, cut))


def test_huge_counts_cost_nothing(tmp_path: Path) -> None:
    data = bytearray(tiff(RGB))
    for tag in (258, 273, 279):
        at = data.index(struct.pack("<HH", tag, 3 if tag == 258 else 4))
        bad = data.copy()
        struct.pack_into("<I", bad, at + 4, 0xFFFFFFFF)
        with pytest.raises(TconvError, match="claims 4294967295 values"):
            spec_of(written(tmp_path, bytes(bad)))


def test_a_big_endian_bigtiff(tmp_path: Path) -> None:
    """Pillow, which reads shallow samples, does not know it; OpenCV gets deep ones in another shell."""
    deep = random("uint16", 3)
    assert np.array_equal(array_of(written(tmp_path, bigtiff(deep))), deep)
    with pytest.raises(TconvError, match="big-endian BigTIFF"):
        spec_of(written(tmp_path, bigtiff(RGB)))


def bigtiff(x: Array) -> bytes:
    """Uncompressed RGB in big-endian BigTIFF."""
    height, width, samples = x.shape
    raw = x.astype(x.dtype.newbyteorder(">")).tobytes()
    raw += bytes(-len(raw) % 8)
    bits = struct.pack(">4H", *[x.dtype.itemsize * 8] * 3, 0)
    tags = [
        (256, 4, 1, struct.pack(">II", width, 0)), (257, 4, 1, struct.pack(">II", height, 0)), (258, 3, 3, bits),
        (259, 3, 1, struct.pack(">4H", 1, 0, 0, 0)), (262, 3, 1, struct.pack(">4H", 2, 0, 0, 0)),
        (273, 16, 1, struct.pack(">Q", 16)), (277, 3, 1, struct.pack(">4H", samples, 0, 0, 0)),
        (278, 4, 1, struct.pack(">II", height, 0)), (279, 16, 1, struct.pack(">Q", x.nbytes)),
    ]  # fmt: skip
    entries = b"".join(struct.pack(">HHQ", tag, kind, count) + value for tag, kind, count, value in tags)
    head = b"MM\0+" + struct.pack(">HHQ", 8, 0, 16 + len(raw))
    return head + raw + struct.pack(">Q", len(tags)) + entries + bytes(8)


def test_a_little_endian_bigtiff_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, saved(RGB, "TIFF", big_tiff=True))
    assert np.array_equal(array_of(path), RGB)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = page(tmp_path, RGB, compression=5, more=[(256, "I", [100_000]), (257, "I", [100_000])])
    with pytest.raises(TconvError, match="10,000,000,000 pixels"):
        spec_of(path)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(tiff(RGB)) - 1), st.integers(0, 255))
def test_any_changed_byte_gives_a_header_or_an_exception_of_ours(at: int, value: int) -> None:
    data = bytearray(tiff(RGB))
    data[at] = value
    try:
        header = scan(io.BytesIO(bytes(data)), True)
    except (TconvError, ValueError, EOFError, KeyError, struct.error):
        return
    assert header.colour in ("gray", "rgb", "palette", "cmyk")


class TestTiffWriter(ImageWriting):
    suffix = ".tiff"
    channels: ClassVar = dict.fromkeys(("uint8", "uint16", "float32", "float64"), (1, 3, 4)) | {"bool": (1,)}

    def reference(self, path: Path) -> dict[str, Array]:
        with suppress(OSError), Image.open(path) as image:
            if image.mode == "1":
                return {"x": np.asarray(image.convert("L"))[..., None] == 255}
        return {"x": by_opencv(path)}


def test_floats_and_bytes_are_what_pillow_reads(tmp_path: Path) -> None:
    for x in (
        random_bits("uint8", (6, 7, 4)),
        random_bits("uint8", (6, 7)),
        np.array([[1.5, -2], [np.inf, 0]], np.float32),
    ):
        write(tmp_path / "x.tif", x)
        with Image.open(tmp_path / "x.tif") as image:
            np.testing.assert_array_equal(np.asarray(image), x)
        (tmp_path / "x.tif").unlink()
