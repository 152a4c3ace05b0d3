"""Batches: what goes into which file, by which name, and all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file

from tconv import batches
from tconv.errors import TconvError
from tconv.inputs import Input
from tconv.registry import FORMATS
from tconv.targets import Target
from tests.cli.conftest import Ran, tconv
from tests.memory import stream, tensor

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Seven pictures of one size, each of one value: its number."""
    folder = tmp_path / "images"
    folder.mkdir()
    for n in range(7):
        Image.fromarray(np.full((4, 6, 3), n, np.uint8)).save(folder / f"{n}.png")
    return folder


def ragged(folder: Path, *sizes: tuple[int, int]) -> Path:
    folder.mkdir()
    for n, (height, width) in enumerate(sizes):
        Image.fromarray(np.full((height, width, 3), 1 + n, np.uint8)).save(folder / f"{n}.png")
    return folder


def names() -> list[str]:
    return sorted(p.name for p in Path().iterdir() if p.is_file())


def test_three_to_a_file_and_the_last_what_is_left(tconv: Tconv, images: Path) -> None:
    ran = tconv(images, "--batch-size", "3", "-o", "out.npy")
    assert ran == Ran(0, "out-00000.npy\nout-00001.npy\nout-00002.npy\n", "")
    assert [np.load(p)[:, 0, 0, 0].tolist() for p in sorted(Path().glob("out-*.npy"))] == [[0, 1, 2], [3, 4, 5], [6]]
    assert names() == ["out-00000.npy", "out-00001.npy", "out-00002.npy"]


def test_the_array_has_one_name_in_all_files_of_every_format(tconv: Tconv, images: Path) -> None:
    for suffix in ("npz", "safetensors", "pt"):
        assert tconv(images, "--batch-size", "4", "--layout", "NCHW", "-o", f"out.{suffix}", "--verify").code == 0
    for n, count in ((0, 4), (1, 3)):
        found = [
            dict(np.load(f"out-0000{n}.npz")),
            load_file(f"out-0000{n}.safetensors"),
            torch.load(f"out-0000{n}.pt", weights_only=True),
        ]
        for holds in found:
            assert {name: tuple(x.shape) for name, x in holds.items()} == {"out": (count, 3, 4, 6)}


def test_into_a_folder_and_beside_one(tconv: Tconv, images: Path) -> None:
    assert tconv(images, "--batch-size", "5", "-o", "all/", "--format", "npy").out == "all/\n"
    assert sorted(p.name for p in Path("all").iterdir()) == ["batch-00000.npy", "batch-00001.npy"]
    assert tconv(images, "--batch-size", "5", "-o", "more/").code == 0
    assert load_file("more/batch-00001.safetensors")["batch"].shape == (2, 4, 6, 3)
    assert tconv(images, "--batch-size", "5").out == f"{images}-00000.safetensors\n{images}-00001.safetensors\n"


def test_arrays_of_several_files(tconv: Tconv) -> None:
    for n in range(3):
        np.save(f"{n}.npy", np.full(2, n, np.float64))
    assert tconv("0.npy", "1.npy", "2.npy", "--to", "float32", "--batch-size", "2", "-o", "x.npz").code == 0
    assert np.load("x-00000.npz")["x"].tolist() == [[0, 0], [1, 1]]
    assert np.load("x-00001.npz")["x"].tolist() == [[2, 2]]


def test_the_last_is_dropped_as_asked_and_told(tconv: Tconv, images: Path) -> None:
    ran = tconv(images, "--batch-size", "3", "--drop-last", "-o", "out.npy")
    assert ran == Ran(0, "out-00000.npy\nout-00001.npy\n", "--drop-last leaves out 1 of 7: 6.png\n")
    ran = tconv(images, "--batch-size", "8", "--drop-last", "-o", "none.npy")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no batch of 8, only 7" in ran.err
    assert tconv(images, "--batch-size", "7", "--drop-last", "-o", "even.npy").err == ""


def test_the_plan_is_what_is_done(tconv: Tconv, images: Path) -> None:
    argv = (images, "--batch-size", "3", "--normalize", "-o", "out.npz")
    planned = tconv(*argv, "-n")
    lines = planned.out.splitlines()
    assert lines[1] == "batches of 3: 3 in all, out-00002.npz has 1"
    assert [line.split(" (")[0] for line in lines if line.startswith("out-")] == [
        "out-00000.npz", "out-00001.npz", "out-00002.npz",
    ]  # fmt: skip
    rows = [line.split()[:2] for line in lines if line.lstrip().startswith("[")]
    assert rows == [[f"[{n % 3}]", f"{images}/{n}.png"] for n in range(7)]
    assert not names()
    assert tconv(*argv).code == 0
    (total,) = [line for line in lines if line.startswith("total: ")]
    assert f"({sum(Path(n).stat().st_size for n in names()):,} bytes) in 3 files" in total


