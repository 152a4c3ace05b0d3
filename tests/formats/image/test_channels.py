"""Channels: blending, luma and inks against exact arithmetic and Pillow, and the laws between the options."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from tconv.errors import TconvError
from tconv.formats.image.channels import assemble, blend, cmyk_to_rgb, convert, luma
from tconv.formats.image.header import Header, Picture
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array

CHANNELS = ("rgb", "bgr", "gray", "rgba", "keep")


def converted(x: Array, colour: str = "rgb", alpha: bool = False, white: int | None = 255, **options: Any) -> Array:
    return convert(x, colour, alpha, white, ReadOptions(**options))


@pytest.mark.parametrize("background", [255, 0])
def test_blending_8_bits_is_exact_for_all_values(background: int) -> None:
    colour, alpha = np.meshgrid(np.arange(256), np.arange(256))
    got = blend(np.stack([colour, alpha], -1).astype(np.uint8), 255, background == 255)[..., 0]
    twice = 2 * (colour * alpha + background * (255 - alpha))
    assert np.array_equal(got, (twice + 255) // 510)  # no ties, as 255 is odd


@pytest.mark.parametrize(
    ("dtype", "white"), [(np.uint16, 1023), (np.uint16, 4095), (np.uint16, 65535), (np.uint32, 2**32 - 1)]
)
@given(data=st.data())
def test_blending_deep_values_is_exact(dtype: type, white: int, data: st.DataObject) -> None:
    edge = st.sampled_from([0, 1, white // 2, white // 2 + 1, white - 1, white])
    colour, alpha = (data.draw(st.integers(0, white) | edge) for _ in range(2))
    over_white = data.draw(st.booleans())
    got = blend(np.array([[[colour, alpha]]], dtype), white, over_white)
    a = Fraction(alpha, white)
    assert got.item() == round(colour * a + (white if over_white else 0) * (1 - a))


def test_blending_works_in_bands() -> None:
    x = np.random.default_rng(0).integers(0, 256, (700, 900, 4), dtype=np.uint8)
    whole = blend(x, 255, True)
    assert np.array_equal(whole[600:], blend(x[600:], 255, True))


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9).map(lambda s: (*s, 3))))
def test_8_bit_luma_is_pillows(x: Array) -> None:
    assert np.array_equal(luma(x)[..., 0], np.asarray(Image.fromarray(x).convert("L")))


@given(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535))
def test_16_bit_luma_is_rounded_once(r: int, g: int, b: int) -> None:
    assert luma(np.array([[[r, g, b]]], np.uint16)).item() == round(Fraction(299 * r + 587 * g + 114 * b, 1000))


def test_float_luma_is_rounded_once() -> None:
    x = np.array([[[1.0, 2.0, 3.0], [-1.5, 0.0, 1e30], [np.nan, 0, 0]]], np.float32)
    got = luma(x)
    assert got.dtype == np.float32
    assert got[0, 0, 0] == np.float32(Fraction(299 + 587 * 2 + 114 * 3, 1000))
    assert got[0, 1, 0] == np.float32((-1.5 * 299 + 114 * float(np.float32(1e30))) / 1000)
    assert np.isnan(got[0, 2, 0])


def test_inks_become_rgb_by_pillows_formula() -> None:
    inks = np.array([[[255, 0, 0, 0], [0, 0, 0, 255], [0, 0, 0, 0], [0, 255, 255, 128]]], np.uint8)
    assert cmyk_to_rgb(inks).tolist() == [[[0, 255, 255], [0, 0, 0], [255, 255, 255], [127, 0, 0]]]


def test_each_option_on_grey() -> None:
    x = np.array([[[7], [200]]], np.uint8)
    assert converted(x, "gray").tolist() == [[[7, 7, 7], [200, 200, 200]]]
    assert converted(x, "gray", channels="bgr").tolist() == [[[7, 7, 7], [200, 200, 200]]]
    assert converted(x, "gray", channels="gray").tolist() == [[[7], [200]]]
    assert converted(x, "gray", channels="rgba").tolist() == [[[7, 7, 7, 255], [200, 200, 200, 255]]]
    assert converted(x, "gray", channels="keep") is x


def test_each_option_on_rgb() -> None:
    x = np.array([[[10, 20, 30]]], np.uint8)
    assert converted(x) is x
    assert converted(x, channels="bgr").tolist() == [[[30, 20, 10]]]
    assert converted(x, channels="gray").tolist() == [[[18]]]  # 2.99 + 11.74 + 3.42 = 18.15
    assert converted(x, channels="rgba").tolist() == [[[10, 20, 30, 255]]]
    assert converted(x, channels="keep") is x


def test_each_option_on_rgb_with_alpha() -> None:
    x = np.array([[[100, 50, 0, 51]]], np.uint8)  # a fifth
    assert converted(x, alpha=True).tolist() == [[[224, 214, 204]]]
    assert converted(x, alpha=True, channels="bgr").tolist() == [[[204, 214, 224]]]
    black, drop = ReadOptions(alpha="black"), ReadOptions(alpha="drop")
    assert convert(x, "rgb", True, 255, black).tolist() == [[[20, 10, 0]]]
    assert convert(x, "rgb", True, 255, drop).tolist() == [[[100, 50, 0]]]
    assert converted(x, alpha=True, channels="rgba") is not x
    assert converted(x, alpha=True, channels="rgba").tolist() == x.tolist()
    assert converted(x, alpha=True, channels="keep") is x


def test_each_option_on_grey_with_alpha() -> None:
    x = np.array([[[100, 51]]], np.uint8)
    assert converted(x, "gray", True).tolist() == [[[224, 224, 224]]]
    assert converted(x, "gray", True, channels="gray").tolist() == [[[224]]]
    assert converted(x, "gray", True, channels="rgba").tolist() == [[[100, 100, 100, 51]]]
    assert converted(x, "gray", True, channels="keep") is x


def test_each_option_on_black_and_white() -> None:
    x = np.array([[[True], [False]]])
    for channels, white in {"rgb": [255] * 3, "bgr": [255] * 3, "gray": [255], "rgba": [255] * 4}.items():
        got = converted(x, "gray", channels=channels)
        assert got.dtype == np.uint8
        assert got[0, 0].tolist() == white
    assert converted(x, "gray", channels="keep") is x


def test_opaque_alpha_is_the_files_white() -> None:
    for dtype, white, opaque in ((np.uint16, 4095, 4095), (np.uint16, 65535, 65535), (np.int16, None, 32767)):
        assert converted(np.array([[[3]]], dtype), "gray", white=white, channels="rgba")[0, 0, 3] == opaque
    assert converted(np.array([[[0.5]]], np.float32), "gray", white=None, channels="rgba")[0, 0, 3] == 1.0


@given(hnp.arrays(np.uint8, (3, 4, 4)), st.sampled_from(["white", "black", "drop"]))
def test_bgr_is_rgb_reversed_and_grey_is_its_luma(x: Array, alpha: str) -> None:
    rgb, bgr, gray = (
        convert(x, "rgb", True, 255, ReadOptions(channels=c, alpha=alpha))  # type: ignore[arg-type]  # drawn strings
        for c in ("rgb", "bgr", "gray")
    )
    assert np.array_equal(bgr, rgb[..., ::-1])
    assert np.array_equal(gray, luma(rgb))


PALETTE = np.array([[255, 0, 0, 255], [0, 255, 0, 0], [10, 20, 30, 51]], np.uint8)
INDICES = np.array([[0, 1, 2], [2, 1, 0]], np.uint8)[..., None]


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("transparent", [True, False])
def test_a_palette_image_is_the_image_of_its_colours(channels: str, transparent: bool) -> None:
    options = ReadOptions(channels=channels)  # type: ignore[arg-type]  # one of CHANNELS
    header = Header(3, 2, "palette", transparent)
    colours = PALETTE[INDICES[..., 0]][..., : 3 + transparent]
    want = convert(np.ascontiguousarray(colours), "rgb", transparent, 255, options)
    assert np.array_equal(assemble(Picture(INDICES, PALETTE), header, options), want)


def test_palette_indices_are_the_data() -> None:
    got = assemble(Picture(INDICES, PALETTE), Header(3, 2, "palette"), ReadOptions(palette="index"))
    assert got.tolist() == [[0, 1, 2], [2, 1, 0]]


def test_an_index_beyond_the_palette_is_refused() -> None:
    picture = Picture(INDICES + np.uint8(1), PALETTE)
    with pytest.raises(TconvError, match="uses colour 3 of a palette of 3"):
        assemble(picture, Header(3, 2, "palette"), ReadOptions())
    assert assemble(picture, Header(3, 2, "palette"), ReadOptions(palette="index")).max() == 3
