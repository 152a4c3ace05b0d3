"""GIF: palettes, transparency and compositing as by Pillow; blocks that end too soon."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tests.formats.image.made import ImageReading, array_of, photo, pillow_rgb, saved, spec_of, written

RGB = photo(8, 9)
# Two colours, red and blue; one pixel of the second: minimal LZW of code size 2 says clear, 1, end.
PIXEL = b"\x02\x02\x4c\x01\0"
SCREEN = b"GIF89a" + struct.pack("<HHBBB", 2, 1, 0x80, 0, 0) + b"\xff\0\0\0\0\xff"


class TestGif(ImageReading):
    suffix = ".gif"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(Image.fromarray(RGB).quantize(8), "GIF"), "sample.gif")


def image_block(left: int = 0, top: int = 0, width: int = 1, height: int = 1, data: bytes = PIXEL) -> bytes:
    return b"," + struct.pack("<HHHHB", left, top, width, height, 0) + data


def control(transparent: int | None = None, disposal: int = 0) -> bytes:
    flags = disposal << 2 | (transparent is not None)
    return b"!\xf9\x04" + struct.pack("<BHB", flags, 5, transparent or 0) + b"\0"


def test_a_frame_smaller_than_the_canvas(tmp_path: Path) -> None:
    data = SCREEN + image_block(left=1) + b";"
    path = written(tmp_path, data)
    assert array_of(path).tolist() == [[[255, 0, 0], [0, 0, 255]]]
    assert array_of(path, palette="index").tolist() == [[0, 1]]


def test_a_transparent_colour_is_laid_over_white(tmp_path: Path) -> None:
    path = written(tmp_path, SCREEN + control(0) + image_block(left=1) + b";")
    assert spec_of(path, channels="keep").shape == (1, 2, 4)
    assert array_of(path, channels="keep").tolist() == [[[255, 0, 0, 0], [0, 0, 255, 255]]]
    assert array_of(path).tolist() == [[[255, 255, 255], [0, 0, 255]]]
    assert array_of(path, palette="index").tolist() == [[0, 1]]


def test_a_first_frame_beyond_the_canvas_enlarges_it_as_in_pillow(tmp_path: Path) -> None:
    data = SCREEN + image_block(left=1, top=1) + b";"
    path = written(tmp_path, data)
    assert spec_of(path).shape == (2, 2, 3)
    assert np.array_equal(array_of(path), pillow_rgb(data))


def test_a_later_frame_beyond_the_canvas_is_of_unequal_size(tmp_path: Path) -> None:
    path = written(tmp_path, SCREEN + image_block() + image_block(left=2) + b";")
    assert spec_of(path).shape == (1, 2, 3)
    with pytest.raises(TconvError, match="unequal size"):
        spec_of(path, frames="all")


@pytest.mark.parametrize("disposal", range(4))
def test_frames_are_composited_as_by_pillow(tmp_path: Path, disposal: int) -> None:
    blocks = [control(None, disposal) + image_block(), control(1, disposal) + image_block(left=1), image_block(left=1)]
    data = SCREEN + b"".join(blocks) + b";"
    path = written(tmp_path, data)
    got = array_of(path, frames="all", channels="keep")
    assert got.shape == (3, 1, 2, 4)
    stored = Image.open(io.BytesIO(data))
    for i, frame in enumerate(got):
        stored.seek(i)
        assert np.array_equal(frame, np.asarray(stored.convert("RGBA")))


def test_indices_of_composited_frames_do_not_exist(tmp_path: Path) -> None:
    path = written(tmp_path, SCREEN + image_block() * 2 + b";")
    assert spec_of(path, palette="index").shape == (1, 2)
    with pytest.raises(TconvError, match="not a palette image"):
        spec_of(path, palette="index", frames="all")


def test_a_grey_palette_is_a_palette(tmp_path: Path) -> None:
    image = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16))
    path = written(tmp_path, saved(image, "GIF"))
    assert np.array_equal(array_of(path, palette="index"), np.asarray(image))
    assert np.array_equal(array_of(path), pillow_rgb(path.read_bytes()))


def test_no_palette_at_all_means_greys_as_in_pillow(tmp_path: Path) -> None:
    data = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + image_block() + b";"
    assert np.array_equal(array_of(written(tmp_path, data)), pillow_rgb(data))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (SCREEN + b";", "no image in it"),
        (SCREEN + image_block(), "ends before its trailer"),
        (SCREEN + image_block() + control(), "ends before its trailer"),
        (SCREEN + image_block()[:-3], "ends before its trailer"),
        (SCREEN[:12], "ends before its trailer|requires a buffer"),
        (SCREEN + b"?", "unknown block 0x3f"),
        (SCREEN + image_block(data=b"\x02\0") + b";", "truncated"),
        (SCREEN + image_block(width=2, data=PIXEL) + b";", "truncated"),
    ],
)
def test_what_is_cut_off_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(TconvError, match=said):
        array_of(written(tmp_path, data))


def test_a_cut_animation_is_refused_even_for_its_first_frame(tmp_path: Path) -> None:
    pictures = [Image.fromarray(photo(seed=seed)) for seed in range(3)]
    data = saved(pictures[0], "GIF", save_all=True, append_images=pictures[1:])
    for size in range(14, len(data), 97):
        with pytest.raises(TconvError, match="truncated or corrupt"):
            spec_of(written(tmp_path, data[:size]))


def test_stray_terminators_between_blocks_are_passed_over(tmp_path: Path) -> None:
    assert array_of(written(tmp_path, SCREEN + b"\0" + image_block(left=1) + b"\0;")).tolist() == [
        [[255, 0, 0], [0, 0, 255]]
    ]
