"""Images: what a file becomes under each option, the limits, and that nothing but a sentence comes of bad ones."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFile

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
from tests.formats.image.made import (
    AVIF,
    P3,
    SRGB,
    array_of,
    curve,
    oriented,
    photo,
    png,
    png_of,
    profile,
    saved,
    spec_of,
    tensor_of,
    tiff,
    written,
)

if TYPE_CHECKING:
    from tconv.ops import Array

RGB = photo()
FORMS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "JPEG2000", *(["AVIF"] if AVIF else []))
XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'


def refusal(path: Path, **options: Any) -> TconvError:
    """What is said when the file is read, or at the latest when it is decoded."""
    with pytest.raises(TconvError) as caught:
        array_of(path, **options)
    assert caught.value.file == str(path)
    return caught.value


# ------------------------------------------------------------------------------------- the public cases
def test_adobe_inks_become_rgb(tmp_path: Path) -> None:
    patches = [[255, 0, 0, 0], [0, 255, 0, 0], [0, 0, 255, 0], [0, 0, 0, 255], [0, 0, 0, 0], [0, 255, 255, 128]]
    inks = np.repeat(np.repeat(np.array(patches, np.uint8)[None], 16, 0), 16, 1).reshape(16, 96, 4)
    image = Image.frombuffer("CMYK", (96, 16), np.ascontiguousarray(inks), "raw", "CMYK", 0, 1)
    path = written(tmp_path, saved(image, "JPEG", quality=100, subsampling=0))
    want = np.array([[0, 255, 255], [255, 0, 255], [255, 255, 0], [0, 0, 0], [255, 255, 255], [127, 0, 0]])
    assert np.abs(array_of(path)[:, 8::16].astype(int) - want).max() <= 4
    assert np.abs(array_of(path, channels="keep").astype(int) - inks).max() <= 4


def test_exif_orientation_is_applied_unless_told_otherwise(tmp_path: Path) -> None:
    x = np.zeros((16, 32, 3), np.uint8)
    x[:8, :16], x[:8, 16:], x[8:, :16], x[8:, 16:] = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
    path = written(tmp_path, saved(x, "JPEG", quality=100, subsampling=0, exif=b"Exif\0\0" + oriented(6)))
    assert spec_of(path).shape == (32, 16, 3)
    assert np.abs(array_of(path).astype(int) - np.rot90(x, -1)).max() <= 4
    assert np.abs(array_of(path, exif=False).astype(int) - x).max() <= 4


def test_palette_labels(tmp_path: Path) -> None:
    index = np.zeros((6, 8), np.uint8)
    index[1:4, 2:6], index[4, :], index[5, 5:] = 15, 255, 1
    colours = np.random.default_rng(0).integers(0, 256, (256, 3), dtype=np.uint8)
    path = written(tmp_path, png(8, 6, 8, 3, [row.tobytes() for row in index], [(b"PLTE", colours.tobytes())]))
    spec = spec_of(path, palette="index")
    assert (spec.shape, spec.axes, spec.dtype, spec.range) == ((6, 8), "HW", DTYPES["uint8"], None)
    assert np.array_equal(array_of(path, palette="index"), index)
    assert np.array_equal(array_of(path), colours[index])


def test_alpha_hides_what_is_under_it(tmp_path: Path) -> None:
    x = np.array([[[200, 60, 30, 255], [240, 30, 10, 0]], [[100, 100, 100, 128], [0, 0, 0, 0]]], np.uint8)
    path = written(tmp_path, png_of(x))
    assert array_of(path).tolist() == [[[200, 60, 30], [255] * 3], [[177] * 3, [255] * 3]]
    assert array_of(path, alpha="black").tolist() == [[[200, 60, 30], [0] * 3], [[50] * 3, [0] * 3]]
    assert np.array_equal(array_of(path, alpha="drop"), x[..., :3])
    for channels in ("rgba", "keep"):
        assert np.array_equal(array_of(path, channels=channels), x)


def test_float_tiff_is_bit_exact(tmp_path: Path) -> None:
    x = np.array([[0.25, -3.0, 1000.5], [np.nan, 1e-20, 65536.0]], np.float32)
    path = written(tmp_path, saved(x, "TIFF"))
    assert spec_of(path).range is None
    assert array_of(path, channels="keep").tobytes() == x.tobytes()
    assert array_of(path).tobytes() == np.repeat(x[..., None], 3, -1).tobytes()


@pytest.mark.parametrize("kept", [0.6, -2])
def test_a_truncated_jpeg_is_refused(tmp_path: Path, kept: float) -> None:
    whole = saved(photo(64, 64), "JPEG", quality=100, subsampling=0)
    path = written(tmp_path, whole[: int(len(whole) * kept) if kept > 0 else int(kept)])
    assert "truncated or corrupt" in str(refusal(path))


def test_a_decompression_bomb_is_refused_from_its_header(tmp_path: Path) -> None:
    path = written(tmp_path, png(50000, 50000, 1, 0, [bytes(6250)] * 10))
    tracemalloc.start()
    try:
        with pytest.raises(TconvError) as caught:
            read(path, "x", ReadOptions())
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    for part in ("2,500,000,000", "50000x50000", "limit of 89,478,485", "--max-pixels"):
        assert part in str(caught.value)


def test_16_bit_grey_is_not_clipped(tmp_path: Path) -> None:
    x = np.array([[0, 127, 255, 256, 40000, 65535]], np.uint16)
    path = written(tmp_path, png_of(x[..., None]))
    assert spec_of(path).range == (0, 65535)
    assert np.array_equal(array_of(path, channels="keep")[..., 0], x)
    assert np.array_equal(array_of(path), np.repeat(x[..., None], 3, -1))


def test_bgr_is_contiguous(tmp_path: Path) -> None:
    for form in ("PNG", "JPEG"):
        path = written(tmp_path, saved(RGB, form))
        assert np.array_equal(array_of(path, channels="bgr"), array_of(path)[..., ::-1])


# --------------------------------------------------------------------------------------------- the spec
@pytest.mark.parametrize("form", FORMS)
def test_an_rgb_image_of_each_kind(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, saved(RGB, form))
    stream = read(path, "cats/a", ReadOptions())
    (tensor,) = stream.tensors
    assert (tensor.spec.name, tensor.spec.shape, tensor.spec.axes) == ("cats/a", (24, 40, 3), "HWC")
    assert (tensor.spec.dtype, tensor.spec.range) == (DTYPES["uint8"], (0, 255))
    assert (stream.extra.kind, stream.extra.tree, stream.notes) == ("data", None, ())
    assert tensor.source.path == path
    assert not tensor.source.seekable
    assert np.array_equal(array_of(path), np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB")))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("channels", ["rgb", "bgr", "gray", "rgba", "keep"])
def test_channels_of_each_kind(tmp_path: Path, form: str, channels: str) -> None:
    path = written(tmp_path, saved(RGB, form))
    rgb = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    want = np.asarray(rgb.convert({"gray": "L", "rgba": "RGBA"}.get(channels, "RGB")))
    want = want[..., ::-1] if channels == "bgr" else want.reshape(24, 40, -1)
    assert spec_of(path, channels=channels).shape == want.shape
    assert np.array_equal(array_of(path, channels=channels), want)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "BMP", "TIFF", "PPM"])
def test_grey_of_each_kind(tmp_path: Path, form: str) -> None:
    x = RGB[..., 0]
    path = written(tmp_path, saved(x, form))
    stored = np.asarray(Image.open(io.BytesIO(path.read_bytes())))
    assert spec_of(path, channels="keep").shape == (24, 40, 1)
    assert np.array_equal(array_of(path, channels="keep")[..., 0], stored)
    assert np.array_equal(array_of(path, channels="gray")[..., 0], stored)
    assert np.array_equal(array_of(path), np.repeat(stored[..., None], 3, -1))


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_one_bit_of_each_kind(tmp_path: Path, form: str) -> None:
    x = RGB[..., 0] > 127
    path = written(tmp_path, saved(Image.fromarray(x), form))
    spec = spec_of(path, channels="keep")
    assert (spec.dtype, spec.shape, spec.range) == (DTYPES["bool"], (24, 40, 1), (0, 1))
    kept = array_of(path, channels="keep")
    assert kept.tobytes() == x.astype(np.uint8).tobytes()  # true is the byte 1
    assert spec_of(path).range == (0, 255)
    assert np.array_equal(array_of(path), np.repeat(x[..., None] * np.uint8(255), 3, -1))


@pytest.mark.parametrize("form", FORMS)
def test_indices_of_what_has_none_are_refused(tmp_path: Path, form: str) -> None:
    if form == "GIF":
        assert spec_of(written(tmp_path, saved(RGB, form)), palette="index").shape == (24, 40)
    else:
        assert "not a palette image" in str(refusal(written(tmp_path, saved(RGB, form)), palette="index"))


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "GIF"])
def test_palettes_of_each_kind(tmp_path: Path, form: str) -> None:
    image = Image.fromarray(RGB).quantize(16)
    path = written(tmp_path, saved(image, form))
    stored = Image.open(io.BytesIO(path.read_bytes()))
    assert np.array_equal(array_of(path), np.asarray(stored.convert("RGB")))
    assert np.array_equal(array_of(path, palette="index"), np.asarray(stored))
    assert spec_of(path, channels="keep").shape == (24, 40, 3)


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_of_each_kind(tmp_path: Path, form: str, value: int) -> None:
    options: dict[str, Any] = {"tiffinfo": {274: value}} if form == "TIFF" else {"exif": b"Exif\0\0" + oriented(value)}
    if form == "PNG":
        options = {"exif": oriented(value)}
    plain = array_of(written(tmp_path, saved(RGB, form), "plain"))
    path = written(tmp_path, saved(RGB, form, **options))
    assert np.array_equal(array_of(path), upright(plain, value))
    assert np.array_equal(array_of(path, exif=False), plain)


def upright(x: Array, value: int) -> Array:
    """What EXIF's standard says of each value: where the stored first row and first column are."""
    turned: dict[int, Array] = {
        1: x,
        2: x[:, ::-1],
        3: x[::-1, ::-1],
        4: x[::-1],
        5: x.swapaxes(0, 1),
        6: np.rot90(x, -1),
        7: x[::-1, ::-1].swapaxes(0, 1),
        8: np.rot90(x),
    }
    return turned[value]


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "WEBP"])
def test_an_orientation_in_xmp_counts_where_exif_states_none(tmp_path: Path, form: str, value: int) -> None:
    plain = array_of(written(tmp_path, saved(RGB, form), "plain"))
    path = written(tmp_path, saved(RGB, form, xmp=XMP % value))
    assert np.array_equal(array_of(path), upright(plain, value))
    assert np.array_equal(array_of(path, exif=False), plain)
    both = saved(RGB, form, xmp=XMP % value, exif=b"Exif\0\0" + oriented(3))
    assert np.array_equal(array_of(written(tmp_path, both)), upright(plain, 3))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("name", ["Display P3", "a name\x1b[2Jof tricks"])
