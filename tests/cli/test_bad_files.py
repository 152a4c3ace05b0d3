"""Inputs that are of no use: all of them named, or left out as asked, whatever it is that they are refused for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]

# Of every kind one: found when the folder is listed, from its header, by a step, when its pixels are decoded.
BAD = {
    "im/2.png": "it ends within its chunk",
    "im/3.jpg": "Premature end of JPEG file",
    "im/4.jpg": "the file is empty (0 bytes)",
    "im/5.tif": "scale: nobody knows the range of these float32 values",
    "im/7.png": "truncated or corrupt",
}
GOOD = {"im/1.png": 10, "im/6.png": 60}


@pytest.fixture
def images(tmp_path: Path) -> str:
    """Flat pictures, grey as GOOD says, and the BAD ones between them."""
    (tmp_path / "im").mkdir()
    for name, grey in {**GOOD, "im/2.png": 0, "im/3.jpg": 0, "im/7.png": 0}.items():
        noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(noise if grey == 0 else np.full((32, 32, 3), grey, np.uint8)).save(tmp_path / name)
    for name in ("im/2.png", "im/3.jpg"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: len(data) // 2])
    (tmp_path / "im/4.jpg").write_bytes(b"")
    Image.fromarray(np.ones((32, 32), np.float32)).save(tmp_path / "im/5.tif")
    damaged = bytearray((tmp_path / "im/7.png").read_bytes())
    damaged[60:80] = bytes(20)  # within the pixels, where a checksum notices it
    (tmp_path / "im/7.png").write_bytes(damaged)
    return "im"


def test_an_error_names_every_bad_file_of_every_kind(tconv: Tconv, images: str) -> None:
    ran = tconv(images, "--normalize", "-o", "x.npy")
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [*BAD, "--on-bad skip leaves bad files out"]
    assert all(reason in line for reason, line in zip(BAD.values(), lines, strict=False))
    assert sorted(p.name for p in Path().iterdir()) == ["im"]


@pytest.mark.parametrize("output", ["x.npy", "x.npz", "x.safetensors", "out/"])
def test_skip_leaves_out_every_kind_and_names_it_on_stderr_and_in_the_report(
    tconv: Tconv, images: str, output: str
) -> None:
    ran = tconv(images, "--normalize", "-o", output, "--on-bad", "skip", "--report", "r.json")
    assert (ran.code, ran.out) == (3, f"{output}\n")
    told = [line for line in ran.err.splitlines() if line.startswith("skipped: ")]
    assert [line.split(": ")[1] for line in told] == list(BAD)
    assert all(reason in line for reason, line in zip(BAD.values(), told, strict=True))
    report = json.loads(Path("r.json").read_text())
    assert [entry["path"] for entry in report["skipped"]] == list(BAD)
    assert all(reason in e["reason"] for reason, e in zip(BAD.values(), report["skipped"], strict=True))
    assert [entry["path"] for entry in report["inputs"]] == list(GOOD)


def test_no_row_of_a_stack_is_left_empty(tconv: Tconv, images: str) -> None:
    """A broken picture is found when the file is laid out already: its row goes, and is not left as zeros."""
    tconv(images, "-o", "x.npy", "--on-bad", "skip", "--skip", "*.tif")
    assert np.load("x.npy")[:, 0, 0, 0].tolist() == [10, 60]
    tconv(images, "-o", "x.safetensors", "--stack", "--on-bad", "skip", "--skip", "*.tif")
    assert load_file("x.safetensors")["x"][:, 0, 0, 0].tolist() == [10, 60]


def test_a_dry_run_leaves_out_what_steps_refuse(tconv: Tconv, images: str) -> None:
    ran = tconv(images, "--normalize", "-o", "x.npy", "--on-bad", "skip", "-n")
    assert ran.code == 3
    assert "skipped: im/5.tif: scale: nobody knows" in ran.err
    assert "im/5.tif" not in ran.out


def test_pictures_of_unequal_shapes_are_no_bad_files(tconv: Tconv, tmp_path: Path) -> None:
    """Neither of two that differ is bad by itself, and which one is the odd one out is not for tconv to guess."""
    for n in range(2):
        Image.new("RGB", (8 + n, 8)).save(tmp_path / f"{n}.png")
    ran = tconv("0.png", "1.png", "-o", "x.npy", "--on-bad", "skip")
    assert (ran.code, ran.out) == (1, "")
    assert "0.png is uint8 (8, 8, 3) HWC and 1.png is uint8 (8, 9, 3) HWC" in ran.err


def test_what_is_left_of_several_has_the_axis_of_a_stack(tconv: Tconv, images: str) -> None:
    ran = tconv("im/1.png", "im/2.png", "-o", "x.npy", "--on-bad", "skip")
    assert ran.code == 3
    assert np.load("x.npy").shape == (1, 32, 32, 3)


def test_nothing_but_what_a_step_refuses_is_a_refusal(tconv: Tconv, images: str) -> None:
    for more in ([], ["--on-bad", "skip"]):
        ran = tconv("im/5.tif", "--normalize", "-o", "x.npy", *more)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("tconv: im/5.tif: scale: nobody knows the range")
        ran = tconv("im", "--only", "5.tif", "--normalize", "-o", "x.npy", *more)
        assert (ran.code, ran.out) == (1, "")
        assert "im/5.tif: scale: nobody knows the range" in ran.err


def test_every_bad_file_is_named_however_many_there_are(tconv: Tconv, tmp_path: Path) -> None:
    (tmp_path / "im").mkdir()
    for n in range(60):
        (tmp_path / "im" / f"{n}.png").write_bytes(b"")
    Image.new("RGB", (2, 2)).save(tmp_path / "im" / "60.png")
    refused = tconv("im", "-o", "x.npy")
    assert refused.code == 1
    skipped = tconv("im", "-o", "x.npy", "--on-bad", "skip")
    assert skipped.code == 3
    for said in (refused.err, skipped.err):
        assert [n for n in range(60) if f"im/{n}.png" not in said] == []


def test_checkpoints_that_a_step_refuses_are_left_out_of_a_folder(tconv: Tconv) -> None:
    np.save("good.npy", np.array([1.0, 2.0]))
    np.save("bad.npy", np.array([1 + 2j]))
    np.savez("text.npz", x=np.zeros(2), t=np.array(["a"]))
    ran = tconv("good.npy", "bad.npy", "text.npz", "--half", "-o", "out/", "--on-bad", "skip", "--report", "r.json")
    assert (ran.code, ran.out) == (3, "out/\n")
    assert [p.name for p in Path("out").iterdir()] == ["good.npy"]
    skipped = {entry["path"]: entry["reason"] for entry in json.loads(Path("r.json").read_text())["skipped"]}
    assert skipped["bad.npy"].startswith("cast(float16): ")
    assert skipped["text.npz"].startswith("an array of text")


def test_a_wrong_command_is_no_bad_file(tconv: Tconv, images: str) -> None:
    ran = tconv(images, "--layout", "CHW", "--to", "flot", "--on-bad", "skip", "-o", "x.npy")
    assert ran.code == 2


def test_of_a_folder_the_patterns_leave_out_whole_files(tconv: Tconv) -> None:
    for name in ("a", "b"):
        np.save(f"{name}.npy", np.zeros(2))
    ran = tconv("a.npy", "b.npy", "--half", "-o", "out/", "--skip", "b")
    assert (ran.code, ran.out) == (0, "out/\n")
    assert [p.name for p in Path("out").iterdir()] == ["a.npy"]
    ran = tconv("a.npy", "b.npy", "--half", "-o", "out/", "--skip", "*", "-f")
    assert ran.code == 1
    assert "no tensor is left by --skip" in ran.err


def test_arrays_that_do_not_have_the_axes_named_are_left_out(tconv: Tconv) -> None:
    np.save("a.npy", np.zeros((2, 2, 3), np.uint8))
    np.save("b.npy", np.zeros((2, 2), np.uint8))
    ran = tconv("a.npy", "b.npy", "--input-layout", "HWC", "--normalize", "--stack", "-o", "x.npy", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "x.npy\n")
    assert "skipped: b.npy: b: --input-layout HWC names 3 axes, but the shape is (2, 2)" in ran.err
    assert np.load("x.npy").shape == (1, 2, 2, 3)


WANTED = [("--skip", "2.png", "--skip", "[3457]*"), ("--only", "1.png", "--only", "6.png")]


@pytest.mark.parametrize("options", WANTED)
def test_bad_files_that_are_not_wanted_are_never_opened(tconv: Tconv, images: str, options: tuple[str, ...]) -> None:
    ran = tconv(images, "--normalize", "-o", "x.npy", *options)
    assert (ran.code, ran.out, ran.err) == (0, "x.npy\n", "")
    np.testing.assert_array_equal(np.load("x.npy")[:, 0, 0, 0], np.array([10, 60], np.float32) / 255)


@pytest.mark.parametrize("options", WANTED)
def test_nor_by_the_verbs_that_look(tconv: Tconv, images: str, options: tuple[str, ...]) -> None:
    assert tconv("stats", images, *options).code == 0
    assert tconv("check", images, "--expect", "uint8", *options).code == 0
    assert tconv("inspect", images, *options).code == 0
    assert tconv(images, "-o", "x/", "--format", "npy", "--dry-run", *options).code == 0


def test_a_pattern_for_a_file_that_is_not_opened_is_for_a_name(tconv: Tconv, images: str) -> None:
    ran = tconv(images, "-o", "x.safetensors", "--skip", "[23457].*", "--skip", "9.png")
    assert ran.code == 0
    assert ran.err == "--skip '9.png' matches no name; names here are 1.png, 6.png, 2.png, 3.jpg, 4.jpg and 2 more\n"


def test_a_bad_archive_that_is_named_to_be_skipped_is_no_failure(tconv: Tconv) -> None:
    np.savez("a.npz", x=np.zeros(2, np.float32))
    Path("bad.npz").write_bytes(Path("a.npz").read_bytes()[:-30])
    assert tconv("a.npz", "bad.npz", "-o", "x.safetensors").code == 1
    ran = tconv("a.npz", "bad.npz", "-o", "x.safetensors", "--skip", "bad*")
    assert (ran.code, ran.out) == (0, "x.safetensors\n")
    assert tconv("inspect", "a.npz", "bad.npz", "--skip", "bad*").code == 0


def test_labels_of_images_that_are_not_wanted_are_no_strays(tconv: Tconv, images: str) -> None:
    Path("labels.csv").write_text("path,label\n" + "".join(f"{name},{n}\n" for n, name in enumerate([*GOOD, *BAD])))
    ran = tconv(images, "--normalize", "-o", "x.npz", "--labels", "labels.csv", "--only", "1.png", "--only", "6.png")
    assert ran.code == 0
    with np.load("x.npz") as file:
        assert file["labels"].tolist() == [0, 1]


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
def test_a_file_whose_name_no_format_can_hold_is_bad(tconv: Tconv, images: str, suffix: str) -> None:
    odd = Path(os.fsdecode(b"im/non\xff.png"))
    try:
        Path("im/1.png").rename(odd)
    except OSError:
        pytest.skip("file names are Unicode text here")
    wanted = ("--only", "6.png", "--only", "non*")
    ran = tconv(images, *wanted, "-o", f"x.{suffix}")
    assert ran.code == 1
    assert ran.err.startswith("tconv: im/non\\udcff.png: the name is not valid Unicode text; rename it, or --skip it")
    ran = tconv(images, *wanted, "-o", f"x.{suffix}", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, f"x.{suffix}\n")
    assert ran.err == "skipped: im/non\\udcff.png: the name is not valid Unicode text; rename it, or --skip it\n"
    assert tconv(images, *wanted, "-o", "x.npy").code == 0  # which has no place for names


def test_what_a_plan_without_the_bad_files_says_anew_is_told(tconv: Tconv, images: str) -> None:
    """3.jpg and 7.png turn out to be bad when they are decoded: other files are left over of batches then."""
    for name in ("8.png", "9.png"):
        Path("im/6.png").with_name(name).write_bytes(Path("im/6.png").read_bytes())
    wanted = tuple(word for n in "136789" for word in ("--only", f"{n}.*"))
    options = (*wanted, "--drop-last", "--on-bad", "skip", "--batch-size")
    ran = tconv(images, *options, "4", "-o", "y.npy")
    assert (ran.code, ran.out) == (3, "y-00000.npy\n")
    assert [line.split("; ")[0] for line in ran.err.splitlines()[:2]] == [
        "--drop-last leaves out 2 of 6: 8.png, 9.png",
        "not so, as bad inputs are left out: --drop-last leaves out 2 of 6: 8.png, 9.png",
    ]
    assert np.load("y-00000.npy")[:, 0, 0, 0].tolist() == [10, 60, 60, 60]
    ran = tconv(images, *options, "3", "-o", "z.npy", "--report", "r.json")
    assert (ran.code, ran.out) == (3, "z-00000.npy\n")
    assert "--drop-last leaves out 1 of 4: 9.png" in ran.err.splitlines()
    assert json.loads(Path("r.json").read_text())["notes"] == ["--drop-last leaves out 1 of 4: 9.png"]
