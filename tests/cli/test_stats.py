"""stats: the table, the file, and what a wrong command says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.fixture(autouse=True)
def images(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    Image.fromarray(np.array([[[0, 51, 255], [255, 153, 0]]], np.uint8)).save(tmp_path / "d/a.png")
    Image.fromarray(np.array([[[0, 51, 255], [255, 153, 0]]], np.uint8)).save(tmp_path / "d/b.png")


def test_the_table_and_what_to_paste(tconv: Tconv) -> None:
    ran = tconv("stats", "d")
    assert ran == Ran(
        0,
        "channel  mean  std  min  max  values\n"
        "R         0.5  0.5    0    1       4\n"
        "G         0.4  0.2  0.2  0.6       4\n"
        "B         0.5  0.5    0    1       4\n"
        "2 files: 2 uint8 in 0…255, taken to 0…1\n"
        "--stats 0.5,0.4,0.5/0.5,0.2,0.5\n",
        "",
    )
    ran = tconv("d", "--normalize", "--stats", "0.5,0.4,0.5/0.5,0.2,0.5", "-o", "x.npy")
    assert ran.code == 0
    np.testing.assert_allclose(np.load("x.npy").reshape(-1, 3).mean(axis=0), 0, atol=1e-7)


def test_a_file_is_written_and_taken(tconv: Tconv) -> None:
    assert tconv("stats", "d", "--resize", "1x2", "-o", "s.json") == Ran(0, "s.json\n", "")
    assert json.loads(Path("s.json").read_text())["steps"] == "resize(1x2)"
    ran = tconv("d", "--resize", "1x2", "--normalize", "--stats", "s.json", "-o", "x.npy")
    assert ran.code == 0
    x = np.load("x.npy").reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(x.std(axis=0), 1, atol=1e-7)
    ran = tconv("stats", "d", "-o", "s.json")
    assert (ran.code, ran.out) == (1, "")
    assert "--force" in ran.err
    assert tconv("stats", "d", "-o", "s.json", "-f").code == 0


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    found = json.loads(tconv("stats", "d", "--sample", "1", "--json").out)
    del found["tconv"]
    assert found == {
        "mean": [0.5, 0.4, 0.5],
        "std": [0.5, 0.2, 0.5],
        "min": [0, 0.2, 0],
        "max": [1, 0.6, 1],
        "range": [0, 1],
        "count": 2,
        "channels": "RGB",
        "files": 1,
        "sample": {"of": 2, "seed": 0},
        "steps": "",
        "sources": [{"dtype": "uint8", "range": [0, 255], "tensors": 1}],
    }


def test_arrays_have_their_channels_where_one_says(tconv: Tconv) -> None:
    np.save("x.npy", np.array([[[[1, 3]], [[-7, -9]]]], np.int16))
    ran = tconv("stats", "x.npy", "--input-layout", "NCHW", "--raw")
    assert ran.out.splitlines()[1:] == [
        "0           2    1    1    3       2",
        "1          -8    1   -9   -7       2",
        "1 file: 1 int16",
        "--stats 2,-8/1,1",
    ]
    ran = tconv("stats", "x.npy", "--range", "-9,3", "--json")
    assert json.loads(ran.out)["min"] == [0]
    assert "taken as one channel; --input-layout" in ran.err


def test_a_negative_mean_is_written_so_that_the_option_takes_it(tconv: Tconv) -> None:
    np.save("x.npy", np.array([-3.0, -1.0], np.float32))
    option = tconv("stats", "x.npy", "--raw").out.splitlines()[-1]
    assert option == "--stats=-2/1"
    assert tconv("x.npy", option, "-o", "y.npy").code == 0
    assert np.load("y.npy").tolist() == [-1, 1]


def test_a_constant_channel_is_told(tconv: Tconv) -> None:
    Path("e").mkdir()
    Image.new("RGB", (1, 1)).save("e/a.png")
    ran = tconv("stats", "e")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "channel R and G and B has the same value everywhere: nothing to divide by"
    assert tconv("stats", "e", "-o", "s.json").code == 1


def test_bad_files_are_exit_1_or_left_out_with_3(tconv: Tconv) -> None:
    Path("d/c.png").write_bytes(Path("d/a.png").read_bytes()[:40])
    ran = tconv("stats", "d")
    assert (ran.code, ran.out) == (1, "")
    assert "d/c.png: truncated" in ran.err
    ran = tconv("stats", "d", "--on-bad", "skip", "-o", "s.json")
    assert (ran.code, ran.out) == (3, "s.json\n")
    assert "skipped: d/c.png" in ran.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["d", "--seed", "1"], ["--seed", "--sample"]),
        (["d", "--sample", "0"], ["--sample"]),
        (["d", "-o", "s.npy"], ["s.npy", "stats.json"]),
        (["d", "--resize", "0"], ["--resize"]),
        (["d", "--step", "scale", "--resize", "8"], ["--step", "mixed"]),
        (["d", "--pipeline", "imagnet"], ["imagenet"]),
        (["d", "--calibrate", "kl"], ["--calibrate", "entropy"]),
        (["d", "--quantize", "int8"], ["--quantize", "--calibrate"]),
        (["d", "--calibrate", "mse", "--raw"], ["--raw"]),
        ([], ["INPUT"]),
    ],
)
def test_a_wrong_command_is_exit_2(tconv: Tconv, argv: list[str], words: list[str]) -> None:
    ran = tconv("stats", *argv)
    assert (ran.code, ran.out) == (2, "")
    for word in words:
        assert word in ran.err


FEW = "calibrated on 2 samples: ranges may be those of chance; 100 to 500 are usual\n"


def test_ranges_as_a_table_and_as_a_file(tconv: Tconv) -> None:
    ran = tconv("stats", "d", "--step", "scale", "--calibrate", "minmax", "--quantize", "uint8")
    assert ran == Ran(
        0,
        "channel  min  max  low  high       scale  zero point\n"
        "all        0    1    0     1  0.00392157           0\n"
        "R          0    1    0     1  0.00392157           0\n"
        "G        0.2  0.6    0   0.6  0.00235294           0\n"
        "B          0    1    0     1  0.00392157           0\n"
        "2 files, for uint8 affine by minmax, after scale\n",
        FEW,
    )
    argv = ("stats", "d", "--pipeline", "imagenet", "--calibrate", "percentile", "--quantize", "int8, percentile=99")
    assert tconv(*argv, "-o", "c.json") == Ran(0, "c.json\n", FEW)
    found = json.loads(Path("c.json").read_text())
    assert json.loads(tconv(*argv, "--json").out) == found
    assert found.keys() == {
        "calibrate", "percentile", "dtype", "scheme", "per_tensor", "per_channel", "channels", "files", "sample",
        "steps", "tconv",
    }  # fmt: skip
    assert (found["calibrate"], found["percentile"], found["dtype"], found["scheme"]) == (
        "percentile", 99, "int8", "symmetric",
    )  # fmt: skip
    assert [len(found["per_channel"]), found["channels"], found["files"]] == [3, "RGB", 2]
    assert found["per_tensor"].keys() == {"min", "max", "low", "high", "scale", "zero_point"}
    assert tconv(*argv, "-o", "c.json").code == 1
    ran = tconv("stats", "d", "--pipeline", "imagenet", "--set", "size=32", "--calibrate", "minmax", "--json")
    assert json.loads(ran.out)["steps"].startswith("resize(32x32) | ")


def test_an_input_is_never_replaced_by_its_own_statistics(tconv: Tconv) -> None:
    Path("d/s.json").mkdir()
    assert tconv("stats", "d", "-o", "d/s.json").code == 1
    assert tconv("stats", "d", "-o", "nowhere/s.json").code == 0
    assert Path("nowhere/s.json").is_file()


# ------------------------------------------------------------------------------ a file is for values of its own range
def test_statistics_of_scaled_values_are_refused_on_others(tconv: Tconv) -> None:
    assert tconv("stats", "d", "-o", "s.json").code == 0
    for argv in (("--stats", "s.json"), ("--step", "normalize('s.json')")):
        ran = tconv("d", *argv, "-o", "x.npz")
        assert (ran.code, ran.out) == (1, "")
        assert "the statistics of s.json are for values in [0, 1]; these are in [0, 255]" in ran.err
        assert "--normalize" in ran.err
    np.save("f.npy", np.ones((2, 2, 3), np.float32))
    assert "the range of these is not known" in tconv("f.npy", "--stats", "s.json", "-o", "x.npz").err
    assert not Path("x.npz").exists()
    assert tconv("d", "--normalize", "--stats", "s.json", "-o", "x.npz").code == 0


def test_statistics_of_raw_values_are_refused_on_scaled_ones(tconv: Tconv) -> None:
    assert tconv("stats", "d", "--raw", "-o", "s.json").code == 0
    ran = tconv("d", "--normalize", "--stats", "s.json", "-o", "x.npz")
    assert (ran.code, ran.out) == (1, "")
    assert "the statistics of s.json are for values in [0, 255]; these are in [0, 1]" in ran.err
    assert tconv("d", "--stats", "s.json", "-o", "x.npz").code == 0
    # (0 - 127.5) / 127.5 in the red channel
    assert np.load("x.npz")["a.png"][0, 0, 0] == -1


def test_statistics_after_a_scale_among_the_steps_are_of_scaled_values(tconv: Tconv) -> None:
    assert tconv("stats", "d", "--step", "scale | clamp(0, 1)", "-o", "s.json").code == 0
    assert json.loads(Path("s.json").read_text())["range"] == [0, 1]


def test_statistics_of_floats_of_any_range_are_taken_as_they_are(tconv: Tconv) -> None:
    np.save("f.npy", np.array([-2, 6], np.float32))
    assert tconv("stats", "f.npy", "--raw", "-o", "s.json").code == 0
    assert json.loads(Path("s.json").read_text())["range"] is None
    assert tconv("f.npy", "--stats", "s.json", "-o", "x.npy").code == 0
    assert np.load("x.npy").tolist() == [-1, 1]
