"""JPEGs for a GPU: which it is asked for, that all must be whole, and what becomes of those that it does not take."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")

from tconv.errors import TconvError
from tconv.formats.image import jpeg, reader
from tconv.writer import ReadOptions
from tests.devices.stand_in import TorchVision, installed

PIXELS = np.random.default_rng(0).integers(0, 256, (21, 34, 3), np.uint8)
OPTIONS = ReadOptions(jpeg_device="torch")


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> TorchVision:
    return installed(monkeypatch)


def saved(path: Path, mode: str = "RGB", **how: Any) -> Path:
    Image.fromarray(PIXELS).convert(mode).save(path, "JPEG", **how)
    return path


def read(path: Path, options: ReadOptions = OPTIONS) -> tuple[Any, str]:
    """The pixels, and who decoded them."""
    (tensor,) = reader.read(path, "x", options).tensors
    source: Any = tensor.source
    return source.read(0, tensor.spec.size).reshape(tensor.spec.shape), source.decoder


def exactly(path: Path) -> Any:
    return np.asarray(Image.open(path).convert("RGB"))


@pytest.mark.parametrize("how", [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_blocks": 3}])
def test_colour_is_for_the_device(torchvision: TorchVision, tmp_path: Path, how: dict[str, Any]) -> None:
    path = saved(tmp_path / "x.jpg", **how)
    pixels, decoder = read(path)
    assert decoder == "torchvision on torch"
    np.testing.assert_array_equal(pixels, exactly(path) ^ 1)
    assert torchvision.asked == [("cpu", "RGB", path.stat().st_size)]


def test_it_is_turned_and_its_channels_are_those_asked_for(torchvision: TorchVision, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6
    path = saved(tmp_path / "x.jpg", exif=exif)
    turned = np.rot90(exactly(path) ^ 1, -1)
    np.testing.assert_array_equal(read(path)[0], turned)
    np.testing.assert_array_equal(read(path, ReadOptions("bgr", jpeg_device="torch"))[0], turned[..., ::-1])
    np.testing.assert_array_equal(read(path, ReadOptions(exif=False, jpeg_device="torch"))[0], exactly(path) ^ 1)
    grey = read(path, ReadOptions("gray", exif=False, jpeg_device="torch"))[0]
    np.testing.assert_array_equal(grey[..., 0], np.asarray(Image.fromarray(exactly(path) ^ 1).convert("L")))
    assert len(torchvision.asked) == 4


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_inks_are_not(torchvision: TorchVision, tmp_path: Path, mode: str) -> None:
    path = saved(tmp_path / "x.jpg", mode)
    pixels, decoder = read(path)
    np.testing.assert_array_equal(pixels, read(path, ReadOptions())[0])
    assert decoder == "simplejpeg"
    assert torchvision.asked == []


def test_neither_are_other_pictures(torchvision: TorchVision, tmp_path: Path) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "x.png")
    assert read(tmp_path / "x.png")[1] == "Pillow"
    assert torchvision.asked == []


def test_what_is_stored_as_rgb_is_left_to_the_exact_decoder(torchvision: TorchVision, tmp_path: Path) -> None:
    from tconv.devices import nvjpeg

    path = saved(tmp_path / "x.jpg", keep_rgb=True)
    np.testing.assert_array_equal(read(path)[0], exactly(path))
    renamed = tmp_path / "y.jpg"  # without Adobe's marker the names of the components tell
    renamed.write_bytes(without(path.read_bytes(), 0xEE))
    assert b"Adobe" not in renamed.read_bytes()
    np.testing.assert_array_equal(read(renamed)[0], exactly(path))
    assert torchvision.asked == []
    assert nvjpeg.left([path, renamed, Path("z")]) == 2
    assert nvjpeg.left([path, renamed]) == 0


def without(data: bytes, marker: int) -> bytes:
    """The file without the segments of that marker."""
    for found, body, _ in jpeg.segments(io.BytesIO(data)):
        if found == marker:
            data = data.replace(bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2, "big") + body, b"")
    return data


def test_what_is_not_whole_is_refused_before_the_device_sees_it(torchvision: TorchVision, tmp_path: Path) -> None:
    data = saved(tmp_path / "x.jpg").read_bytes()
    middle = 2 * len(data) // 3
    for broken in (data[:middle], data[:-2], data[:middle] + b"\xff\xd9" + data[-2:], data[:middle] + b"\0" * 90):
        (tmp_path / "y.jpg").write_bytes(broken)
        with pytest.raises(TconvError, match="truncated or corrupt"):
            read(tmp_path / "y.jpg")
    assert torchvision.asked == []


def test_what_the_device_does_not_take_is_decoded_exactly(torchvision: TorchVision, tmp_path: Path) -> None:
    from tconv.devices import nvjpeg

    torchvision.said = "Error while decoding JPEG images: Failed to parse jpeg stream: 4"
    path = saved(tmp_path / "x.jpg")
    np.testing.assert_array_equal(read(path)[0], exactly(path))
    assert len(torchvision.asked) == 1
    assert nvjpeg.left([path]) == 1


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (8, 8), (9, 17), (16, 1)])
def test_small_pictures(torchvision: TorchVision, tmp_path: Path, size: tuple[int, int]) -> None:
    Image.fromarray(PIXELS[: size[0], : size[1]]).save(tmp_path / "x.jpg")
    np.testing.assert_array_equal(read(tmp_path / "x.jpg")[0], exactly(tmp_path / "x.jpg") ^ 1)
    assert len(torchvision.asked) == 1
