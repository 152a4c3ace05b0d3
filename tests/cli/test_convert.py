"""Whole conversions through the command line: what is written, what is said, what is refused."""

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


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three pictures of one size, and the numbers in them."""
    folder = tmp_path / "images"
    folder.mkdir()
    for n, name in enumerate(("1.png", "2.png", "10.png")):
        Image.fromarray(np.full((4, 6, 3), 50 * n, np.uint8)).save(folder / name)
    return folder


def spoil(path: Path) -> None:
    """A picture whose header is whole and whose pixels are not."""
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)).save(path)
    data = path.read_bytes()
    at = data.index(b"IDAT") + 8
    path.write_bytes(data[:at] + bytes(4) + data[at + 4 :])


def test_a_folder_becomes_one_tensor_an_image(tconv: Tconv, images: Path) -> None:
    assert tconv(images, "--to", "float32", "--normalize") == Ran(0, f"{images}.safetensors\n", "")
    got = load_file(f"{images}.safetensors")
    assert set(got) == {"1.png", "2.png", "10.png"}
    np.testing.assert_array_equal(got["10.png"], np.full((4, 6, 3), 100 / 255, np.float32))


def test_a_single_array_target_stacks_in_natural_order(tconv: Tconv, images: Path) -> None:
    assert tconv(images, "-o", "x.npy").code == 0
    assert np.load("x.npy")[:, 0, 0, 0].tolist() == [0, 50, 100]


def test_patterns_choose_among_all_inputs(tconv: Tconv, images: Path) -> None:
    assert tconv(images, "--skip", "1*", "-o", "x.safetensors").code == 0
    assert set(load_file("x.safetensors")) == {"2.png"}


def test_a_picture_found_broken_half_way_is_left_out_of_the_stack_as_asked(tconv: Tconv, images: Path) -> None:
    spoil(images / "3.png")
    refused = tconv(images, "-o", "x.npy")
    assert (refused.code, refused.out) == (1, "")
    assert f"{images}/3.png" in refused.err
    assert not Path("x.npy").exists()
    ran = tconv(images, "-o", "x.npy", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "x.npy\n")
    assert ran.err.count("3.png") == 1
    assert np.load("x.npy")[:, 0, 0, 0].tolist() == [0, 50, 100]


def test_one_output_an_input_goes_on_without_the_broken_one(tconv: Tconv, images: Path) -> None:
    spoil(images / "3.png")
    ran = tconv(images, "-o", "out/", "--format", "npy", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "out/\n")
    assert sorted(p.name for p in Path("out").iterdir()) == ["1.npy", "10.npy", "2.npy"]


def test_nothing_but_broken_inputs_is_a_refusal(tconv: Tconv, tmp_path: Path) -> None:
    spoil(tmp_path / "a.png")
    for target in ("x.npy", "out/"):
        ran = tconv("a.png", "-o", target, "--on-bad", "skip")
        assert (ran.code, ran.out) == (1, "")
        assert not Path(target).exists()


def test_what_overflows_is_refused_by_name_the_worst_first(tconv: Tconv) -> None:
    np.savez("x.npz", a=np.array([1e6, 1]), b=np.array([1e6, 2e6]), c=np.array([1.0, 2.0]))
    ran = tconv("x.npz", "--half")
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert [line.split(": ")[2] for line in lines] == ["b", "a"]
    assert "2 of 2 values overflow float16" in lines[0]
    assert not Path("x.float16.npz").exists()
    ran = tconv("x.npz", "--half", "--on-overflow", "saturate")
    assert ran.code == 0
    assert np.load("x.float16.npz")["b"].tolist() == [65504, 65504]


def test_verbose_tells_the_plan_and_quiet_nothing(tconv: Tconv) -> None:
    np.save("x.npy", np.array([1e-9, 1.0]))
    told = tconv("x.npy", "--half", "-v")
    assert (told.code, told.out) == (0, "x.float16.npy\n")
    assert "float64 2  ->  float16 2" in told.err
    assert "1 became 0" in told.err or "1 of 2 values became 0" in told.err
    assert tconv("x.npy", "--half", "-q", "--force") == Ran(0, "x.float16.npy\n", "")


def test_a_dry_run_prints_the_plan_and_writes_nothing(tconv: Tconv, images: Path) -> None:
    ran = tconv(images, "--resize", "2x3", "--normalize", "--layout", "NCHW", "-o", "x.npy", "-n")
    assert ran.code == 0
    assert "steps: resize(2x3) | scale | stack | permute(NCHW)" in ran.out
    assert "float32 3x3x2x3 NCHW in [0, 1]" in ran.out
    assert not Path("x.npy").exists()


def test_options_for_images_without_an_image_say_that_nothing_comes_of_them(tconv: Tconv, images: Path) -> None:
    np.save("x.npy", np.zeros(2))
    note = "no input is an image, so nothing comes of --channels and --no-exif\n"
    assert tconv("x.npy", "--half", "--channels", "gray", "--no-exif") == Ran(0, "x.float16.npy\n", note)
    assert tconv("x.npy", "--half", "--channels", "gray", "--no-exif", "-n", "--force").err == note
    assert tconv("x.npy", "--half", "--max-pixels", "5", "-q", "--force").err == ""
    assert tconv("x.npy", "--half", "--channels", "rgb", "--force").err == ""
    assert tconv(images, "--channels", "gray", "--no-exif").err == ""


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ("--channels rgba --alpha drop", "--alpha beside --channels rgba, which keeps the opacity that there is"),
        ("--channels keep --alpha black", "--alpha beside --channels keep, which keeps the opacity that there is"),
        ("--palette index --channels bgr", "--channels beside --palette index, which takes no colours"),
        (
            "--palette index --channels gray --alpha drop",
            "--channels and --alpha beside --palette index, which takes no colours",
        ),
        ("--channels gray --alpha drop", ""),
        ("--palette index", ""),
    ],
)
def test_options_that_others_leave_nothing_to_do_say_it(tconv: Tconv, options: str, note: str) -> None:
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).convert("P").save("x.png")
    ran = tconv("x.png", *options.split(), "-o", "x.npy")
    assert (ran.code, ran.err) == (0, f"nothing comes of {note}\n" if note else "")


def test_values_are_checked_without_the_library_that_takes_long_to_import(tconv_process: Tconv, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2))
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pydantic'] = None\n")
    old = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{old}"
    try:
        ran = tconv_process("x.npy", "--half", "--workers", "2", "--alpha", "drop", "--step", "scale", "--range", "0,1")
        plain = tconv_process("x.npy", "--half", "--workers", "2")
    finally:
        os.environ["PYTHONPATH"] = old
    assert ran.code == 2
    assert "cannot be mixed" in ran.err
    assert plain == Ran(0, "x.float16.npy\n", "")


def test_what_is_odd_about_many_files_is_one_line_and_of_those_left_out_none(tconv: Tconv, tmp_path: Path) -> None:
    (tmp_path / "gifs").mkdir()
    pages = [Image.new("L", (2, 2), n) for n in (0, 99)]
    for n in range(6):
        pages[0].save(tmp_path / f"gifs/{n}.gif", save_all=True, append_images=pages[1:])
    ran = tconv("gifs", "--report", "r.json")
    said = "gifs/0.gif: the first of 2 frames; --frames all reads all"
    assert ran.err.splitlines() == [f"{said}; likewise gifs/1.gif, gifs/2.gif, gifs/3.gif and 2 more"]
    assert len(json.loads((tmp_path / "r.json").read_text())["notes"]) == 6
    assert tconv("gifs", "--only", "0.gif", "-f").err.splitlines() == [said]
    assert len(tconv("gifs", "-f", "-v").err.split("the first of 2 frames")) == 7


def test_the_way_out_of_a_mixture_has_the_cast_last(tconv: Tconv, images: Path) -> None:
    ran = tconv(images, "--pipeline", "clip", "--half", "--layout", "CHW", "-o", "x.npy")
    assert ran.code == 2
    assert ran.err.rstrip().endswith("--step 'permute(CHW)' --step 'cast(float16)'")
    Path("mine.yaml").write_text('version: 1\nsteps: ["scale", "cast(${dtype:bfloat16})"]\n')
    ran = tconv(images, "--pipeline", "mine.yaml", "--half")
    assert (ran.code, "--set dtype=float16 is what this pipeline has for the dtype" in ran.err) == (2, True)
    ran = tconv(images, "--pipeline", "mine.yaml", "--half", "--resize", "8")
    assert (ran.code, "--set" in ran.err) == (2, False)


def test_a_report_of_what_is_not_done_is_refused(tconv: Tconv, images: Path) -> None:
    for argv in ((images, "-n"), ("plan", images), (images, "--print", "yaml")):
        ran = tconv(*argv, "--report", "r.json")
        assert (ran.code, ran.out) == (2, "")
        assert "--report tells what was lost, and nothing is converted here" in ran.err
    assert not Path("r.json").exists()


def test_an_option_that_is_a_step_is_pointed_at(tconv: Tconv) -> None:
    assert tconv("x.npy", "--dequantize") == Ran(
        2, "", "tconv: there is no option --dequantize; it is --step dequantize here\n"
    )
