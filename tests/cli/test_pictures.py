"""Pictures as outputs, through the command line: batches back to their pixels, masks, pictures of pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file, save_file

from tests.cli.conftest import Ran
from tests.shared_data import shared

Tconv = Callable[..., Ran]
FORWARD = ("--resize", "32x32", "--normalize", "--stats", "imagenet", "--layout", "CHW")


def photo(height: int = 24, width: int = 40, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def pixels(path: str | Path) -> Any:
    with Image.open(path) as image:
        return np.asarray(image)


def resized(path: Path) -> Any:
    """What Pillow makes of a photo."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB").resize((32, 32), Image.Resampling.BILINEAR))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "cats").mkdir(parents=True)
    for n, name in enumerate(("a.png", "b.png", "cats/c.png")):
        Image.fromarray(photo(40 + n, 50 - n, n)).save(folder / name)
    return folder


def paths(folder: str) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in Path(folder).rglob("*.*"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_batch_becomes_the_pixels_that_it_was_made_of(tconv: Tconv, photos: Path, dtype: str) -> None:
    assert tconv(photos, *FORWARD, "--to", dtype, "-o", "batch.npy").code == 0
    assert tconv("batch.npy", "-o", "png/", "--denormalize", "imagenet") == Ran(0, "png/\n", "")
    assert paths("png") == ["batch-00000.png", "batch-00001.png", "batch-00002.png"]
    for n, name in enumerate(("a.png", "b.png", "cats/c.png")):
        np.testing.assert_array_equal(pixels(f"png/batch-0000{n}.png"), resized(photos / name))


def test_what_bears_names_gets_them_back(tconv: Tconv, photos: Path) -> None:
    assert tconv(photos, *FORWARD, "-o", "x.safetensors").code == 0
    ran = tconv("x.safetensors", "-o", "out/", "--denormalize", "imagenet", "--format", "tiff", "--verify")
    assert ran == Ran(0, "out/\n", "")
    assert paths("out") == ["a.tif", "b.tif", "cats/c.tif"]
    np.testing.assert_array_equal(pixels("out/cats/c.tif"), resized(photos / "cats" / "c.png"))


@pytest.mark.parametrize("name", ["recurser__exif-orientation-examples", "pngsuite"])
def test_real_pictures_there_and_back(tconv: Tconv, name: str) -> None:
    folder = shared("images", name)
    bad = ("--on-bad", "skip", "-q")
    tconv(folder, *FORWARD, "-o", "batch.npy", *bad)
    assert tconv("batch.npy", "-o", "png/", "--denormalize", "imagenet") == Ran(0, "png/\n", "")
    tconv(folder, "--step", "resize(32x32) | scale(uint8)", "-o", "want.npy", *bad)
    got = np.stack([pixels(p) for p in sorted(Path("png").iterdir())])
    np.testing.assert_array_equal(got, np.load("want.npy"))


def test_the_plan_and_the_report(tconv: Tconv) -> None:
    np.save("out.npy", np.full((2, 3, 4, 5), 0.5, np.float32))
    ran = tconv("out.npy", "-o", "png/", "--denormalize", "none", "-n")
    assert ran.out.startswith("steps: pictures | denormalize('none') | unstack | scale(uint8)\n")
    assert "png/out-00001.png (PNG, at most " in ran.out
    assert "total: at most " in ran.out
    assert tconv("out.npy", "-o", "png/", "--denormalize", "none", "--report", "r.json").code == 0
    made = json.loads(Path("r.json").read_text())["outputs"]
    assert [o["bytes"] for o in made] == [Path(o["path"]).stat().st_size for o in made]
    assert (pixels("png/out-00000.png") == 128).all()  # 127.5, to even


def test_values_outside_are_told_and_clamped(tconv: Tconv) -> None:
    x = np.full((2, 1, 4, 5), 0.25, np.float32)
    x[1, 0, 0, :2] = 1.5, -3
    np.save("out.npy", x)
    ran = tconv("out.npy", "-o", "png/", "--denormalize", "none")
    assert (ran.code, ran.err) == (
        0,
        (
            "out.npy: out-00001: denormalize('none'): 2 of 20 values lie outside the range [0, 1]; from -3 to 1.5; "
            "as pixels they become the nearest in it\n"
        ),
    )
    assert pixels("png/out-00001.png")[0].tolist() == [255, 0, 64, 64, 64]


def test_nan_is_refused_by_name(tconv: Tconv) -> None:
    x = np.zeros((2, 3, 4, 5), np.float32)
    x[1, 2, 3, 4] = np.nan
    np.save("out.npy", x)
    ran = tconv("out.npy", "-o", "png/", "--denormalize", "imagenet")
    assert (ran.code, ran.out) == (1, "")
    assert "out.npy: out-00001: scale(uint8): 1 NaN of 60 values overflow uint8" in ran.err
    assert "uint8 has no NaN: replace them first" in ran.err
    assert not Path("png").exists()


def test_masks_and_depths_are_written_as_they_are(tconv: Tconv) -> None:
    labels = np.arange(30, dtype=np.uint8).reshape(5, 6)
    depth = (np.arange(30).reshape(5, 6) * 2000).astype(np.uint16)
    np.savez("masks.npz", **{"cats/1.jpg": labels, "depth": depth, "valid": labels % 2 == 0})
    assert tconv("masks.npz", "-o", "masks/", "--format", "png", "--verify") == Ran(0, "masks/\n", "")
    assert paths("masks") == ["cats/1.png", "depth.png", "valid.png"]
    assert pixels("masks/cats/1.png").tolist() == labels.tolist()
    assert pixels("masks/depth.png").tolist() == depth.tolist()
    assert pixels("masks/valid.png").tolist() == (labels % 2 == 0).tolist()


def test_a_batch_of_masks_says_that_it_is_one(tconv: Tconv) -> None:
    x = np.arange(7 * 4 * 5, dtype=np.uint8).reshape(7, 4, 5)
    np.savez_compressed("m.npz", m=x)
    ran = tconv("m.npz", "-o", "png/")
    assert ran.code == 1
    assert "nobody said which axes of (7, 4, 5) are height, width and channels; name the axes" in ran.err
    assert tconv("m.npz", "-o", "png/", "--input-layout", "NHW").code == 0
    assert [pixels(f"png/m-0000{n}.png").tolist() for n in range(7)] == x.tolist()


def test_frames_become_files(tconv: Tconv) -> None:
    frames = [Image.fromarray(np.full((4, 5), 60 * n, np.uint8)) for n in range(4)]
    frames[0].save("a.gif", save_all=True, append_images=frames[1:])
    assert tconv("a.gif", "--frames", "all", "-o", "png/", "--channels", "gray") == Ran(0, "png/\n", "")
    assert [int(pixels(f"png/a-0000{n}.png").max()) for n in range(4)] == [0, 60, 120, 180]


def test_pictures_of_pictures_keep_every_pixel_and_stand_upright(tconv: Tconv) -> None:
    x = photo(8, 12)
    alpha = np.dstack([x, np.arange(96, dtype=np.uint8).reshape(8, 12)])
    exif = Image.Exif()
    exif[0x0112] = 6
    Path("in").mkdir()
    Image.fromarray(x).save("in/turned.png", exif=exif)
    Image.fromarray(alpha).save("in/clear.png")
    Image.fromarray(x[..., 0]).save("in/grey.png")
    assert tconv("in", "-o", "out/", "--format", "webp") == Ran(0, "out/\n", "")
    with Image.open("out/turned.webp") as image:
        assert 0x0112 not in image.getexif()
        np.testing.assert_array_equal(np.asarray(image), np.rot90(x, -1))
    np.testing.assert_array_equal(pixels("out/clear.webp"), alpha)
    np.testing.assert_array_equal(pixels("out/grey.webp")[..., 1], x[..., 0])
    assert tconv("in", "-o", "rgb/", "--format", "png", "--channels", "rgb").code == 0
    assert pixels("rgb/clear.png").shape == (8, 12, 3)
    assert tconv("in/grey.png", "-o", "small.png", "--resize", "4x6").code == 0
    assert pixels("small.png").shape == (4, 6)


def test_inks_become_colours(tconv: Tconv) -> None:
    Image.fromarray(photo(8, 12)).convert("CMYK").save("inks.jpg", quality=95)
    assert tconv("inks.jpg", "-o", "x.png") == Ran(0, "x.png\n", "")
    with Image.open("inks.jpg") as image:
        np.testing.assert_array_equal(pixels("x.png"), np.asarray(image.convert("RGB")))
    ran = tconv("inks.jpg", "-o", "y.png", "--channels", "keep")
    assert ran.code == 1
    assert "these are inks (CMYK); --channels rgb" in ran.err


def test_a_lossy_format_says_so_once(tconv: Tconv, photos: Path) -> None:
    ran = tconv(photos, "-o", "out/", "--format", "jpeg", "--quality", "80")
    assert ran == Ran(0, "out/\n", "JPEG is lossy: pixels change a little (quality 80); png keeps them\n")
    assert paths("out") == ["a.jpg", "b.jpg", "cats/c.jpg"]


def test_pictures_still_become_tensors_without_a_word(tconv: Tconv, photos: Path) -> None:
    assert tconv(photos).out == f"{photos}.safetensors\n"
    assert tconv(photos, "-o", "out/").code == 0
    assert paths("out") == ["a.safetensors", "b.safetensors", "cats/c.safetensors"]


def test_two_pictures_for_one_file_are_refused(tconv: Tconv, photos: Path) -> None:
    Image.fromarray(photo()).save(photos / "a.jpg")
    ran = tconv(photos, "-o", "out/", "--format", "png")
    assert ran.code == 1
    assert "would both become it" in ran.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["-o", "png/"], 1, "a PNG holds uint8, uint16 or bool, not float32; --denormalize STATS makes pixels"),
        (["-o", "png/", "--range", "0,1"], 1, "not float32; --step 'scale(uint8)' makes pixels of them"),
        (["-o", "x.png", "--denormalize", "imagenet"], 1, "a PNG holds one picture, and there are 2; -o DIR/"),
        (["--half", "-o", "x.png"], 2, "PNG holds uint8, uint16 or bool, not float16"),
        (["--denormalize", "imagenet"], 2, "--denormalize makes pictures; say where: -o DIR/"),
        (["--denormalize", "imagenet", "-o", "x.npy"], 2, "--denormalize makes pictures"),
        (["--denormalize", "imagenet", "--normalize", "-o", "x/"], 2, "cannot be mixed with the options"),
        (["--denormalize", "imagenet", "--stack", "-o", "x/"], 2, "cannot be mixed with the options"),
        (["--denormalize", "imagenet", "--step", "scale", "-o", "x/"], 2, "--step cannot be mixed with"),
        (["--denormalize", "0.5", "-o", "x/"], 2, "it takes mean and std; write MEAN/STD, as in --denormalize 0.5/0.5"),
        (["--denormalize", "imagnet", "-o", "x/"], 2, "did you mean imagenet?"),
        (["--quality", "101", "-o", "x.jpg"], 2, "--quality takes a whole number from 1 to 100"),
        (["--quality", "90", "-o", "x.npz"], 2, "--quality is for JPEG"),
    ],
)
def test_what_is_refused_and_the_way_out(tconv: Tconv, argv: list[str], code: int, says: str) -> None:
    np.save("out.npy", np.zeros((2, 3, 4, 5), np.float32))
    ran = tconv("out.npy", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert [p.name for p in Path().iterdir()] == ["out.npy"]


def test_a_stated_range_and_a_step_do_it_too(tconv: Tconv) -> None:
    np.save("out.npy", np.full((3, 4, 5), 0.5, np.float32))
    assert tconv("out.npy", "-o", "x.png", "--range", "-1,1", "--step", "scale(uint8)") == Ran(0, "x.png\n", "")
    assert (pixels("x.png") == 191).all()


def test_weights_are_no_pictures(tconv: Tconv) -> None:
    save_file({"w": np.zeros((8, 4), np.float32), "b": np.zeros(8, np.float32)}, "m.safetensors")
    ran = tconv("m.safetensors", "-o", "png/", "--denormalize", "none")
    assert ran.code == 1
    assert "m.safetensors: b: pictures: an array of the shape (8,) is no picture" in ran.err


def test_a_broken_picture_is_left_out_as_asked(tconv: Tconv, photos: Path) -> None:
    data = (photos / "a.png").read_bytes()
    (photos / "a.png").write_bytes(data[: len(data) // 2])
    assert tconv(photos, "-o", "out/", "--format", "png").code == 1
    assert not Path("out").exists()
    ran = tconv(photos, "-o", "out/", "--format", "png", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "out/\n")
    assert paths("out") == ["b.png", "cats/c.png"]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
@pytest.mark.parametrize(
    ("chain", "left"),
    [
        ("letterbox(12x16) | scale | stack | permute(NCHW)", ["x.letterbox"]),
        ("scale | pad | stack | permute(NCHW)", ["x.mask"]),
        ("letterbox(12x16) | scale", ["0.png.letterbox", "1.png.letterbox"]),
    ],
)
def test_what_tells_of_pictures_does_not_keep_them_from_being_written(
    tconv: Tconv, suffix: str, chain: str, left: list[str]
) -> None:
    """And is no picture itself, though its shape could be that of one."""
    Path("im").mkdir()
    for n in range(2):
        Image.fromarray(np.full((8 + n, 10, 3), 50 + n, np.uint8)).save(f"im/{n}.png")
    assert tconv("im", "--step", chain, "-o", f"x.{suffix}").code == 0
    layout = ["--input-layout", "NCHW" if "stack" in chain else "HWC"]
    for extra in ([], layout):
        ran = tconv(f"x.{suffix}", "-o", "png/", "--denormalize", "none", "-f", *extra)
        assert (ran.code, ran.out) == (0, "png/\n")
        assert all(name in ran.err for name in left)
        assert "tells of pictures and is none" in ran.err
    written = sorted(Path("png").iterdir())
    assert len(written) == 2
    assert [int(np.asarray(Image.open(p))[6, 5, 0]) for p in written] == [50, 51]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
def test_labels_are_left_out_of_pictures_and_told(tconv: Tconv, suffix: str) -> None:
    for n, name in enumerate(("cat/a.png", "dog/b.png")):
        Path("pets", name).parent.mkdir(parents=True)
        Image.fromarray(np.full((4, 6, 3), 50 + n, np.uint8)).save(Path("pets", name))
    assert tconv("pets", "--normalize", "--stack", "-o", f"x.{suffix}").code == 0
    ran = tconv(f"x.{suffix}", "-o", "png/", "--denormalize", "none")
    assert ran.code == 0
    assert "labels: left out, as it tells of pictures and is none" in ran.err
    assert "classes" in ran.err
    assert "paths" in ran.err
    assert sorted(p.name for p in Path("png").iterdir()) == ["x-00000.png", "x-00001.png"]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
def test_masks_by_themselves_are_pictures(tconv: Tconv, suffix: str) -> None:
    Path("im").mkdir()
    for n in range(2):
        Image.new("RGB", (10, 8 + n)).save(f"im/{n}.png")
    assert tconv("im", "--pad", "--stack", "-o", f"x.{suffix}").code == 0
    ran = tconv(f"x.{suffix}", "-o", "png/", "--format", "png", "--only", "*.mask", "--input-layout", "NHW")
    assert (ran.code, ran.err) == (0, "")
    masks = [np.asarray(Image.open(p)) for p in sorted(Path("png").iterdir())]
    assert [int(mask.sum()) for mask in masks] == [80, 90]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
def test_nor_does_a_step_change_what_tells_of_pictures(tconv: Tconv, suffix: str) -> None:
    Image.new("RGB", (700, 333)).save("a.png")
    assert tconv("a.png", "--step", "letterbox(64) | scale", "-o", f"x.{suffix}").code == 0
    assert tconv(f"x.{suffix}", "--half", "-o", "y.npz").code == 0
    with np.load("y.npz") as file:
        dtypes = {name: file[name].dtype for name in file}
    assert sorted(map(str, dtypes.values())) == ["float16", "float32"]


def test_what_opacity_a_picture_has_is_known_when_it_comes_back(tconv: Tconv) -> None:
    """Of what is transparent the colours do not bleed in, whether a resize comes at once or later: Pillow's RGBA."""
    noise = np.random.default_rng(3).integers(0, 256, (24, 30, 4), np.uint8)
    Image.fromarray(noise).save("a.png")
    assert tconv("a.png", "--channels", "rgba", "-o", "a.safetensors").code == 0
    assert tconv("a.safetensors", "--resize", "9x13", "-o", "a.npy").code == 0
    np.testing.assert_array_equal(np.load("a.npy"), np.asarray(Image.fromarray(noise).resize((13, 9), 2)))


@pytest.mark.parametrize("chain", ["letterbox(8)", "letterbox(8) | stack"])
def test_letterboxed_photos_are_written_and_their_places_are_left_out(tconv: Tconv, chain: str) -> None:
    Path("photos").mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (8, 4), (10, 20, 30)).save(f"photos/{name}")
    ran = tconv("photos", "--step", chain, "-o", "out/", "--format", "png")
    assert (ran.code, ran.out) == (0, "out/\n")
    assert "left out, as .png holds one picture" in ran.err
    pictures = sorted(Path("out").iterdir())
    assert len(pictures) == 2
    for picture in pictures:
        pixels = np.asarray(Image.open(picture))
        assert (pixels[2:6] == (10, 20, 30)).all()
        assert (pixels[[0, 1, 6, 7]] == 114).all()


def test_rows_of_a_batch_are_chosen_when_it_is_taken_apart(tconv: Tconv) -> None:
    np.save("batch.npy", np.arange(5 * 2 * 2, dtype=np.uint8).reshape(5, 2, 2, 1))
    ran = tconv("batch.npy", "-o", "out/", "--format", "png", "--only", "batch-0000[0-2]", "--input-layout", "NHWC")
    assert ran.code == 1
    assert "once it is taken apart: --step unstack -o FILE.safetensors" in ran.err
    assert tconv("batch.npy", "--input-layout", "NHWC", "--step", "unstack", "-o", "rows.safetensors").code == 0
    assert tconv("rows.safetensors", "--only", "batch-0000[0-2]", "-o", "out/", "--format", "png").code == 0
    assert [np.asarray(Image.open(p)).tolist() for p in sorted(Path("out").iterdir())] == [
        [[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]],
    ]  # fmt: skip


@pytest.mark.parametrize(("recorded", "kind"), [("pad(64)", "mask"), ("letterbox(64)", "letterbox")])
@pytest.mark.parametrize("change", ["resize(8x8)", "crop(8)", "pad(70)", "letterbox(70)", "permute(NWHC)"])
def test_a_record_in_a_file_does_not_become_untrue(tconv: Tconv, recorded: str, kind: str, change: str) -> None:
    Image.new("RGB", (30, 20)).save("a.png")
    assert tconv("a.png", "--step", f"{recorded} | stack", "-o", "x.safetensors").code == 0
    ran = tconv("x.safetensors", "--step", change, "-o", "y.npz")
    assert ran.code == 1
    assert f"where the picture lies is told by x.{kind}, and would no longer be true; --skip '*.{kind}'" in ran.err
    assert tconv("x.safetensors", "--step", change, "--skip", f"*.{kind}", "-o", "y.npz").code == 0
    assert tconv("x.safetensors", "--step", "scale | permute(NCHW)", "-o", "z.npz").code == 0  # leaves it true


def test_a_record_goes_with_its_slice(tconv: Tconv) -> None:
    """Whether it is of a batch that is taken apart, or of a picture that is one already."""
    Path("in").mkdir()
    for n in range(2):
        Image.new("RGB", (4 + n, 3), (n, n, n)).save(f"in/{n}.png")
    assert tconv("in", "--step", "pad | stack", "-o", "x.safetensors").code == 0
    assert tconv("x.safetensors", "--step", "unstack", "-o", "rows.safetensors").code == 0
    rows = load_file("rows.safetensors")
    assert sorted(rows) == ["x-00000", "x-00000.mask", "x-00001", "x-00001.mask"]
    assert rows["x-00000.mask"].tolist() == [[True] * 4 + [False]] * 3
    assert tconv("rows.safetensors", "--step", "unstack | scale", "-o", "same.safetensors").code == 0
    same = load_file("same.safetensors")
    assert {name: array.dtype for name, array in same.items() if name in rows} == {
        name: np.bool_ if name.endswith("mask") else np.float32 for name in rows
    }


def test_labels_are_no_pictures_to_pad(tconv: Tconv) -> None:
    for name in ("in/a", "in/b"):
        Path(name).mkdir(parents=True)
        Image.new("RGB", (4, 3)).save(f"{name}/x.png")
    assert tconv("in", "-o", "x.safetensors").code == 0
    assert tconv("x.safetensors", "--step", "pad(multiple=8)", "-o", "y.npz").code == 0
    with np.load("y.npz") as file:
        assert file["a/x.png"].shape == (8, 8, 3)
        assert file["labels"].tolist() == [0, 1]