def test_a_profile_is_named_in_a_note_and_applied_to_nothing(tmp_path: Path, form: str, name: str) -> None:
    path = written(tmp_path, saved(RGB, form, icc_profile=profile(P3, curve(2.2), name)))
    shown = name.replace("\x1b", "\\x1b")
    assert read(path, "x", ReadOptions()).notes == (f"{path}: its ICC profile ({shown}) is not applied",)
    assert np.array_equal(array_of(path), array_of(written(tmp_path, saved(RGB, form), "plain")))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("data", [profile(SRGB, curve(2.2), "any"), b"damaged" * 30])
def test_srgb_and_damaged_profiles_are_not_worth_a_note(tmp_path: Path, form: str, data: bytes) -> None:
    path = written(tmp_path, saved(RGB, form, icc_profile=data))
    assert read(path, "x", ReadOptions()).notes == ()
    assert np.array_equal(array_of(path), array_of(written(tmp_path, saved(RGB, form), "plain")))


def test_broken_exif_is_a_note(tmp_path: Path) -> None:
    path = written(tmp_path, saved(RGB, "JPEG", exif=b"Exif\0\0" + b"Lorem ipsum"))
    stream = read(path, "x", ReadOptions())
    assert stream.notes == (f"{path}: its EXIF data are damaged, so it is taken as it is stored",)
    assert read(path, "x", ReadOptions(exif=False)).notes == ()
    assert array_of(path).shape == (24, 40, 3)


