"""doctor's findings on files that Pillow makes, one for each oddity; and that the options it names are there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import typer
from PIL import Image, ImageCms

from tconv import registry, runner
from tconv.cli.app import with_verbs
from tconv.diagnose import examine as module
from tconv.diagnose.examine import Diagnosis, Sizes, examine
from tconv.diagnose.findings import RULES
from tconv.errors import TconvError
from tconv.evaluate import evaluate
from tconv.inputs import find
from tconv.pipeline import steps_from_text
from tconv.request import Silent
from tconv.writer import ReadOptions
from tests.shared_data import shared


def noise(*shape: int, seed: int = 0, top: int = 256) -> Any:
    return np.random.default_rng(seed).integers(0, top, shape, dtype=np.uint8)


def photo(height: int = 24, width: int = 30, seed: int = 0) -> Image.Image:
    return Image.fromarray(noise(height, width, 3, seed=seed))


def of(*paths: Path, quick: bool = False) -> Diagnosis:
    return examine([str(p) for p in paths], quick=quick, progress=Silent())


def told(found: Diagnosis) -> dict[str, dict[str, str]]:
    return {f.key: {path.name: detail for path, detail in f.files} for f in found.findings}


def exif(orientation: int) -> Image.Exif:
    made = Image.Exif()
    made[0x0112] = orientation
    return made


def lab() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


def save_animated(path: Path) -> None:
    photo().save(path, save_all=True, append_images=[photo(seed=1), photo(seed=2)], lossless=True)


ODDITIES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    # key: how such a file is made, its name, what is said of it
    "suffix": (lambda p: photo().save(p, "PNG"), "x.jpg", "is PNG"),
    "exif": (lambda p: photo().save(p, exif=exif(6)), "x.jpg", "orientation 6"),
    "damaged-exif": (lambda p: photo().save(p, exif=b"Exif\0\0XX"), "x.jpg", ""),
    "frames": (save_animated, "x.webp", "3 frames"),
    "alpha": (lambda p: Image.fromarray(noise(9, 9, 4)).save(p), "x.png", ""),
    "palette": (lambda p: photo().quantize(16).save(p), "x.png", ""),
    "one-bit": (lambda p: Image.fromarray(noise(9, 9) > 99).save(p), "x.png", ""),
    "grey": (lambda p: Image.fromarray(noise(9, 9)).save(p), "x.png", ""),
    "grey-in-colour": (lambda p: Image.fromarray(np.repeat(noise(9, 9, 1), 3, axis=2)).save(p), "x.png", ""),
    "cmyk": (lambda p: Image.fromarray(noise(9, 9, 4), "CMYK").save(p), "x.jpg", ""),
    "profile": (lambda p: photo().save(p, icc_profile=lab()), "x.png", "Lab identity built-in"),
    "deep": (lambda p: Image.fromarray(noise(9, 9).astype(np.uint16) * 257).save(p), "x.png", "uint16, white is 65535"),
    "floats": (
        lambda p: Image.fromarray(np.linspace(-1, 2.5, 81, dtype=np.float32).reshape(9, 9)).save(p),
        "x.tiff",
        "float32, values -1…2.5",
    ),
    "low": (lambda p: Image.fromarray(noise(9, 9, 3, top=21)).save(p), "x.png", "up to 20 of 255"),
    "flat": (lambda p: Image.new("RGB", (9, 9), (7, 7, 7)).save(p), "x.png", "all 7"),
    "small": (lambda p: photo(1, 9).save(p), "x.png", "1x9"),
    "long": (lambda p: photo(8, 33).save(p), "x.png", "8x33"),
}  # fmt: skip
BESIDES = {"floats": {"grey"}, "deep": {"grey"}}  # what else such a file is


@pytest.mark.parametrize("key", ODDITIES)
def test_every_oddity_is_found_and_nothing_else(tmp_path: Path, key: str) -> None:
    make, name, detail = ODDITIES[key]
    make(tmp_path / name)
    found = told(of(tmp_path))
    assert found.pop(key) == {name: detail}
    assert set(found) == BESIDES.get(key, set())


def test_every_rule_is_tested() -> None:
    assert {rule.key for rule in RULES} == {*ODDITIES, "same-bytes", "same-pixels"}


def test_a_plain_photo_is_not_odd(tmp_path: Path) -> None:
    photo().save(tmp_path / "x.jpg")
    found = of(tmp_path)
    assert found.findings == ()
    assert found.problems == ()
    assert found.formats == {"JPEG": 1}
    assert found.sizes == Sizes(1, (24, 30), (24, 30), (24, 30))
    assert found.bytes == (tmp_path / "x.jpg").stat().st_size


def test_the_options_it_names_are_those_of_convert() -> None:
    (convert,) = with_verbs(["convert"]).registered_commands
    params = typer.main.get_command_from_info(convert, pretty_exceptions_short=False, rich_markup_mode=None).params
    known = {name for param in params for name in param.opts}
    texts = [text for rule in RULES for text in (rule.does, rule.option)]
    named = {option for text in texts for option in re.findall(r"--[a-z-]+", text)}
    assert {"--no-exif", "--frames", "--range"} <= named
    assert named <= known
    chains = [chain for text in texts for chain in re.findall(r"--step '(.*?)'", text)]
    assert len(chains) == 2
    for chain in chains:
        steps_from_text([chain.replace("N", "224")])


def test_duplicates_are_those_of_earlier_files(tmp_path: Path) -> None:
    photo().save(tmp_path / "1.png")
    shutil.copy(tmp_path / "1.png", tmp_path / "2.png")
    photo().save(tmp_path / "3.bmp")
    shutil.copy(tmp_path / "3.bmp", tmp_path / "10.bmp")
    photo(seed=1).save(tmp_path / "4.png")
    found = told(of(tmp_path))
    assert found["same-bytes"] == {"2.png": f"as {tmp_path}/1.png", "10.bmp": f"as {tmp_path}/3.bmp"}
    assert found["same-pixels"] == {"3.bmp": f"as {tmp_path}/1.png"}


def test_an_image_turned_is_no_duplicate_of_one_that_is_not(tmp_path: Path) -> None:
    Image.fromarray(noise(9, 9, 3)).save(tmp_path / "a.png")
    Image.fromarray(noise(9, 9, 3)).save(tmp_path / "b.png", exif=exif(2))
    assert set(told(of(tmp_path))) == {"exif"}


def test_unequal_sizes_and_dtypes_are_those_of_the_few(tmp_path: Path) -> None:
    for n in range(3):
        photo(seed=n).save(tmp_path / f"{n}.png")
    photo(24, 40).save(tmp_path / "wide.png")
    Image.fromarray(noise(24, 30).astype(np.uint16) * 257).save(tmp_path / "deep.png")
    found = of(tmp_path)
    assert told(found)["sizes"] == {"wide.png": "24x40"}
    assert told(found)["dtypes"] == {"deep.png": "uint16"}
    assert found.sizes == Sizes(2, (24, 30), (24, 30), (24, 40))


def test_sizes_are_upright(tmp_path: Path) -> None:
    photo(24, 30).save(tmp_path / "a.jpg")
    photo(30, 24).save(tmp_path / "b.jpg", exif=exif(6))
    found = of(tmp_path)
    assert found.sizes == Sizes(1, (24, 30), (24, 30), (24, 30))
    assert "sizes" not in told(found)


def test_an_opaque_alpha_is_told(tmp_path: Path) -> None:
    Image.fromarray(noise(9, 9, 3)).convert("RGBA").save(tmp_path / "x.png")
    assert told(of(tmp_path))["alpha"] == {"x.png": "opaque everywhere"}
    assert told(of(tmp_path, quick=True))["alpha"] == {"x.png": ""}


def transparent(stored: Any, alpha: Any) -> Image.Image:
    return Image.fromarray(np.dstack([stored, np.broadcast_to(alpha, stored.shape[:2])]).astype(np.uint8))


def test_colours_under_transparency_are_nobodys(tmp_path: Path) -> None:
    """What is stored there may be anything: what is judged is the picture over white, as it is converted."""
    half = np.array([[255] * 8 + [0] * 8] * 9)
    dark, bright = noise(9, 16, 3, top=21), noise(9, 16, 3)
    transparent(dark, half).save(tmp_path / "dark.png")  # 20 at most where it is stored, and white where it shows
    transparent(np.zeros((9, 16, 3)), half).save(tmp_path / "logo.png")  # black on nothing
    transparent(bright, 0).save(tmp_path / "nothing.png")
    grey = np.where(half[..., None] > 0, noise(9, 16, 1), bright)
    transparent(grey, half).save(tmp_path / "grey.png")
    found = told(of(tmp_path))
    assert "low" not in found
    assert found["flat"] == {"nothing.png": "all 255"}
    assert found["grey-in-colour"] == {"grey.png": "", "logo.png": ""}


def test_duplicates_may_differ_where_nobody_sees_it(tmp_path: Path) -> None:
    half = np.array([[255] * 8 + [0] * 8] * 9)
    shown = noise(9, 16, 3)
    transparent(shown, half).save(tmp_path / "a.png")
    transparent(np.where(half[..., None] > 0, shown, 7), half).save(tmp_path / "b.png")
    transparent(np.where(half[..., None] > 0, 7, shown), half).save(tmp_path / "c.png")
    assert told(of(tmp_path))["same-pixels"] == {"b.png": f"as {tmp_path}/a.png"}


def test_transparency_of_palettes_and_deep_images_is_the_same(tmp_path: Path) -> None:
    pixels = np.array([[0] * 8 + [1] * 8] * 9, np.uint8)
    made = Image.fromarray(pixels, "P")
    made.putpalette([3, 3, 3, 9, 200, 5])
    made.save(tmp_path / "p.png", transparency=1)
    deep = np.zeros((9, 16, 4), np.uint16)
    deep[:, :8, :3], deep[:, :8, 3] = 30000, 65535
    deep[:, 8:, 0] = 7
    cv2.imwrite(str(tmp_path / "d.png"), deep)
    found = told(of(tmp_path))
    assert found["grey-in-colour"] == {"d.png": "", "p.png": ""}
    assert "flat" not in found


def test_nan_among_floats_is_told(tmp_path: Path) -> None:
    Image.fromarray(np.array([[np.nan] * 9] * 9, np.float32)).save(tmp_path / "x.tiff")
    assert told(of(tmp_path))["floats"] == {"x.tiff": "float32, NaN among the values"}


def bad_files(folder: Path) -> dict[str, str]:
    """Files that cannot be converted, with the beginning of the reason."""
    photo(64, 64).save(folder / "cut.jpg")
    whole = (folder / "cut.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "page.jpg").write_text("<!DOCTYPE html><html><title>404 Not Found</title></html>")
    (folder / "lfs.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")
    (folder / "empty.png").write_bytes(b"")
    (folder / "bomb.ppm").write_bytes(b"P6 100000 100000 255\n")
    return {
        "cut.jpg": "truncated or corrupt",
        "page.jpg": "an HTML page (404 Not Found)",
        "lfs.png": "a Git LFS pointer",
        "empty.png": "the file is empty",
        "bomb.ppm": "10,000,000,000 pixels",
    }


def test_what_cannot_be_converted_is_what_convert_refuses(tmp_path: Path) -> None:
    wanted = bad_files(tmp_path)
    photo().save(tmp_path / "good.png")
    found = of(tmp_path)
    assert [Path(p.file).name for p in found.problems] == sorted(wanted)
    for problem in found.problems:
        assert problem.reason.startswith(wanted[Path(problem.file).name])
        assert problem.remedy
    assert set(told(found)) == {"refused"}
    assert set(told(found)["refused"]) == set(wanted)
    assert found.sizes == Sizes(1, (24, 30), (24, 30), (24, 30))


def test_quick_knows_of_no_pixels_and_decodes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad_files(tmp_path)
    Image.new("RGB", (9, 9)).save(tmp_path / "flat.png")
    monkeypatch.setattr(module, "pixels", None)
    found = of(tmp_path, quick=True)
    assert "cut.jpg" not in told(found)["refused"]
    assert len(found.problems) == 4
    assert "flat" not in told(found)


def test_very_many_broken_files_are_all_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run gives up at some number of them; doctor goes on."""
    monkeypatch.setattr(runner, "ENOUGH", 2)
    photo(64, 64).save(tmp_path / "0.png")
    whole = (tmp_path / "0.png").read_bytes()
    for n in range(1, 8):
        (tmp_path / f"{n}.png").write_bytes(whole[:-40] + bytes([n]) * 40)
    photo().save(tmp_path / "9.png")
    found = of(tmp_path)
    assert [Path(p.file).name for p in found.problems] == [f"{n}.png" for n in range(1, 8)]