def test_padding_is_to_the_largest_of_each_batch(tconv: Tconv, tmp_path: Path) -> None:
    folder = ragged(tmp_path / "r", (2, 3), (5, 1), (7, 9), (1, 1))
    assert tconv(folder, "--pad", "--batch-size", "2", "-o", "x.npz") == Ran(0, "x-00000.npz\nx-00001.npz\n", "")
    first, second = (dict(np.load(f"x-0000{n}.npz")) for n in (0, 1))
    assert {name: x.shape for name, x in first.items()} == {"x": (2, 5, 3, 3), "x.mask": (2, 5, 3)}
    assert {name: x.shape for name, x in second.items()} == {"x": (2, 7, 9, 3), "x.mask": (2, 7, 9)}
    assert [x["x.mask"].sum(axis=(1, 2)).tolist() for x in (first, second)] == [[6, 5], [63, 1]]
    for found in (first, second):
        assert not found["x"][~found["x.mask"]].any()
        assert found["x"][found["x.mask"]].all()


def test_a_format_of_one_array_leaves_the_mask_out_and_says_so(tconv: Tconv, tmp_path: Path) -> None:
    folder = ragged(tmp_path / "r", (2, 3), (5, 1))
    ran = tconv(folder, "--pad", "9", "-o", "x.npy")
    assert ran == Ran(0, "x.npy\n", "x.mask: left out, as .npy holds one array; .npz or .safetensors hold both\n")
    assert np.load("x.npy")[1, 0].tolist() == [[2] * 3, [9] * 3, [9] * 3]
    np.savez("y.npz", a=np.ones((2, 3)), b=np.ones((5, 1)))
    ran = tconv("y.npz", "--input-layout", "HW", "--pad", "--split", "--format", "npy", "-o", "out/")
    assert ran == Ran(0, "out/\n", "")
    assert [np.load(f"out/y{name}.npy").sum() for name in ("", ".mask")] == [11, 11]


def test_one_spoiled_picture_leaves_no_batch_behind(tconv: Tconv, images: Path) -> None:
    data = (images / "6.png").read_bytes()
    at = data.index(b"IDAT") + 8
    (images / "6.png").write_bytes(data[:at] + bytes(4) + data[at + 4 :])
    ran = tconv(images, "--batch-size", "2", "-o", "out.npy")
    assert (ran.code, ran.out, names()) == (1, "", [])
    ran = tconv(images, "--batch-size", "2", "-o", "out.npy", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "out-00000.npy\nout-00001.npy\nout-00002.npy\n")
    assert np.load("out-00002.npy")[:, 0, 0, 0].tolist() == [4, 5]


def test_a_spoiled_picture_in_the_middle_moves_those_after_it_up(tconv: Tconv, images: Path) -> None:
    data = (images / "0.png").read_bytes()
    at = data.index(b"IDAT") + 8
    (images / "0.png").write_bytes(data[:at] + bytes(4) + data[at + 4 :])
    assert tconv(images, "--batch-size", "1", "-o", "out.npy", "--on-bad", "skip").code == 3
    assert [int(np.load(p)[0, 0, 0, 0]) for p in sorted(Path().glob("out-*"))] == [1, 2, 3, 4, 5, 6]


