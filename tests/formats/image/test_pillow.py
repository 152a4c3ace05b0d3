"""Pillow as a decoder: its booleans, its palettes, its byte orders, and its own limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError
from tconv.formats.image import pillow
from tconv.formats.image.pillow import palette, pixels
from tests.formats.image.made import array_of, photo, saved, written


def test_true_is_one() -> None:
    x = pixels(Image.fromarray(np.array([[True, False]])))
    assert x.tobytes() == b"\1\0"
    assert x.dtype == np.bool_
    assert x.shape == (1, 2, 1)


def test_big_endian_pixels_become_native() -> None:
    x = np.array([[1, 256]], np.uint16)
    image = Image.frombytes("I;16B", (2, 1), x.astype(">u2").tobytes())
    assert pixels(image).dtype == np.dtype(np.uint16)
    assert pixels(image)[..., 0].tolist() == [[1, 256]]


def test_a_palette_with_its_transparent_colour() -> None:
    image = Image.new("P", (1, 1))
    image.putpalette([1, 2, 3, 4, 5, 6])
    assert palette(image).tolist() == [[1, 2, 3, 255], [4, 5, 6, 255]]
    image.info["transparency"] = 1
    assert palette(image).tolist() == [[1, 2, 3, 255], [4, 5, 6, 0]]
    image.info["transparency"] = 7
    assert palette(image).tolist() == [[1, 2, 3, 255], [4, 5, 6, 255]]


@pytest.mark.parametrize("form", ["PNG", "WEBP", "BMP", "TIFF", "GIF"])
@pytest.mark.parametrize("frames", ["first", "all"])
def test_its_limit_is_lifted_for_what_ours_lets_through(
    tmp_path: Path, form: str, frames: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [Image.fromarray(photo(seed=seed)) for seed in range(2)]
    more: dict[str, Any] = {} if form == "BMP" else {"save_all": True, "append_images": pictures[1:]}
    path = written(tmp_path, saved(pictures[0], form, **more))
    want = array_of(path, frames=frames)
    monkeypatch.setattr(pillow, "MAX_PIXELS", 100)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert np.array_equal(array_of(path, frames=frames), want)
    assert Image.MAX_IMAGE_PIXELS == 100


def test_its_limit_comes_back_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, saved(photo(), "BMP")[:-100])
    monkeypatch.setattr(pillow, "MAX_PIXELS", 100)
    with pytest.raises(TconvError):
        array_of(path)
    assert Image.MAX_IMAGE_PIXELS == 89_478_485