def test_files_that_are_ignored_are_listed_with_what_they_are(tmp_path: Path) -> None:
    photo().save(tmp_path / "a.png")
    photo().save(tmp_path / "b.jpg_large", "JPEG")
    (tmp_path / "notes.txt").write_text("notes")
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert of(tmp_path).ignored == (
        (tmp_path / "b.jpg_large", "JPEG"), (tmp_path / "notes.txt", ""), (tmp_path / "x.npy", "")
    )  # fmt: skip


def test_arrays_are_for_others(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(TconvError, match="tconv check") as caught:
        of(tmp_path)
    assert caught.value.file == str(tmp_path / "x.npy")
    photo().save(tmp_path / "a.png")
    found = of(tmp_path / "a.png", tmp_path / "x.npy")
    assert (found.images, found.others) == (1, (tmp_path / "x.npy",))
    with pytest.raises(TconvError, match="no such file"):
        of(tmp_path / "nowhere")


def test_real_images_convert_unless_it_says_that_they_do_not() -> None:
    """It agrees with the reader on every file of a hard collection."""
    folder = shared("images", "python-pillow__Pillow")
    found = of(folder)
    refused = {p.file for p in found.problems}
    assert found.images > 100
    assert refused
    for one in find([str(folder)]).inputs:
        try:
            (tensor,) = registry.reader(one.format)(one.path, one.name, ReadOptions()).tensors
            evaluate(tensor)
            assert str(one.path) not in refused
        except TconvError:
            assert str(one.path) in refused