# ------------------------------------------------------------------------------------------------ frames
@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_frames_of_each_kind(tmp_path: Path, form: str) -> None:
    pictures = [Image.fromarray(photo(seed=seed)) for seed in range(3)]
    options: dict[str, Any] = {"lossless": True} if form == "WEBP" else {}
    path = written(tmp_path, saved(pictures[0], form, save_all=True, append_images=pictures[1:], **options))
    stream = read(path, "x", ReadOptions())
    assert stream.tensors[0].spec.shape == (24, 40, 3)
    assert stream.notes == (f"{path}: the first of 3 frames; --frames all reads all",)
    every = read(path, "x", ReadOptions(frames="all"))
    assert (every.tensors[0].spec.shape, every.tensors[0].spec.axes, every.notes) == ((3, 24, 40, 3), "NHWC", ())
    stored = Image.open(io.BytesIO(path.read_bytes()))
    for i, frame in enumerate(array_of(path, frames="all")):
        stored.seek(i)
        assert np.array_equal(frame, np.asarray(stored.convert("RGB")))
    assert np.array_equal(array_of(path), array_of(path, frames="all")[0])


def test_all_frames_of_one_are_the_image(tmp_path: Path) -> None:
    for form in FORMS:
        path = written(tmp_path, saved(RGB, form))
        assert spec_of(path, frames="all") == spec_of(path)


