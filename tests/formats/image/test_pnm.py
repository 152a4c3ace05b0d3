"""PNM: plain and raw, of any largest value, with comments anywhere."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError
from tests.formats.image.made import ImageReading, array_of, photo, pillow_rgb, saved, spec_of, written

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo(8, 9)


class TestRaw(ImageReading):
    suffix = ".ppm"

    def sample(self, folder: Path) -> Path:
        return written(folder, saved(RGB, "PPM"), "sample.ppm")


class TestPlain(ImageReading):
    suffix = ".pgm"

    def sample(self, folder: Path) -> Path:
        return written(folder, b"P2 3 2 255\n" + b"7 77 200\n255 0 100\n", "sample.pgm")

    def reference(self, path: Path) -> dict[str, Array]:
        """Pillow, but that it scales deep values to 65535."""
        data = path.read_bytes()
        values = pillow_rgb(data)
        if values.dtype == np.uint8:
            return {"x": values}
        numbers = [int(n) for n in data.split()[4:]]
        return {"x": np.repeat(np.array(numbers[: values.size // 3], np.uint16), 3).reshape(values.shape)}


class TestPlainBits(ImageReading):
    suffix = ".pbm"

    def sample(self, folder: Path) -> Path:
        return written(folder, b"P1 # bits\n3 2\n101 0\n1 1", "sample.pbm")


class TestRawBits(ImageReading):
    suffix = ".pbm"

    def sample(self, folder: Path) -> Path:
        return written(folder, b"P4 10 2\n\xaa\xc0\x55\x00", "sample.pbm")


@pytest.mark.parametrize(
    ("data", "want"),
    [
        (b"P1\n2 2\n10\n01\n", [[0, 255], [255, 0]]),
        (b"P1 2 2 # a 1 in a comment\n1 0 0 #1\n1", [[0, 255], [255, 0]]),
        (b"P4 2 2\n\x80\x40", [[0, 255], [255, 0]]),
        (b"P2 2 1 255 7 200 ", [[7, 200]]),
        (b"P2#x\n#y\n 2#z\n1 255\n7#8 9\n\t200\n", [[7, 200]]),
        (b"P2 2 1 255\n7 200 33 ", [[7, 200]]),
        (b"P5 2 1 255\n\x07\xc8", [[7, 200]]),
        (b"P5 2 1 255\n\x07\xc8trailing", [[7, 200]]),
        (b"P5 3 1 2\n\0\1\2", [[0, 128, 255]]),
        (b"P2 3 1 100\n0 50 100\n", [[0, 128, 255]]),
    ],
)
def test_greys(tmp_path: Path, data: bytes, want: list[list[int]]) -> None:
    path = written(tmp_path, data)
    assert array_of(path, channels="gray")[..., 0].tolist() == want
    assert spec_of(path).range == (0, 255)


@pytest.mark.parametrize("data", [b"P3 1 2 255 1 2 3 4 5 6 ", b"P6 1 2 255\n\1\2\3\4\5\6"])
def test_colours(tmp_path: Path, data: bytes) -> None:
    assert array_of(written(tmp_path, data)).tolist() == [[[1, 2, 3]], [[4, 5, 6]]]


@pytest.mark.parametrize("largest", range(1, 256))
def test_up_to_8_bits_are_scaled_to_255_rounding_once(tmp_path: Path, largest: int) -> None:
    path = written(tmp_path, b"P5 %d 1 %d\n" % (largest + 1, largest) + bytes(range(largest + 1)))
    want = [round(Fraction(v * 255, largest)) for v in range(largest + 1)]
    assert array_of(path, channels="keep")[0, :, 0].tolist() == want
    assert np.abs(array_of(path).astype(int) - pillow_rgb(path.read_bytes())).max() <= 1  # it rounds twice


@pytest.mark.parametrize("largest", [256, 1023, 4095, 65535])
@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("samples", [1, 3])
def test_deep_values_are_left_as_they_are(tmp_path: Path, largest: int, plain: bool, samples: int) -> None:
    x = np.random.default_rng(0).integers(0, largest + 1, (4, 5, samples), dtype=np.uint16)
    kind = {(True, 1): b"P2", (False, 1): b"P5", (True, 3): b"P3", (False, 3): b"P6"}[plain, samples]
    body = b"".join(b"%d\n" % v for v in x.flat) if plain else x.astype(">u2").tobytes()
    path = written(tmp_path, kind + b" 5 4 %d\n" % largest + body)
    assert np.array_equal(array_of(path, channels="keep"), x)
    assert spec_of(path).range == (0, largest)
    assert array_of(path, channels="rgba")[..., 3].min() == largest


@pytest.mark.parametrize(
    "data",
    [
        b"P5 2 1 255\n\x07",
        b"P5 2 1 255",
        b"P5 2 1",
        b"P5 2",
        b"P5 -2 1 255\n\x07\x07",
        b"P5 2 1 0\n\0\0",
        b"P5 2 1 65536\n\0\0\0\0",
        b"P5 2 1 7\n\x07\x08",
        b"P5 2 1 4095\n\x0f\xff\x10\x00",
        b"P2 2 1 255\n7 2",
        b"P2 2 1 255\n7 256 ",
        b"P2 2 1 255\n7 -1 ",
        b"P2 2 1 255\n7 1_0 ",
        b"P2 2 1 255\n7 x ",
        b"P2 2 1 255\n7 99999999999999999999999999 ",
        b"P2 2 1 255\n7 ",
        b"P1 2 2\n101",
        b"P1 2 2\n1012",
        b"P1 2 2\n10x1",
        b"P4 9 1\n\x80",
        b"P6 1 1 255\n\1\2",
    ],
)
def test_what_is_incomplete_or_senseless_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TconvError, match="truncated or corrupt"):
        array_of(written(tmp_path, data))


@pytest.mark.parametrize("data", [b"P5 0 1 255\n", b"P4 1 0\n"])
def test_no_pixels_are_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TconvError, match="no pixels"):
        spec_of(written(tmp_path, data))


def test_a_size_beyond_all_memory_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(TconvError, match=r"over the limit"):
        spec_of(written(tmp_path, b"P5 999999999 999999999 255\n"))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_raw_bits_are_numpys(tmp_path_factory: pytest.TempPathFactory, width: int, height: int, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2, (height, width), dtype=np.uint8)
    path = written(
        tmp_path_factory.mktemp("pbm"), b"P4 %d %d\n" % (width, height) + np.packbits(bits, axis=1).tobytes()
    )
    assert np.array_equal(array_of(path, channels="keep")[..., 0], bits == 0)
