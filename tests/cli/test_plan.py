"""The words of --dry-run: paths as stdout will say them, sizes once, which file each row of a stack is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.fixture
def images(tmp_path: Path) -> str:
    (tmp_path / "images" / "cats").mkdir(parents=True)
    for name, size in (("2.png", (6, 4)), ("10.png", (9, 5)), ("cats/1.png", (3, 8))):
        Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8)).save(tmp_path / "images" / name)
    return "images"


def test_under_a_stack_stands_which_row_is_which_file(tconv: Tconv, images: str) -> None:
    lines = tconv(images, "--resize", "4x4", "-o", "x.npy", "-n").out.splitlines()
    assert lines[2] == "x.npy (NumPy array, 272 B)"
    assert lines[4].split() == ["x", "3", "stacked", "->", "uint8", "3x4x4x3", "NHWC", "in", "[0,", "255]", "144", "B"]
    assert [line.split() for line in lines[5:8]] == [
        ["[0]", "images/2.png", "uint8", "4x6x3"],
        ["[1]", "images/10.png", "uint8", "5x9x3"],
        ["[2]", "images/cats/1.png", "uint8", "8x3x3"],
    ]
    assert lines[8] == ""


def test_the_parts_of_one_file_are_told_by_name(tconv: Tconv) -> None:
    np.savez("x.npz", a=np.zeros(3), b=np.ones(3))
    np.save("c.npy", np.ones(3))
    out = tconv("x.npz", "c.npy", "--stack", "--to", "float32", "-o", "y.npy", "-n").out
    rows = [line.split() for line in out.splitlines() if line.lstrip().startswith("[")]
    assert rows == [
        ["[0]", "x.npz:", "a", "float64", "3"],
        ["[1]", "x.npz:", "b", "float64", "3"],
        ["[2]", "c.npy", "float64", "3"],
    ]


def test_paths_are_those_that_stdout_says(tconv: Tconv, images: str, tmp_path: Path) -> None:
    def paths(*argv: str) -> list[str]:
        planned = tconv(*argv, "-n")
        assert planned.code == 0
        return [line.split(" (")[0] for line in planned.out.splitlines() if line.endswith("B)") and "(" in line]

    assert paths(images) == ["images.safetensors"]
    assert paths(images, "-o", str(tmp_path / "x.npz")) == [str(tmp_path / "x.npz")]
    each = ["2.npz", "10.npz", "cats/1.npz"]
    assert paths(images, "-o", "out/", "--format", "npz") == [f"out/{n}" for n in each]
    Path("there").mkdir()
    assert paths(images, "-o", "there", "--format", "npz") == [f"there/{n}" for n in each]
    assert paths(images, "-o", ".", "--format", "npz") == each
    np.savez("w.npz", a=np.zeros(3), b=np.ones(3))
    assert paths("w.npz", "--half") == ["w.float16.npz"]
    assert paths("w.npz", "--split", "-o", "out", "--format", "npy") == ["out/a.npy", "out/b.npy"]


@pytest.mark.parametrize(
    ("count", "text"), [(5, "total: 138 B in 1 file, "), (500, "total: 1.1 kB (1,128 bytes) in 1 file, ")]
)
def test_a_size_is_said_twice_only_where_it_was_rounded(tconv: Tconv, count: int, text: str) -> None:
    np.save("x.npy", np.zeros(count))
    assert tconv("x.npy", "--half", "-n").out.splitlines()[-1].startswith(text)


def test_what_values_decide_is_left_open(tconv: Tconv) -> None:
    np.savez("x.npz", a=np.array([1.0]), b=np.array([1e9]))
    ran = tconv("x.npz", "--half", "--on-overflow", "keep", "-n")
    assert ran.code == 0
    assert ran.out.count("float16 or float64 1 (decided by scan)") == 2


def test_how_it_is_done_is_told_below(tconv: Tconv, images: str) -> None:
    read = sum(path.stat().st_size for path in Path(images).rglob("*.png"))
    argv = (images, "--step", "resize(4x4) | scale | stack", "-o", "x.npy", "-n")
    assert tconv(*argv).out.splitlines()[9:-1] == [
        "2.png, step by step",
        "  as read      uint8 4x6x3 HWC in [0, 255]",
        "  resize(4x4)  uint8 4x4x3 HWC in [0, 255]",
        "  scale        float32 4x4x3 HWC in [0, 1]",
        "  stack        float32 3x4x4x3 NHWC in [0, 1]",
        "passes: [resize(4x4)] [scale: a table of 256 entries] [stack: each part at its offset]",
        "decoded by Pillow (3)",
        f"reads {read} B, moves 999 B, writes 704 B",
    ]


def test_many_ways_are_cut_short(tconv: Tconv) -> None:
    arrays: Any = {f"x{n}": np.zeros(n + 1) for n in range(7)}
    np.savez("x.npz", **arrays)
    rules = ", ".join(f'"x{n}": clamp(0, {n + 1})' for n in range(7))
    lines = tconv("x.npz", "--step", f"match({rules})", "-o", "y.npz", "-n").out.splitlines()
    assert next(line for line in lines if line.startswith("passes")) == "passes: [clamp(0, 1): one pass]"
    assert lines[-3] == "… and 2 other ways"
    lines = tconv("x.npz", "--half", "-o", "y.npz", "-n").out.splitlines()
    assert lines[-3] == "passes: [cast(float16): one pass] (7 tensors)"


def test_the_plan_as_json(tconv: Tconv, images: str) -> None:
    Path("x.npz").touch()
    ran = tconv("plan", images, "--resize", "4x4", "--normalize", "--only", "2*", "-o", "x.npz", "--print", "json")
    assert ran.code == 1  # it is in the way
    found = json.loads(ran.out)
    assert list(found) == [
        "plan", "steps", "notes", "skipped", "in_the_way", "files", "beside", "passes", "transfers", "on_cpu",
        "decoders", "bytes", "peak_memory", "workers",
    ]  # fmt: skip
    assert found["steps"] == ["resize(4x4)", "scale"]
    assert found["in_the_way"] == [str(Path.cwd() / "x.npz")]
    (file,) = found["files"]
    (tensor,) = file["tensors"]
    assert (tensor["name"], tensor["source"], tensor["same_as"]) == ("2.png", "images/2.png", None)
    assert tensor["before"] == {"dtype": "uint8", "shape": [4, 6, 3]}
    after = {"dtype": "float32", "shape": [4, 4, 3], "axes": "HWC", "range": [0, 1], "device": "cpu"}
    assert tensor["after"] == file["traces"][0]["specs"][-1] == after
    assert len(file["traces"][0]["specs"]) == 3
    assert found["passes"] == [
        {
            "tensors": 1,
            "passes": [
                {"steps": ["resize(4x4)"], "how": "by itself"},
                {"steps": ["scale"], "how": "a table of 256 entries"},
            ],
        }
    ]
    assert found["decoders"] == {"Pillow": 1}
    assert found["bytes"]["moved"] == 72 + 48 + 192
    told = tconv("plan", "--help").out
    assert all(key in told for key in found)


def test_the_plan_says_whether_the_memory_is_enough_and_the_run_whether_it_was(tconv: Tconv) -> None:
    np.save(
        "x.npy", np.zeros((300, 200), np.float32)
    )  # turned as a whole: 240 kB read, beside as much in and out of it
    command = ("x.npy", "--step", "permute(1, 0)", "-o", "y.npy", "-f")
    fits = tconv(*command, "-n", "--max-memory", "720000")
    assert fits.out.splitlines()[-1].startswith("total: ")
    tight = tconv(*command, "-n", "--max-memory", "719999")
    assert tight.out.splitlines()[-1] == "--max-memory 720.0 kB cannot be kept: x takes 720.0 kB at once"
    assert tconv(*command, "--max-memory", "720000").err == ""
    ran = tconv(*command, "--max-memory", "719999")
    assert (ran.code, ran.err) == (0, "x.npy: x: took 720,000 bytes at once, more than --max-memory 719,999\n")


def test_what_is_decoded_smaller_is_told_with_its_factor(tconv: Tconv) -> None:
    Path("photos").mkdir()
    for name, size in (("a.jpg", (400, 300)), ("b.jpg", (90, 60)), ("c.png", (400, 300))):
        Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8)).save(Path("photos", name))
    command = ("photos", "--resize", "20x20", "-o", "x.npy")
    rows = [line.split() for line in tconv(*command, "--fast", "-n").out.splitlines() if line.startswith("      [")]
    assert rows == [
        ["[0]", "photos/a.jpg", "uint8", "300x400x3", "at", "1/4"],
        ["[1]", "photos/b.jpg", "uint8", "60x90x3"],
        ["[2]", "photos/c.png", "uint8", "300x400x3"],
    ]
    assert "1/4" not in tconv(*command, "-n").out
    (file,) = json.loads(tconv(*command, "--fast", "--print", "json").out)["files"]
    assert [p["before"].get("shrink") for p in file["tensors"][0]["parts"]] == [4, None, None]
    assert tconv(*command, "--fast", "--report", "r.json").err == ""
    (output,) = json.loads(Path("r.json").read_text(encoding="utf8"))["outputs"]
    assert [p["before"].get("shrink") for p in output["tensors"][0]["parts"]] == [4, None, None]


def test_fast_of_which_nothing_comes_is_told(tconv: Tconv) -> None:
    Image.fromarray(np.zeros((300, 400, 3), np.uint8)).save("a.jpg")
    said = "nothing comes of --fast: a resize has to come first, and make a JPEG a quarter of its size or less\n"
    for options in (("--resize", "200"), ("--resize", "20x20"), ()):
        told = tconv("a.jpg", *options, "--fast", "-o", "x.npy", "-f").err
        assert told == ("" if "20x20" in options else said)