def test_what_is_there_is_replaced_only_as_asked_and_what_would_pass_for_a_batch_is_told(
    tconv: Tconv, images: Path
) -> None:
    assert tconv(images, "--batch-size", "3", "-o", "out.npy").code == 0
    Path("out-1.npy").touch()  # neither are these batches
    Path("out-00009.npz").touch()
    ran = tconv(images, "--batch-size", "4", "-o", "out.npy")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("exists already; --force") == 2
    assert "out-00002.npy: is there already, and would pass for one of these batches; remove it" in ran.err
    assert np.load("out-00000.npy").shape[0] == 3
    ran = tconv(images, "--batch-size", "4", "-o", "out.npy", "--force")
    assert (ran.code, ran.out) == (0, "out-00000.npy\nout-00001.npy\n")
    assert ran.err.count("\n") == 1
    assert "out-00002.npy: is there already" in ran.err
    assert [np.load(f"out-0000{n}.npy").shape[0] for n in (0, 1)] == [4, 3]


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["--batch-size", "2", "--split", "-o", "x/"], 2, "--batch-size and --split exclude each other"),
        (["--batch-size", "2", "--shard-size", "1MB", "-o", "x/"], 2, "--batch-size and --shard-size exclude"),
        (["--batch-size", "0", "-o", "x.npy"], 2, "--batch-size takes a whole number from 1"),
        (["--drop-last", "-o", "x.npy"], 2, "--drop-last without batches; say how large they are: --batch-size N"),
        (["--batch-size", "2", "--resume", "-o", "x.npy"], 2, "--resume goes on with shards"),
        (["--pad", "x", "-o", "x.npy"], 1, "x: there is no such file or folder"),
        (["--pad=x", "-o", "x.npy"], 2, "--pad x: fill takes a number, not 'x'; for example --pad for black"),
        (["--pad", "-o", "x/"], 2, "here each has a file of its own; --batch-size N puts several into each file"),
        (["--pad", "--step", "scale", "-o", "x.npy"], 2, "write: --step 'scale' --step 'pad'"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tconv: Tconv, images: Path, argv: list[str], code: int, says: str
) -> None:
    ran = tconv(images, *argv)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert not names()


def test_unequal_shapes_in_a_batch_are_refused_before_any_work_naming_two(tconv: Tconv, tmp_path: Path) -> None:
    folder = ragged(tmp_path / "r", (2, 3), (2, 3), (2, 3), (5, 1))
    ran = tconv(folder, "--batch-size", "2", "-o", "x.npy")
    assert (ran.code, ran.out, names()) == (1, "", [])
    assert "2.png is uint8 (2, 3, 3) HWC and 3.png is uint8 (5, 1, 3) HWC" in ran.err
    assert "--resize HxW or --pad makes the sizes equal" in ran.err


def test_what_values_decide_is_decided_of_all_batches_before_anything_is_written(tconv: Tconv) -> None:
    for n, value in enumerate((1.0, 2.0, 1e6)):
        np.save(f"{n}.npy", np.array([value]))
    before = names()
    ran = tconv("0.npy", "1.npy", "2.npy", "--half", "--on-overflow", "keep", "--batch-size", "1", "-o", "x.npz")
    assert (ran.code, ran.out, names()) == (1, "", before)
    assert "a stack has one dtype, so no part of it can stay as it is; 1 of 1 values overflow float16" in ran.err


def test_weights_are_no_batches(tconv: Tconv) -> None:
    save_file({"w": np.zeros((2, 2), np.float32), "v": np.zeros((2, 2), np.float32)}, "m.safetensors")
    ran = tconv("m.safetensors", "--half", "--batch-size", "1", "-o", "x.npz")
    assert (ran.code, ran.out) == (1, "")
    assert "--batch-size is for data" in ran.err
    assert "--shard-size" in ran.err


@pytest.mark.parametrize(
    ("argv", "fill"), [(["--pad"], 0), (["--pad", "114"], 114), (["--pad=1e1"], 10), (["--pad", ".5"], 0.5)]
)
def test_padding_takes_the_next_word_only_if_it_is_a_number(tconv: Tconv, argv: list[str], fill: float) -> None:
    np.savez("x.npz", a=np.ones((1, 1)), b=np.ones((2, 2)))
    assert tconv("-o", "y.npz", "--input-layout", "HW", *argv, "x.npz").code == 0
    assert np.load("y.npz")["y"][0].tolist() == [[1, fill], [fill, fill]]


def test_names_sort_however_many_there_are() -> None:
    one = Input(Path("a.npy"), FORMATS["npy"], "a")
    target = Target(Path("/x/out.npy"), Path("/x"), "y/out.npy", FORMATS["npy"], (one,))
    made = batches.numbered(target, [stream()] * 100_001)
    assert [t.path.name for t in (made[0], made[-1])] == ["out-000000.npy", "out-100000.npy"]
    assert made[7].shown == "y/out-000007.npy"
    assert all(t.batched and t.root == Path("/x") for t in made)


def test_what_the_user_should_hear_is_said_once() -> None:
    given = stream(*(tensor(np.zeros(1), str(n)) for n in range(5)))
    given = given.with_tensors(given.tensors, "a note")
    cut = batches.cut(given, 2, drop_last=False)
    assert [[t.spec.name for t in s.tensors] for s in cut] == [["0", "1"], ["2", "3"], ["4"]]
    assert [s.notes for s in cut] == [("a note",), (), ()]
    with pytest.raises(TconvError, match="leaves nothing"):
        batches.cut(given, 6, drop_last=True)
