"""From a header to the spec: shapes, axes, dtypes, ranges and what is refused before anything is decoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image.header import MAX_PIXELS, Header, describe
from tconv.tensor import Spec
from tconv.writer import ReadOptions


def spec(header: Header, **options: Any) -> Spec:
    return describe("x", header, ReadOptions(**options))


@pytest.mark.parametrize(
    ("colour", "alpha", "kept"),
    [
        ("gray", False, 1),
        ("gray", True, 2),
        ("rgb", False, 3),
        ("rgb", True, 4),
        ("palette", True, 4),
        ("cmyk", False, 4),
    ],
)
def test_channels(colour: Any, alpha: bool, kept: int) -> None:
    header = Header(3, 2, colour, alpha)
    wanted = {"rgb": 3, "bgr": 3, "gray": 1, "rgba": 4, "keep": kept}
    assert {c: spec(header, channels=c).shape for c in wanted} == {c: (2, 3, n) for c, n in wanted.items()}


@pytest.mark.parametrize("value", [None, *range(1, 9)])
def test_orientation(value: int | None) -> None:
    header = Header(3, 2, "rgb", orientation=value)
    turned = value is not None and value > 4
    assert spec(header).shape == ((3, 2, 3) if turned else (2, 3, 3))
    assert spec(header, exif=False).shape == (2, 3, 3)


def test_frames() -> None:
    header = Header(3, 2, "palette", frames=5, orientation=6)
    every, indices = spec(header, frames="all"), spec(header, frames="all", palette="index")
    assert (every.shape, every.axes) == ((5, 3, 2, 3), "NHWC")
    assert (indices.shape, indices.axes, indices.dtype.name) == ((5, 3, 2), "NHW", "uint8")
    assert (spec(header).shape, spec(header).axes) == ((3, 2, 3), "HWC")


@pytest.mark.parametrize(
    ("dtype", "white", "want"),
    [
        ("bool", 255, (0, 1)),
        ("uint8", 255, (0, 255)),
        ("uint16", 65535, (0, 65535)),
        ("uint16", 4095, (0, 4095)),
        ("int8", None, (-128, 127)),
        ("int16", None, (-32768, 32767)),
        ("float32", None, None),
        ("float64", None, None),
    ],
)
def test_ranges(dtype: str, white: int | None, want: tuple[float, float] | None) -> None:
    got = spec(Header(3, 2, "gray", dtype=DTYPES[dtype], white=white), channels="keep")
    assert (got.dtype, got.range) == (DTYPES[dtype], want)


def test_black_and_white_becomes_uint8_unless_kept() -> None:
    header = Header(3, 2, "gray", dtype=DTYPES["bool"])
    for channels in ("rgb", "bgr", "gray", "rgba"):
        assert (spec(header, channels=channels).dtype.name, spec(header, channels=channels).range) == (
            "uint8",
            (0, 255),
        )


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.booleans(),
    st.none() | st.integers(1, 10**10),
)
def test_the_limit_is_on_all_pixels_that_are_read(
    width: int, height: int, frames: int, every: bool, limit: int | None
) -> None:
    header = Header(width, height, "rgb", frames=frames)
    pixels = width * height * (frames if every else 1)
    options: dict[str, Any] = {"frames": "all" if every else "first", "max_pixels": limit}
    if pixels <= (limit or MAX_PIXELS):
        assert spec(header, **options).size == 3 * pixels
        return
    with pytest.raises(TconvError, match=f"{pixels:,} pixels .* limit of {limit or MAX_PIXELS:,}") as caught:
        spec(header, **options)
    assert f"--max-pixels {pixels}" in caught.value.remedy


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)])
def test_no_pixels(size: tuple[int, int]) -> None:
    with pytest.raises(TconvError, match="no pixels"):
        spec(Header(*size, "rgb"))


@pytest.mark.parametrize("colour", ["gray", "rgb", "cmyk"])
def test_indices_need_a_palette(colour: Any) -> None:
    with pytest.raises(TconvError, match="not a palette image") as caught:
        spec(Header(3, 2, colour), palette="index")
    assert "--channels keep" in caught.value.remedy


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_alpha_without_a_known_white_is_only_blended_by_nobody(dtype: str) -> None:
    header = Header(3, 2, "rgb", alpha=True, dtype=DTYPES[dtype], white=None)
    for channels in ("rgb", "bgr", "gray"):
        for alpha in ("white", "black"):
            with pytest.raises(TconvError, match=f"which {dtype} is opaque"):
                spec(header, channels=channels, alpha=alpha)
        assert spec(header, channels=channels, alpha="drop").dtype.name == dtype
    assert spec(header, channels="rgba").shape == spec(header, channels="keep").shape == (2, 3, 4)
