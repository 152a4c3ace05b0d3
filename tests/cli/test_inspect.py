"""inspect: tables of what is in files, from headers or from the values; the JSON that its help promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from tconv.cli.listing import BARS, PLAIN_BARS
from tests.cli.conftest import Ran
from tests.formats.sharded import safetensors_folder

Tconv = Callable[..., Ran]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Tied weights, a view, a parameter, a counter."""
    torch = pytest.importorskip("torch")
    base = torch.arange(12.0).reshape(3, 4)
    path = tmp_path / "ckpt.pt"
    model = {"emb": base, "head": base, "row": base[1], "p": torch.nn.Parameter(torch.ones(2)), "n": torch.tensor(7)}
    torch.save({"state_dict": model}, path)
    return path


def write() -> None:
    """One safetensors file with something of everything."""
    save_file(
        {
            "net.10.w": np.array([[1, np.nan, -2], [np.inf, 0, 3]], np.float32),
            "net.2.w": np.zeros((2, 0), np.float16),
            "ids": np.array([-(2**63), 2**63 - 1, 0]),
            "flag": np.array([True, False]),
        },
        "x.safetensors",
    )


def test_headers(tconv: Tconv) -> None:
    write()
    ran = tconv("inspect", "x.safetensors", "--sort", "name")
    assert ran == Ran(
        0,
        "x.safetensors: safetensors\n"
        "  name      dtype    shape  bytes\n"
        "  flag      bool     2          2\n"
        "  ids       int64    3         24\n"
        "  net.2.w   float16  2x0        0\n"
        "  net.10.w  float32  2x3       24\n"
        "  4 tensors, 50 B: 1 bool (2 B), 1 int64 (24 B), 1 float16 (0 B), 1 float32 (24 B)\n",
        "",
    )


def test_values(tconv: Tconv) -> None:
    write()
    ran = tconv("inspect", "x.safetensors", "--values", "--only", "net*", "--only", "ids", "--sort", "nan")
    assert ran.code == 0
    header, *rows, total = [line.split() for line in ran.out.splitlines()[1:]]
    assert " ".join(header) == "name dtype shape bytes min max mean 1% 50% 99% NaN inf zeros min to max"
    assert " ".join(rows[0][:13]) == "net.10.w float32 2x3 24 -2 3 0.5 -1.94 0.5 2.94 1 1 1"
    assert set(rows[0][13]) <= set(BARS)
    assert len(rows[0][13]) == 16
    by_name = {row[0]: row for row in rows}
    assert by_name["net.2.w"][4:] == ["0", "0", "0"]
    assert by_name["ids"][4:6] == ["-9223372036854775808", "9223372036854775807"]
    assert total[:2] == ["3", "tensors,"]


def test_bars_are_plain_where_the_output_is_no_utf8(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([0, 0, 0, 1]))
    command = [sys.executable, "-m", "tconv", "inspect", "x.npy", "--values"]
    for encoding, bars in (("ascii", PLAIN_BARS), ("utf8", BARS)):
        env = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
        line = done.stdout.decode(encoding).splitlines()[2]
        assert line.endswith(bars[5] + 14 * bars[0] + bars[2])


