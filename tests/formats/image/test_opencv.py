"""OpenCV as a decoder: channel order, and no threads of its own."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tconv.formats.image.opencv import decode_all, decode_one
from tests.formats.image.made import png_of, tiff

DEEP = np.random.default_rng(0).integers(0, 65536, (5, 7, 4), dtype=np.uint16)


@pytest.mark.parametrize("samples", [1, 3, 4])
def test_the_order_is_rgb(samples: int) -> None:
    x = DEEP[..., :samples]
    assert np.array_equal(decode_one(png_of(x)), x)
    assert np.array_equal(decode_one(tiff(x)), x)
    (page,) = decode_all(tiff(x))
    assert np.array_equal(page, x)


@pytest.mark.parametrize("decoder", [decode_one, decode_all])
def test_what_it_cannot_read_is_an_error(decoder: object) -> None:
    assert callable(decoder)
    for data in (b"\0", b"II*\0" + bytes(20), png_of(DEEP)[:100]):
        with pytest.raises(ValueError, match="OpenCV cannot decode it"):
            decoder(data)


def test_it_uses_the_calling_thread() -> None:
    assert cv2.getNumThreads() == 1