def test_pixels_of_all_frames_count(tmp_path: Path) -> None:
    pictures = [Image.fromarray(photo(seed=seed)) for seed in range(3)]
    path = written(tmp_path, saved(pictures[0], "GIF", save_all=True, append_images=pictures[1:]))
    assert array_of(path, max_pixels=24 * 40).shape == (24, 40, 3)
    assert array_of(path, frames="all", max_pixels=3 * 24 * 40).shape == (3, 24, 40, 3)
    assert "2,880 pixels (40x24, 3 frames)" in str(refusal(path, frames="all", max_pixels=3 * 24 * 40 - 1))


# ------------------------------------------------------------------------------------- limits and refusals
def test_the_limit_can_be_raised_and_lowered(tmp_path: Path) -> None:
    path = written(tmp_path, saved(RGB, "PNG"))
    assert "960 pixels (40x24) are over the limit of 959" in str(refusal(path, max_pixels=959))
    assert array_of(path, max_pixels=960).shape == (24, 40, 3)


@pytest.mark.parametrize("form", FORMS)
def test_the_content_decides_and_not_the_name(tmp_path: Path, form: str) -> None:
    data = saved(RGB, form)
    want = array_of(written(tmp_path, data, "right"))
    for name in ("x.jpg", "x.png", "x.tif", "x.txt"):
        assert np.array_equal(array_of(written(tmp_path, data, name)), want)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    for data in (b"<html>404</html>", b"\0" * 100, b"RIFF\0\0\0\0WAVE"):
        assert "no image that tconv reads" in str(refusal(written(tmp_path, data, "x.png")))


def test_a_file_that_changes_in_between_is_refused(tmp_path: Path) -> None:
    for form in FORMS:
        path = written(tmp_path, saved(RGB, form))
        tensor = tensor_of(path)
        written(tmp_path, saved(photo(24, 48), form))
        with pytest.raises(TconvError, match="changed while it was read"):
            tensor.source.read(0, tensor.spec.size)


def test_every_form_decodes_into_what_it_is_given(tmp_path: Path) -> None:
    for form in FORMS:
        tensor = tensor_of(written(tmp_path, saved(RGB, form)))
        out = np.zeros(tensor.spec.size, np.uint8)
        assert tensor.source.read(0, tensor.spec.size, out) is out
        assert np.array_equal(out, tensor.source.read(0, tensor.spec.size))


def test_threads_may_decode_different_kinds_at_once(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, saved(photo(64, 64, seed), form), f"{form}{seed}") for seed in range(4) for form in FORMS
    ]
    want = [array_of(path) for path in paths]
    wrong: list[Path] = []

    def work() -> None:
        wrong.extend(p for p, x in zip(paths, want, strict=True) if not np.array_equal(array_of(p), x))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


NOISY = """
import pathlib, sys
from tconv.errors import TconvError
from tconv.formats.image.reader import read
from tconv.writer import ReadOptions
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    for frames in ("first", "all"):
        try:
            (tensor,) = read(path, "x", ReadOptions(frames=frames)).tensors
            tensor.source.read(0, tensor.spec.size)
        except TconvError:
            pass
"""


