"""check: what is named, what is not, the exit code, the JSON that its help promises."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from tests.cli.conftest import Ran
from tests.shared_data import shared

Tconv = Callable[..., Ran]


@pytest.fixture(autouse=True)
def weights(tmp_path: Path) -> None:
    save_file(
        {
            "a": np.array([[1, 2], [3, 7e4]], np.float32),
            "b": np.array([1e-9, np.nan]),
            "counter": np.array(3),
        },
        tmp_path / "w.safetensors",
    )
    np.save(tmp_path / "ids.npy", np.arange(4))


def test_a_shape_may_be_written_as_numpy_prints_it(tconv: Tconv) -> None:
    np.save("x.npy", np.zeros((2, 3)))
    for text in ("2,3", "2x3", "(2, 3)", "[2, 3]", "(*, 3)"):
        assert tconv("check", "x.npy", "--shape", text).code == 0
    assert tconv("check", "x.npy", "--shape", "(2,)").code == 1


def test_found_double_which_one(tconv: Tconv) -> None:
    ran = tconv("check", "w.safetensors", "--expect", "float32")
    assert ran == Ran(1, "w.safetensors: b: is float64, expected float32\n", "1 of 2 tensors in 1 file: not as asked\n")
    assert tconv("check", "w.safetensors", "--expect", "float32,double").code == 0
    assert tconv("check", "w.safetensors", "--expect", "float", "--expect", "torch.float64").code == 0
    ran = tconv("check", "w.safetensors", "--expect", "float32", "--all")
    assert "w.safetensors: counter: is int64, expected float32" in ran.out.splitlines()
    ran = tconv("check", "ids.npy", "--expect", "float32")
    assert ran.out == "ids.npy: ids: is int64, expected float32\n"


def test_would_it_overflow_in_half(tconv: Tconv) -> None:
    ran = tconv("check", "w.safetensors", "--fits", "half")
    assert ran.code == 1
    assert ran.out == (
        "w.safetensors: a: float32 2x2: 1 of 4 values overflow float16 (the largest is 70000; its range is ±65504), "
        "the worst, 70000, at [1, 1]\n"
    )
    assert ran.err.startswith("w.safetensors: b: float64 2: 1 of 2 values would become 0 in float16\n")
    ran = tconv("check", "w.safetensors", "--fits", "half", "--only", "b")
    assert (ran.code, ran.out) == (0, "")
    assert tconv("check", "w.safetensors", "--fits", "bfloat16").code == 0


def test_finite_shape_and_range(tconv: Tconv) -> None:
    ran = tconv("check", "w.safetensors", "--finite", "--shape", "2,*", "--range", "0,10", "--skip", "counter")
    assert ran.out.splitlines() == [
        "w.safetensors: b: has the shape 2, expected 2x*",
        "w.safetensors: b: float64 2: 1 NaN of 2 values, the first, NaN, at [1]",
        "w.safetensors: b: float64 2: 1 of 2 values lie outside [0, 10] (1 NaN), the worst, NaN, at [1]",
        "w.safetensors: a: float32 2x2: 1 of 4 values lie outside [0, 10], the worst, 70000, at [1, 1]",
    ]
    assert tconv("check", "w.safetensors", "--shape", "()", "--only", "counter").code == 0
    assert tconv("check", "ids.npy", "--shape", "4", "--range", "0,3", "--finite", "-q") == Ran(0, "", "")
    assert tconv("check", "ids.npy", "--range", "0,2", "-q") == Ran(1, "", "")


def test_the_json_is_as_the_help_says(tconv: Tconv) -> None:
    ran = tconv("check", "w.safetensors", "ids.npy", "--finite", "--fits", "float16", "--expect", "float32", "--json")
    found = json.loads(ran.out)
    assert ran.code == 1
    assert found["holds"] is False
    assert found["checked"] == {"files": 2, "tensors": 4}
    assert [(f["tensor"], f["rule"], f["wanted"]) for f in found["broken"]] == [
        ("b", "expect", "float32"), ("b", "finite", "finite"), ("a", "fits", "float16"), ("ids", "expect", "float32")
    ]  # fmt: skip
    assert found["broken"][1] == {
        "file": "w.safetensors",
        "tensor": "b",
        "dtype": "float64",
        "shape": [2],
        "rule": "finite",
        "wanted": "finite",
        "reason": "1 NaN of 2 values, the first, NaN, at [1]",
        "values": {"count": 2, "bad": 1, "worst": "nan", "index": [1]},
    }
    assert found["broken"][0]["values"] is None
    assert [(w["tensor"], w["values"]["worst"]) for w in found["warnings"]] == [("b", None)]
    assert json.loads(tconv("check", "ids.npy", "--finite", "--json").out)["holds"] is True


def test_trouble_is_exit_2_and_what_breaks_is_told_all_the_same(tconv: Tconv) -> None:
    Path("bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    ran = tconv("check", "bad.npy", "ids.npy", "--expect", "float32")
    assert ran.code == 2
    assert ran.out == "ids.npy: ids: is int64, expected float32\n"
    assert "tconv: bad.npy: " in ran.err
    assert tconv("check", "nowhere.npy", "--finite").code == 2
    assert tconv("check", "ids.npy", "--finite", "--only", "zebra").code == 2
    short = Path("ids.npy").read_bytes()[:-8]
    Path("short.npz").write_bytes(short)
    assert tconv("check", "short.npz", "--finite").code == 2


def test_nothing_to_check_is_said(tconv: Tconv) -> None:
    ran = tconv("check", "w.safetensors", "--expect", "float32", "--only", "counter")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing to check" in ran.err
    assert "--all" in ran.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["ids.npy"], ["nothing to check", "--expect", "--finite"]),
        (["ids.npy", "--expect", "floot32"], ["floot32", "float32"]),
        (["ids.npy", "--expect", "float32,"], ["no dtype"]),
        (["ids.npy", "--shape", "a,3"], ["--shape", "'*,3,224,224'"]),
        (["ids.npy", "--shape", ""], ["--shape"]),
        (["ids.npy", "--shape", "-1"], ["--shape"]),
        (["ids.npy", "--range", "1"], ["LO,HI"]),
        (["--finite"], ["PATH"]),
    ],
)
def test_a_wrong_command_is_exit_2(tconv: Tconv, argv: list[str], words: list[str]) -> None:
    ran = tconv("check", *argv)
    assert (ran.code, ran.out) == (2, "")
    for word in words:
        assert word in ran.err


def test_a_checkpoint_with_buffers_and_an_optimizer(tconv: Tconv) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = {"state": {0: {"exp_avg": torch.full((2,), 1e30), "step": torch.tensor(1.0, dtype=torch.float64)}}}
    torch.save({"state_dict": model.state_dict(), "optimizer": optimizer}, "ckpt.pt")
    assert tconv("check", "ckpt.pt", "--expect", "float32", "--fits", "float16", "--finite").code == 0
    ran = tconv("check", "ckpt.pt", "--expect", "float32", "--fits", "float16", "--all")
    assert [line.split(": ")[1] for line in ran.out.splitlines()] == [
        "state_dict.1.num_batches_tracked", "optimizer.state.0.exp_avg", "optimizer.state.0.step"
    ]  # fmt: skip


def test_real_checkpoints_are_finite(tconv: Tconv) -> None:
    folder = shared("checkpoints", "pypi_silero-vad")
    ran = tconv("check", *folder.rglob("*.safetensors"), "--finite", "--expect", "float32")
    assert (ran.code, ran.out) == (0, "")


def test_a_folder_is_checked_whatever_it_holds(tconv: Tconv) -> None:
    Path("runs").mkdir()
    np.save("runs/a.npy", np.array([np.nan]))
    Image.new("RGB", (2, 2)).save("runs/loss.png")
    ran = tconv("check", "runs", "--finite")
    assert ran.code == 1
    assert "runs/a.npy: " in ran.out


def test_the_bounds_of_integers_are_exact(tconv: Tconv) -> None:
    np.save("u.npy", np.array([2**64 - 1], np.uint64))
    assert tconv("check", "u.npy", "--range", "0,18446744073709551614").code == 1
    assert tconv("check", "u.npy", "--range", "0,18446744073709551615").code == 0


def test_a_range_beyond_the_dtype_lets_no_infinity_pass(tconv: Tconv) -> None:
    for source in ("float16", "float32"):
        np.save("x.npy", np.array([1, np.inf], source))
        ran = tconv("check", "x.npy", "--range=-1e39,1e39")
        assert ran == Ran(
            1,
            f"x.npy: x: {source} 2: 1 of 2 values lie outside [-1e+39, 1e+39], the worst, inf, at [1]\n",
            "1 of 1 tensor in 1 file: not as asked\n",
        )


def test_a_range_is_that_of_a_conversion(tconv: Tconv) -> None:
    np.save("h.npy", np.array([0.7], np.float16))
    assert tconv("check", "h.npy", "--range", "0,0.7").code == 0
    ran = tconv("h.npy", "--range", "0,0.7", "--normalize", "-o", "made.npy")
    assert (ran.code, ran.err) == (0, "")
    np.save("i.npy", np.array([2**53 + 1]))
    assert tconv("check", "i.npy", "--range", "0,9007199254740992.0").code == 1
    ran = tconv("i.npy", "--range", "0,9007199254740992.0", "--normalize", "-o", "made.npy", "-f")
    assert ran.err.startswith("i.npy: i: 1 of 1 values lie outside the stated range")


def test_several_dtypes_are_asked_whether_a_cast_would_fit(tconv: Tconv) -> None:
    np.savez("x.npz", large=np.array([70000.0]), huge=np.array([1e39]))
    ran = tconv("check", "x.npz", "--fits", "half", "--fits", "bf16", "--json")
    broken = [(one["tensor"], one["wanted"]) for one in json.loads(ran.out)["broken"]]
    assert (ran.code, broken) == (1, [("large", "float16"), ("huge", "float16"), ("huge", "bfloat16")])
    ran = tconv("check", "x.npz", "--range", "0,1", "--range", "0,2")
    assert (ran.code, ran.out) == (2, "")
    assert "--range is given twice" in ran.err