def test_names_that_the_output_cannot_say_are_escaped(tmp_path: Path) -> None:
    save_file({"größe": np.ones(1)}, tmp_path / "x.safetensors")
    command = [sys.executable, "-m", "tconv", "inspect", "x.safetensors"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
    assert b"gr\\xf6\\xdfe" in done.stdout


def test_a_part_that_is_there_twice_is_a_part_twice(tconv: Tconv, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    w = torch.arange(12.0).view(3, 4)
    torch.save({"w": w, "row": w[1], "again": w[1]}, tmp_path / "x.pt")
    lines = tconv("inspect", "x.pt").out.splitlines()
    assert [line.rpartition("  ")[2] for line in lines[3:5]] == ["part of w", "part of w"]


def test_a_checkpoint_tells_what_is_shared_and_what_requires_gradients(tconv: Tconv, checkpoint: Path) -> None:
    ran = tconv("inspect", "ckpt.pt")
    marks = {line.split()[0]: line for line in ran.out.splitlines()}
    assert marks["state_dict.head"].endswith("same as state_dict.emb")
    assert marks["state_dict.row"].endswith("part of state_dict.emb")
    assert marks["state_dict.p"].endswith("requires_grad")
    assert marks["5"].endswith("5 tensors, 64 B: 4 float32 (56 B), 1 int64 (8 B)")  # 48 of emb, 8 of p, 8 of n
    found = json.loads(tconv("inspect", "ckpt.pt", "--json", "--values").out)["files"][0]["tensors"]
    assert [t["shares"] for t in found[1:3]] == [
        {"how": "same", "of": "state_dict.emb"}, {"how": "part", "of": "state_dict.emb"}
    ]  # fmt: skip
    assert [t["values"]["max"] for t in found] == [11, 11, 7, 1, 7]


def test_the_device_tag_is_shown_where_one_is_not_the_cpu(tconv: Tconv) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2)}, "cpu.pt")
    with zipfile.ZipFile("cpu.pt") as source, zipfile.ZipFile("gpu.pt", "w") as target:
        for name in source.namelist():  # where it was saved from is a text in the pickle
            target.writestr(name, source.read(name).replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:1"))
    assert tconv("inspect", "gpu.pt").out.splitlines()[1:3] == [
        "  name  dtype    shape  device  bytes",
        "  w     float32  2      cuda:1      8",
    ]
    assert "device" not in tconv("inspect", "cpu.pt").out


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    write()
    text = tconv("inspect", "x.safetensors", "--json", "--values", "--sort", "name").out
    found: dict[str, Any] = json.loads(text)
    assert "NaN" not in text
    assert set(found) == {"files", "totals"}
    assert found["totals"] == {
        "tensors": 4,
        "bytes": 50,
        "dtypes": {
            "bool": {"tensors": 1, "bytes": 2},
            "int64": {"tensors": 1, "bytes": 24},
            "float16": {"tensors": 1, "bytes": 0},
            "float32": {"tensors": 1, "bytes": 24},
        },
    }
    (file,) = found["files"]
    tensors = file.pop("tensors")
    assert file == {"path": "x.safetensors", "format": "safetensors", "kind": "weights"}
    assert tensors[3] == {
        "name": "net.10.w",
        "dtype": "float32",
        "shape": [2, 3],
        "axes": None,
        "channels": None,
        "range": None,
        "device": "cpu",
        "bytes": 24,
        "requires_grad": False,
        "shares": None,
        "values": {
            "of": "values",
            "count": 6,
            "nan": 1,
            "inf": 1,
            "zeros": 1,
            "min": -2.0,
            "max": 3.0,
            "mean": 0.5,
            "quantiles": {"1%": -1.94, "50%": 0.5, "99%": 2.94},
            "spread": [1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1],
            "exact": True,
        },
    }
    ids = tensors[1]["values"]
    assert (ids["min"], ids["max"], ids["mean"]) == (-(2**63), 2**63 - 1, -1 / 3)
    assert tensors[2]["values"] == {
        **dict.fromkeys(("min", "max", "mean", "quantiles", "spread")),
        **dict.fromkeys(("count", "nan", "inf", "zeros"), 0),
        "of": "values",
        "exact": True,
    }
    assert json.loads(tconv("inspect", "x.safetensors", "--json").out)["files"][0]["tensors"][0]["values"] is None


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for n, (name, size) in enumerate((("1.png", (4, 6)), ("2.png", (2, 3)), ("10.png", (1, 1)))):
        Image.fromarray(np.full((*size, 3), 50 * n, np.uint8)).save(folder / name)
    return folder


def test_a_folder_of_images_is_one_table(tconv: Tconv, images: Path) -> None:
    ran = tconv("inspect", "images")
    assert ran == Ran(
        0,
        "file           format  dtype  shape  axes  bytes\n"
        "images/1.png   png     uint8  4x6x3  HWC      72\n"
        "images/2.png   png     uint8  2x3x3  HWC      18\n"
        "images/10.png  png     uint8  1x1x3  HWC       3\n"
        "3 tensors in 3 files, 93 B\n",
        "",
    )
    lines = tconv("inspect", "images", "--values", "--sort", "max").out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["images/10.png", "images/2.png", "images/1.png"]


def test_files_of_several_tensors_have_tables_of_their_own(tconv: Tconv, images: Path) -> None:
    write()
    np.savez("y.npz", inner=np.zeros(3))
    ran = tconv("inspect", "images", "y.npz", "x.safetensors")
    lines = ran.out.splitlines()
    assert lines[0].split() == ["file", "name", "format", "dtype", "shape", "axes", "bytes"]
    assert "inner" in lines[4]
    assert lines[6] == "x.safetensors: safetensors"
    assert lines[-1].startswith("total: 8 tensors in 5 files, 167 B: 3 uint8")


def test_only_looks_through_all_files_before_it_complains(tconv: Tconv, images: Path) -> None:
    ran = tconv("inspect", "images", "--only", "2*")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("images/2.png: PNG\n")
    ran = tconv("inspect", "images", "--only", "zebra*")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "tconv: no tensor is left by --only; names here are 1.png, 2.png, 10.png\n"
    assert tconv("inspect", "images", "--skip", "2*").out.count("images/") == 2


def test_what_cannot_be_read_is_told_and_the_rest_is_shown(tconv: Tconv, images: Path) -> None:
    Path("bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    ran = tconv("inspect", "bad.npy", images / "1.png")
    assert ran.code == 1
    assert ran.err.startswith("tconv: bad.npy: ")
    assert "1.png" in ran.out
    data = (images / "2.png").read_bytes()
    at = data.index(b"IDAT") + 8
    (images / "2.png").write_bytes(data[:at] + bytes(4) + data[at + 4 :])
    ran = tconv("inspect", "images", "--values")
    assert ran.code == 1
    assert "images/2.png" in ran.err
    assert [line.split()[-1] == BARS[5] + 15 * BARS[0] for line in ran.out.splitlines()[1:4]] == [True, False, True]


def test_an_empty_container(tconv: Tconv) -> None:
    save_file({}, "x.safetensors")
    assert tconv("inspect", "x.safetensors", "--values").out == "x.safetensors: safetensors\n  0 tensors, 0 B\n"


def test_complex_values_are_marked_as_magnitudes(tconv: Tconv) -> None:
    np.save("x.npy", np.array([3 + 4j, 0]))
    ran = tconv("inspect", "x.npy", "--values")
    assert "values: magnitudes" in ran.out
    assert (
        json.loads(tconv("inspect", "x.npy", "--values", "--json").out)["files"][0]["tensors"][0]["values"]["max"] == 5
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x.npy", "--sort", "weight"], ["weight", "name"]),
        (["x.npy", "--sort", "max"], ["--sort max", "--values"]),
        ([], ["PATH"]),
        (["x.npy", "--valeus"], ["--valeus", "--values"]),
    ],
)
def test_a_wrong_command_is_exit_2(tconv: Tconv, argv: list[str], words: list[str]) -> None:
    np.save("x.npy", np.ones(2))
    ran = tconv("inspect", *argv)
    assert (ran.code, ran.out) == (2, "")
    for word in words:
        assert word in ran.err


def test_a_tensor_larger_than_memory_is_described_from_its_header(tconv: Tconv) -> None:
    with Path("big.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
        file.truncate(file.tell() + (1 << 42))
    assert "4,398,046,511,104" in tconv("inspect", "big.npy").out


def test_a_sharded_checkpoint_is_one_table(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    expected = [
        "m/model.safetensors.index.json: sharded checkpoint",
        "  name                dtype    shape  bytes  shard",
        "  lm_head.weight      float32  8x4      128  model-00002-of-00002.safetensors",
        "  model.embed.weight  float32  8x4      128  model-00001-of-00002.safetensors",
        "  2 tensors, 256 B",
    ]
    for named in ("m", "m/model.safetensors.index.json"):
        ran = tconv("inspect", named, "--only", "*.weight", "--sort", "name")
        assert ran.out.splitlines() == expected