def test_decoders_keep_quiet(tmp_path: Path) -> None:
    """Damage that libpng, libtiff, Pillow and OpenCV each like to print a line about."""
    deep = np.random.default_rng(0).integers(0, 65536, (30, 40, 3), dtype=np.uint16)
    files = {
        "png16": png_of(deep)[:57] + b"\x05" + png_of(deep)[58:],
        "png8": saved(RGB, "PNG")[:-30],
        "tiff16": tiff(deep, compression=5, data=b"\x80" + bytes(range(200))),
        "tiff-jpeg": saved(RGB, "TIFF", compression="jpeg").replace(b"\xff\xdb", b"\xff\xe1"),
        "tiff-lzw": tiff(RGB, compression=5, data=bytes(range(200))),
        "tiff-zip": tiff(RGB, compression=8, data=b"x\x9c" + bytes(200)),
        "tiff-g4": tiff(RGB[..., :1], bits=1, compression=4, data=bytes(range(100))),
        "tiff-samples": tiff(np.zeros((4, 5, 7), np.uint8)),
        "tiff-odd": tiff(RGB, more=[(700, "B", [1] * 50), (34675, "I", [9] * 5), (282, "I", [1, 2, 3])]),
        "webp": saved(RGB, "WEBP")[:60] + bytes(100),
        "gif": saved(RGB, "GIF")[:900] + bytes(100) + b";",
        "jpeg": saved(RGB, "JPEG")[:-100],
        "jpeg2000": saved(RGB, "JPEG2000")[:-100],
        "jpeg2000-odd": saved(RGB, "JPEG2000")[:-300] + bytes(200) + saved(RGB, "JPEG2000")[-100:],
    }
    if AVIF:
        files |= {"avif": saved(RGB, "AVIF")[:-100], "avif-odd": saved(RGB, "AVIF")[:-200] + bytes(200)}
    for name, data in files.items():
        written(tmp_path, data, name)
    done = subprocess.run([sys.executable, "-c", NOISY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_jpegs_need_neither_opencv_nor_pillow(tmp_path: Path) -> None:
    path = written(tmp_path, saved(RGB, "JPEG"))
    code = (
        "import sys, pathlib; from tconv.formats.image.reader import read; from tconv.writer import ReadOptions\n"
        "t = read(pathlib.Path(sys.argv[1]), 'x', ReadOptions()).tensors[0]; t.source.read(0, t.spec.size)\n"
        "print(sorted({'cv2', 'PIL', 'torch', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------------------------- who decodes
def _deep(mode: str) -> Array:
    return np.zeros((4, 5, 3) if mode == "rgb" else (4, 5), np.uint16)


def _spy(called: list[str], library: str, real: Any) -> Any:
    def spying(*given: Any, **more: Any) -> Any:
        called.append(library)
        return real(*given, **more)

    return spying


@pytest.mark.parametrize(
    ("name", "decoder"),
    [
        ("x.jpg", "simplejpeg"), ("x.png", "Pillow"), ("gray16.png", "Pillow"), ("rgb16.png", "OpenCV"),
        ("x.webp", "Pillow"), ("x.bmp", "Pillow"), ("x.tiff", "Pillow"), ("rgb16.tiff", "OpenCV"), ("x.jp2", "Pillow"),
        ("x.ppm", "NumPy"),
    ],
)  # fmt: skip
def test_who_decodes_is_who_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, decoder: str
) -> None:
    path = tmp_path / name
    if "16" in name:
        cv2.imwrite(str(path), _deep(name.partition("16")[0]))
    else:
        Image.fromarray(RGB).save(path)
    called: list[str] = []
    for library, owner, function in (
        ("simplejpeg", importlib.import_module("simplejpeg"), "decode_jpeg"),
        ("OpenCV", cv2, "imdecode"),
        ("OpenCV", cv2, "imdecodemulti"),
        ("Pillow", ImageFile.ImageFile, "load"),
    ):
        monkeypatch.setattr(owner, function, _spy(called, library, getattr(owner, function)))
    array_of(path)
    assert (set(called) or {"NumPy"}) == {decoder}
    source: Any = tensor_of(path).source
    assert source.decoder == decoder
