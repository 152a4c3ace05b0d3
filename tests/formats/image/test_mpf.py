"""Several pictures in one JPEG file: all of them as Pillow has them, and indices that are wrong."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tests.formats.image.made import array_of, oriented, photo, spec_of, written
from tests.shared_data import shared

if TYPE_CHECKING:
    from tconv.ops import Array

PICTURES = [Image.fromarray(photo(seed=n)) for n in range(3)]


def several(*others: Image.Image, first: Image.Image = PICTURES[0], exif: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    first.save(buffer, "MPO", save_all=True, append_images=others, exif=exif)
    return buffer.getvalue()


def pillows(data: bytes) -> Array:
    with Image.open(io.BytesIO(data)) as image:
        found = []
        for n in range(image.n_frames):
            image.seek(n)
            found.append(np.asarray(image.convert("RGB")))
    return np.stack(found)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_all_pictures(tmp_path: Path, mode: str) -> None:
    first, *others = [picture.convert(mode) for picture in PICTURES]
    data = several(*others, first=first)
    path = written(tmp_path, data, "x.jpg")
    assert spec_of(path, frames="all").axes == "NHWC"
    assert np.array_equal(array_of(path, frames="all"), pillows(data))
    assert np.array_equal(array_of(path), pillows(data)[0])


def test_all_are_turned_as_the_first_says(tmp_path: Path) -> None:
    data = several(PICTURES[1], exif=b"Exif\0\0" + oriented(6))
    path = written(tmp_path, data, "x.jpg")
    upright = [Image.fromarray(x).transpose(Image.Transpose.ROTATE_270) for x in pillows(data)]
    assert np.array_equal(array_of(path, frames="all"), np.stack([np.asarray(x) for x in upright]))


def test_previews_and_gain_maps_are_no_frames(tmp_path: Path) -> None:
    small, grey = PICTURES[1].resize((5, 7)), PICTURES[2].convert("L")
    path = written(tmp_path, several(small, grey), "x.jpg")
    assert spec_of(path, frames="all").axes == "HWC"
    assert np.array_equal(array_of(path, frames="all"), array_of(path))


def test_a_small_resize_of_all(tmp_path: Path) -> None:
    """Decoding at a fraction is of one picture."""
    first, second = (picture.resize((256, 192)) for picture in PICTURES[:2])
    data = several(second, first=first)
    path = written(tmp_path, data, "x.jpg")
    assert np.array_equal(array_of(path, frames="all", fast=True), pillows(data))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda data, at: data[: at + 4] + b"\xff\xff\xff\xff" + data[at + 8 :],
            "the index of its pictures is damaged",
        ),
        (lambda data, at: data[:at] + b"PDF-" + data[at + 4 :], "the index of its pictures is damaged"),
        (lambda data, _: data[: data.rindex(b"\xff\xd8")], "its picture 2 is not where its index says"),
        (lambda data, _: data[:-100], "Premature end of JPEG file"),
    ],
)
def test_what_is_damaged_matters_where_all_are_wanted(
    tmp_path: Path, change: Callable[[bytes, int], bytes], reason: str
) -> None:
    data = several(PICTURES[1])
    path = written(tmp_path, change(data, data.index(b"MPF\0") + 4), "x.jpg")
    assert np.array_equal(array_of(path), pillows(data)[0])
    with pytest.raises(TconvError, match=reason):
        array_of(path, frames="all")


def test_real_files() -> None:
    folder = shared("images/python-pillow__Pillow")
    both = folder / "sugarshack.mpo"
    assert np.array_equal(array_of(both, frames="all"), pillows(both.read_bytes()))
    assert spec_of(folder / "frame_size.mpo", frames="all").shape == (70, 56, 3)
    with pytest.raises(TconvError, match="its picture 2 is not where its index says"):
        spec_of(folder / "sugarshack_no_data.mpo", frames="all")
