"""diff: across formats, what counts as a difference, the exit code, the JSON that its help promises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]

TENSORS: dict[str, Any] = {
    "w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "n": np.array(2**62 + 1),
    "nan": np.array([np.nan, np.inf]),
    "empty": np.zeros((0, 4), np.int8),
}


def test_the_same_across_formats(tconv: Tconv) -> None:
    save_file(TENSORS, "a.safetensors")
    np.savez("b.npz", **TENSORS)
    np.savez_compressed("c.npz", **TENSORS)
    for b in ("b.npz", "c.npz", "a.safetensors"):
        assert tconv("diff", "a.safetensors", b) == Ran(0, f"a.safetensors and {b} are equal: 4 tensors\n", "")
    assert tconv("diff", "c.npz", "b.npz", "-q") == Ran(0, "", "")


def test_a_torch_checkpoint_and_its_conversion(tconv: Tconv) -> None:
    torch = pytest.importorskip("torch")
    torch.save({k: torch.from_numpy(v) for k, v in TENSORS.items()}, "a.pt")
    assert tconv("a.pt", "-o", "b.safetensors").code == 0
    assert tconv("diff", "a.pt", "b.safetensors").code == 0


def test_what_differs_is_a_row_and_an_exit_code(tconv: Tconv) -> None:
    changed = {**TENSORS, "w": TENSORS["w"].copy(), "n": np.array(2**62)}
    changed["w"][1, 2] = 1.5
    np.savez("a.npz", **TENSORS)
    np.savez("b.npz", **changed)
    ran = tconv("diff", "a.npz", "b.npz")
    assert ran == Ran(
        1,
        "name  dtype    shape  differ  max abs   max rel     ULPs  SQNR dB  first at\n"
        "w     float32  2x3    1 of 6      0.5       0.5  4194304     10.5  [1, 2]\n"
        "n     int64    ()     1 of 1        1  2.17e-19             373.3  []\n"
        "all values together: SQNR 372.3 dB\n"  # the noise is 1 + 0.5²
        "a.npz and b.npz differ: 2 of 4 tensors in values\n",
        "",
    )
    assert tconv("diff", "a.npz", "b.npz", "--rtol", "0.5").code == 0
    assert tconv("diff", "a.npz", "b.npz", "--atol", "0.499").code == 1
    assert tconv("diff", "a.npz", "b.npz", "--skip", "[wn]") == Ran(0, "a.npz and b.npz are equal: 2 tensors\n", "")
    assert tconv("diff", "a.npz", "b.npz", "-q") == Ran(1, "", "")


def test_another_dtype_is_a_difference_unless_there_is_a_tolerance(tconv: Tconv) -> None:
    np.savez("a.npz", x=np.array([1.0, 2.0]), y=np.array([1, 2]))
    np.savez("b.npz", x=np.array([1.0, 2.0], np.float32), y=np.array([1, 2]))
    ran = tconv("diff", "a.npz", "b.npz")
    assert ran.code == 1
    assert ran.out == (
        "name  dtype               shape\n"
        "x     float64 -> float32  2\n"
        "a.npz and b.npz differ: 1 of 2 tensors in dtype\n"
    )
    ran = tconv("diff", "a.npz", "b.npz", "--rtol", "0")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "a.npz and b.npz are equal: 2 tensors, 1 of them within the tolerance"


def test_shapes_and_names(tconv: Tconv) -> None:
    np.savez("a.npz", x=np.zeros((2, 3)), left=np.zeros(1))
    np.savez("b.npz", x=np.zeros((3, 2)), right=np.zeros(1), more=np.zeros(1))
    ran = tconv("diff", "a.npz", "b.npz", "--rtol", "1")
    assert ran.code == 1
    assert ran.out == (
        "name  dtype    shape\n"
        "x     float64  2x3 -> 3x2\n"
        "only in a.npz: left\n"
        "only in b.npz: right, more\n"
        "a.npz and b.npz differ: 1 of 1 tensor in shape, 1 tensor only in a.npz, 2 tensors only in b.npz\n"
    )
    ran = tconv("diff", "a.npz", "b.npz", "--only", "left")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "only in a.npz: left")


def test_a_prefix_that_is_in_the_way_is_named(tconv: Tconv) -> None:
    names: dict[str, Any] = dict.fromkeys(("module.w", "module.b", "other"), np.zeros(1))
    np.savez("a.npz", **names)
    np.savez("b.npz", w=np.zeros(1), b=np.zeros(1))
    ran = tconv("diff", "a.npz", "b.npz")
    assert ran.code == 1
    assert "2 names of a.npz would match b.npz without 'module.' in front: --strip-prefix module.\n" in ran.out
    assert json.loads(tconv("diff", "b.npz", "a.npz", "--json").out)["hint"] == {
        "side": "b", "prefix": "module.", "names": 2
    }  # fmt: skip


def test_arrays_without_a_name_are_compared_whatever_their_files_are_called(tconv: Tconv) -> None:
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    Image.fromarray(picture).save("photo.png")
    np.save("out.npy", picture)
    np.savez("z.npz", inner=picture)
    assert tconv("diff", "photo.png", "out.npy").code == 0
    assert tconv("diff", "z.npz", "out.npy").code == 0
    np.savez("other.npz", outer=picture)
    assert tconv("diff", "z.npz", "other.npz").code == 1
    np.save("out.npy", picture[::-1])
    ran = tconv("diff", "photo.png", "out.npy")
    assert (ran.code, ran.out.splitlines()[1].split()[:6]) == (1, ["photo.png", "uint8", "2x4x3", "24", "of", "24"])


def test_nan_on_one_side(tconv: Tconv) -> None:
    np.save("a.npy", np.array([1.0, np.nan, 2.0]))
    np.save("b.npy", np.array([1.0, 5.0, 2.5]))
    ran = tconv("diff", "a.npy", "b.npy", "--atol", "1")
    assert ran.code == 1
    header, row = (" ".join(line.split()) for line in ran.out.splitlines()[:2])
    assert header == "name dtype shape differ too far max abs max rel ULPs SQNR dB NaN first at"
    assert "2 of 3 1 0.5 0.25" in row
    assert row.endswith(" 1 [1]")


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    np.savez("a.npz", x=np.array([[0.0, 1.0]]), y=np.zeros(1), gone=np.zeros(1))
    np.savez("b.npz", x=np.array([[np.inf, 1.0]]), y=np.zeros(2))
    ran = tconv("diff", "a.npz", "b.npz", "--json")
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "equal": False,
        "a": "a.npz",
        "b": "b.npz",
        "tensors": [
            {
                "name": "x",
                "dtype": ["float64", "float64"],
                "shape": [[1, 2], [1, 2]],
                "equal": False,
                "values": {
                    "count": 2,
                    "unequal": 1,
                    "beyond": 1,
                    "nan": 0,
                    "max_abs": "inf",
                    "max_rel": "inf",
                    "ulps": 0x7FF0000000000000,
                    "sqnr": None,
                    "first": [0, 0],
                },
            },
            {"name": "y", "dtype": ["float64"] * 2, "shape": [[1], [2]], "equal": False, "values": None},
        ],
        "sqnr": None,
        "only_a": ["gone"],
        "only_b": [],
        "hint": None,
    }


def test_trouble_is_exit_2(tconv: Tconv, tmp_path: Path) -> None:
    np.save("a.npy", np.zeros(4))
    (tmp_path / "folder").mkdir()
    np.save("b.npy", np.zeros(4))
    Path("c.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.savez_compressed("torn.npz", a=np.random.default_rng(0).standard_normal(4))
    data = bytearray(Path("torn.npz").read_bytes())
    data[80] ^= 0xFF
    Path("torn.npz").write_bytes(data)
    for b, word in (
        ("nowhere.npy", "no such file"),
        ("c.npy", "c.npy: "),
        ("folder", "no file that tconv reads"),
        ("[ab].npy", "2 files"),
    ):
        ran = tconv("diff", "a.npy", b)
        assert (ran.code, ran.out) == (2, ""), b
        assert word in ran.err
    for pair in (("a.npy", "torn.npz"), ("torn.npz", "a.npy")):
        ran = tconv("diff", *pair)
        assert (ran.code, ran.out) == (2, "")
        assert "torn.npz" in ran.err


@pytest.mark.parametrize(
    "argv",
    [
        ["a.npy"],
        ["a.npy", "a.npy", "--rtol", "x"],
        ["a.npy", "a.npy", "--atol", "-1"],
        ["a.npy", "a.npy", "--rtol", "nan"],
        ["a.npy", "a.npy", "a.npy"],
    ],
)
def test_a_wrong_command_is_exit_2(tconv: Tconv, argv: list[str]) -> None:
    np.save("a.npy", np.zeros(4))
    ran = tconv("diff", *argv)
    assert (ran.code, ran.out) == (2, "")


def test_big_files_of_holes_are_compared_in_little_memory(tconv: Tconv) -> None:
    for name, count in (("a.npy", 1 << 25), ("b.npy", 1 << 25)):
        with Path(name).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (count,)})
            file.truncate(file.tell() + 4 * count)
    with Path("b.npy").open("r+b") as file:
        file.seek(-4, 2)
        file.write(np.float32(1).tobytes())
    ran = tconv("diff", "a.npy", "b.npy")
    assert (ran.code, ran.out.splitlines()[1].split()[-1]) == (1, "[33554431]")


def test_what_is_no_tensor_cannot_be_compared(tconv: Tconv) -> None:
    np.savez("x.npz", a=np.zeros(3), names=np.array(["one"]))
    ran = tconv("diff", "x.npz", "x.npz")
    assert ran.code == 2
    assert "names: an array of text" in ran.err
    assert tconv("diff", "x.npz", "x.npz", "--skip", "names").code == 0
    ran = tconv("inspect", "x.npz")
    assert ran.code == 1
    assert "1 tensor" in ran.out
    assert "names: an array of text" in ran.err
    assert tconv("inspect", "x.npz", "--skip", "names").code == 0
    assert tconv("check", "x.npz", "--finite").code == 2


def test_a_training_checkpoint_and_its_model(tconv: Tconv) -> None:
    torch = pytest.importorskip("torch")
    weights = {"w": torch.ones(2), "b": torch.zeros(1)}
    torch.save({"state_dict": weights, "optimizer": {"state": torch.ones(3)}}, "ckpt.pt")
    torch.save({f"module.{name}": tensor for name, tensor in weights.items()}, "wrapped.pt")
    assert tconv("ckpt.pt", "-o", "model.safetensors").code == 0
    ran = tconv("diff", "ckpt.pt", "model.safetensors")
    hint = "2 names of ckpt.pt would match model.safetensors without 'state_dict.' in front: --select state_dict"
    assert (ran.code, hint in ran.out.splitlines()) == (1, True)
    assert tconv("diff", "ckpt.pt", "model.safetensors", "--select", "state_dict").code == 0
    assert tconv("diff", "wrapped.pt", "model.safetensors").code == 1
    assert tconv("diff", "model.safetensors", "wrapped.pt", "--strip-prefix", "module.") == Ran(
        0, "model.safetensors and wrapped.pt are equal: 2 tensors\n", ""
    )
    ran = tconv("diff", "ckpt.pt", "model.safetensors", "--select", "ema")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no 'ema' in it" in ran.err


def test_a_folder_of_shards_is_one_side(tconv: Tconv) -> None:
    save_file(TENSORS, "a.safetensors")
    assert tconv("a.safetensors", "--shard-size", "64B", "-o", "shards/").code == 0
    assert tconv("diff", "a.safetensors", "shards").out == "a.safetensors and shards are equal: 4 tensors\n"
    Path("two").mkdir()
    for name in ("x", "y"):
        np.save(f"two/{name}.npy", np.zeros(1))
    ran = tconv("diff", "two", "shards")
    assert (ran.code, ran.out) == (2, "")
    assert "two: is a folder of 2 files" in ran.err


def test_the_array_that_is_called_by_its_file_is_paired_beside_others(tconv: Tconv) -> None:
    for name in ("digits", "digits2"):
        arrays: dict[str, Any] = {name: np.arange(3.0), "labels": np.arange(3)}
        np.savez(f"{name}.npz", **arrays)
    assert tconv("diff", "digits.npz", "digits2.npz").out == "digits.npz and digits2.npz are equal: 2 tensors\n"


def test_no_ulps_where_a_value_is_off_by_all_of_itself(tconv: Tconv) -> None:
    np.savez("a.npz", x=np.array([1.0, 3.0]), y=np.array([2.0, 1.0]))
    np.savez("b.npz", x=np.array([0.0, 3.0]), y=np.array([2.0, 2.0]))
    ran = tconv("diff", "a.npz", "b.npz")
    assert "ULPs" not in ran.out
    # 10 log10((1 + 9 + 4 + 1) / (1 + 1)) = 8.75…
    assert ran.out.splitlines()[-2] == "all values together: SQNR 8.8 dB"
    assert json.loads(tconv("diff", "a.npz", "b.npz", "--json").out)["sqnr"] == pytest.approx(8.750612633917)


def test_a_name_cannot_pretend_to_be_a_line(tconv: Tconv, tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "a.safetensors")
    save_file({"w": np.ones(2, np.float32), "x\nall are equal": np.ones(1)}, tmp_path / "b.safetensors")
    ran = tconv("diff", "a.safetensors", "b.safetensors")
    assert (ran.code, ran.out) == (
        1,
        (
            "only in b.safetensors: x\\nall are equal\n"
            "a.safetensors and b.safetensors differ: 1 tensor only in b.safetensors\n"
        ),
    )
