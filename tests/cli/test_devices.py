"""Devices on the command line: the same files, what the plan says, refusals, and ``tconv devices``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tconv.cli.devices import _verdict
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]
ROOT = Path(__file__).resolve().parents[2]
PHOTOS = ROOT / "examples" / "photos"
BY_TORCH = ("--device", "torch")  # through torch's CPU


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


CONVERSIONS = [
    ("photos", "--resize", "32x32", "--normalize", "--stats", "imagenet", "--layout", "CHW", "-o", "x.npy"),
    ("photos", "--resize", "32x32", "--normalize", "--half", "-o", "x.safetensors"),
    ("photos", "--normalize", "--bf16", "-o", "x.safetensors"),
    ("photos", "--step", "scale | normalize(clip) | permute(CHW) | cast(float8_e4m3fn)", "-o", "x.safetensors"),
    ("photos", "--pipeline", "yolo-letterbox", "-o", "x.npz"),
    ("tiny.pt", "--half", "-o", "x.pt"),
    ("tiny.pt", "--bf16", "-o", "x.safetensors"),
    ("tiny.pt", "--quantize", "int8", "-o", "x.safetensors"),
    ("tiny.pt", "--half", "--policy", "amp", "--on-overflow", "keep", "-o", "x.pt"),
]


@pytest.fixture
def examples(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS, tmp_path / "photos")
    for name in ("tiny.pt", "hot.pt"):
        shutil.copy(ROOT / "examples" / name, tmp_path)


@pytest.mark.usefixtures("torch", "examples")
@pytest.mark.parametrize("words", CONVERSIONS, ids=lambda words: " ".join(words[1:-2]))
def test_files_are_the_same_bit_for_bit(tconv: Tconv, words: tuple[str, ...]) -> None:
    here = tconv(*words, "--report", "here.json")
    target = Path(words[-1])
    bits = target.read_bytes()
    target.unlink()
    there = tconv(*words, *BY_TORCH, "--device-batch", "5", "--report", "there.json")
    assert (there.code, there.out) == (here.code, here.out) == (0, f"{target}\n")
    assert target.read_bytes() == bits
    a, b = (json.loads(Path(name).read_text())["totals"] for name in ("here.json", "there.json"))
    assert a == b


@pytest.mark.usefixtures("torch", "examples")
def test_what_does_not_fit_is_refused_in_the_same_words(tconv: Tconv) -> None:
    here = tconv("hot.pt", "--half", "-o", "x.pt")
    there = tconv("hot.pt", "--half", "-o", "x.pt", *BY_TORCH)
    assert here == there
    assert here.code == 1
    assert not Path("x.pt").exists()
    assert tconv("hot.pt", "--half", "-o", "x.pt", "--on-overflow", "saturate", *BY_TORCH).code == 0


@pytest.mark.usefixtures("torch")
def test_the_way_there_and_back_of_the_public_bug(tconv: Tconv) -> None:
    bits = np.random.default_rng(9).integers(0, 2**16, (256, 512), dtype=np.uint16)
    x = bits.view(np.float16)
    np.save("x.npy", np.where(np.isfinite(x), x, 0).astype(np.float16))
    steps = [
        word for text in ("device(torch)", "cast(float32)", "cast(float16)", "device(cpu)") for word in ("--step", text)
    ]
    for _ in range(3):
        assert tconv("x.npy", *steps, "-o", "y.npy", "-f") == (0, "y.npy\n", "")
        assert Path("y.npy").read_bytes() == Path("x.npy").read_bytes()


@pytest.mark.usefixtures("torch", "examples")
def test_the_plan_says_what_crosses_and_what_does_not(tconv: Tconv) -> None:
    np.save("x.npy", np.zeros((3, 5), np.float64))
    steps = "device(torch) | cast(float32) | clamp(0, 1) | cast(float16) | cast(float64)"
    ran = tconv("plan", "x.npy", "--step", steps, "-o", "y.npy")
    assert (
        "passes: [cast(float32): one pass] [clamp(0, 1) + cast(float16): one pass on torch] [cast(float64): one pass]\n"
        "torch: 1 tensor, one transfer each way, 60 B as float32 there and 30 B as float16 back\n"
        "on the CPU all the same: cast(float32) (fewer bytes cross so), cast(float64) (fewer bytes cross so)\n"
    ) in ran.out
    (plan,) = [json.loads(tconv("plan", "x.npy", "--step", steps, "-o", "y.npy", "--print", "json").out)]
    assert plan["transfers"] == [
        {
            "device": "torch",
            "tensors": 1,
            "there": {"dtype": "float32", "bytes": 60},
            "back": {"dtype": "float16", "bytes": 30},
        }
    ]
    assert plan["on_cpu"][0] == {"steps": "cast(float32)", "why": "fewer bytes cross so"}
    ran = tconv("plan", "photos/moon.jpg", "--resize", "8x8", "--normalize", *BY_TORCH, "-o", "y.npy")
    assert "[resize(8x8)] [scale: a table of 256 entries on torch]" in ran.out
    assert "torch: 1 tensor, one transfer each way, 192 B as uint8 there and 768 B as float32 back" in ran.out
    assert "on the CPU all the same: resize(8x8) (it needs the array as a whole)" in ran.out


@pytest.mark.usefixtures("torch")
def test_it_says_if_nothing_is_done_there(tconv: Tconv) -> None:
    np.save("x.npy", np.arange(5))
    told = "nothing is done on torch: cast(float32) (int64 to float32 is not exact there)\n"
    assert tconv("x.npy", "--float", *BY_TORCH, "-o", "y.npy") == (0, "y.npy\n", told)
    assert told in tconv("plan", "x.npy", "--float", *BY_TORCH, "-o", "z.npy").out
    assert tconv("x.npy", "--device", "cpu", "--float", "-o", "z.npy").err == ""


@pytest.mark.usefixtures("torch")
def test_out_of_memory_is_told_and_got_over(tconv: Tconv, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tconv.placed import work

    real = work.worked

    def scarce(like: Any, load: Any, slots: Any) -> Any:
        if len(slots) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(like, load, slots)

    monkeypatch.setattr(work, "worked", scarce)
    arrays = {f"{n}": np.full(4, n, np.float32) for n in range(8)}
    np.savez("x.npz", **arrays)  # type: ignore[arg-type]  # arrays by name
    ran = tconv("x.npz", "--half", *BY_TORCH, "-j", "1", "-o", "y.npz")
    assert ran.err == (
        "torch ran out of memory with 4 tensors at once, and went on with 2; --device-batch 2 starts with that\n"
    )
    with np.load("y.npz") as made:
        assert {name: made[name].tolist() for name in made} == {f"{n}": [n] * 4 for n in range(8)}


@pytest.mark.usefixtures("torch", "examples")
def test_a_file_that_breaks_on_the_way_is_named(tconv: Tconv) -> None:
    whole = Path("photos/moon.jpg").read_bytes()
    Path("photos/moon.jpg").write_bytes(whole[: len(whole) // 2])
    here = tconv("photos", "--normalize", "-o", "x.npz")
    there = tconv("photos", "--normalize", "-o", "x.npz", *BY_TORCH)
    assert here == there
    assert "photos/moon.jpg" in there.err
    assert tconv("photos", "--normalize", "-o", "x.npz", *BY_TORCH, "--on-bad", "skip").code == 3


@pytest.mark.usefixtures("examples")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--device", "cda"), "there is no device 'cda'; did you mean cuda"),
        (("--step", "device(gpu)"), "device(gpu), position 8: there is no device 'gpu'; there are cuda, cuda:1 …, mps"),
        (("--step", "device(cda)"), "device(cda), position 8: there is no device 'cda'; did you mean cuda"),
        (("--device-batch", "3"), "--device-batch without a device; say which: --device cuda"),
        (("--save-device",), "--save-device without a device; say which: --device cuda"),
        (("--device-batch", "0", "--device", "cpu"), "--device-batch takes a whole number from 1"),
        (("--step", "device(cpu)", "--device", "cpu"), "--device beside device(cpu); say it once"),
        (("--gpu",), "there is no option --gpu; it is --device cuda here"),
    ],
)
def test_wrong_commands(tconv: Tconv, words: tuple[str, ...], reason: str) -> None:
    half = () if "--step" in words else ("--half",)
    ran = tconv("tiny.pt", *half, *words)
    assert ran.code == 2
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("examples")
def test_a_device_that_is_not_there_is_one_sentence(tconv: Tconv, torch: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    for words in (("--half", "--device", "cuda"), ("--step", "device(cuda) | cast(half)")):
        ran = tconv("tiny.pt", *words, "-o", "x.pt")
        assert ran.code == 1
        assert ran.err.startswith("tconv: there is no CUDA device here")
        assert ran.err.count("\n") == 1
        assert not Path("x.pt").exists()
    ran = tconv("tiny.pt", "--half", "--device", "auto", "-o", "x.pt")
    assert ran.code == 0
    assert ran.err.startswith("device auto: ")


@pytest.mark.usefixtures("examples")
def test_a_pipeline_goes_to_a_device_whole(tconv: Tconv, torch: Any) -> None:
    ran = tconv("photos", "--pipeline", "imagenet", *BY_TORCH, "--print", "yaml")
    assert ran.out.startswith("version: 1\n")
    assert "steps:\n  - device: torch\n  - resize" in ran.out
    written = "version: 1\nsteps:\n  - device: cuda:99\n  - scale\n  - device: cpu\n"
    Path("p.yaml").write_text(written)
    ran = tconv("photos", "--pipeline", "p.yaml", "--print", "yaml")  # for another machine than this
    assert (ran.code, ran.out, ran.err) == (0, written, "")
    ran = tconv("photos", "--normalize", "--device", "cuda:99", "--print", "steps")
    assert (ran.code, ran.out, ran.err) == (0, "device(cuda:99) | scale\n", "")
    Path("p.yaml").write_text("version: 1\nsteps: [device: cuda:1, scale, device: cpu]\n")
    assert tconv("plan", "photos", "--pipeline", "p.yaml").code == (0 if torch.cuda.device_count() > 1 else 1)


@pytest.mark.usefixtures("examples")
def test_the_tag_of_a_device_is_written_if_asked_for(tconv: Tconv, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tconv("tiny.pt", "--half", *BY_TORCH, "-o", "x.pt").code == 0
    assert all(t.device.type == "cpu" for t in torch.load("x.pt")["state_dict"].values())
    from tconv.devices import names
    from tconv.steps import device

    meant = names.Meant("cuda:0")
    monkeypatch.setattr(names, "BY_TORCH", "cuda:0")  # which is then torch's CPU
    monkeypatch.setattr("tconv.devices.lane.BY_TORCH", "cuda:0")

    def resolve(name: str) -> names.Meant:
        return names.Meant("cpu") if name == "cpu" else meant

    monkeypatch.setattr(device, "resolve", resolve)
    monkeypatch.setattr(names, "resolve", resolve)
    tagged = tconv("tiny.pt", "--half", "--device", "cuda", "--save-device", "-o", "y.pt")
    assert tagged.code == 0, tagged.err
    listed = json.loads(tconv("inspect", "y.pt", "--json").out)["files"][0]["tensors"]
    assert {t["device"] for t in listed} == {"cuda:0"}
    a, b = torch.load("x.pt"), torch.load("y.pt", map_location="cpu")
    assert all(torch.equal(a["state_dict"][k], b["state_dict"][k]) for k in a["state_dict"])
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="CUDA"):
            torch.load("y.pt")
    ran = tconv("tiny.pt", "--half", "--device", "cuda", "--save-device", "-o", "y.safetensors")
    assert ran.code == 2
    assert "--save-device: .safetensors says of no tensor on which device it is; -o x.pt does" in ran.err
    ran = tconv("tiny.pt", "--step", "device(cuda) | cast(half) | device(cpu)", "--save-device", "-o", "z.pt")
    assert ran.code == 0
    assert all(t.device.type == "cpu" for t in torch.load("z.pt")["state_dict"].values())


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (0.0055, "182 times slower"),
        (0.5, "2.0 times slower"),
        (0.9, "about as fast"),
        (1.1, "about as fast"),
        (1.98, "2.0 times faster"),
        (15.6, "16 times faster"),
    ],
)
def test_what_half_is_good_for_is_said_in_words(ratio: float, told: str) -> None:
    assert _verdict(ratio) == told


KEYS = {"device", "called", "by", "casts", "transfer", "products"}


def test_devices_lists_and_measures(tconv: Tconv, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tconv.devices.timing.ENOUGH", 0.001)
    monkeypatch.setattr("tconv.devices.timing.LONGEST", 0.001)
    monkeypatch.setattr("tconv.speeds.COUNT", 1 << 12)
    ran = tconv("devices")
    assert (ran.code, ran.err) == (0, "")
    names, table, verdicts = ran.out.split("\n\n")
    assert names.startswith("cpu: ")
    header, *rows = table.splitlines()
    assert header.split() == ["device", "by", "float32", "float16", "bfloat16"]
    assert " ".join(rows[0].split()[:7]) == "cpu tconv, NumPy cast from float32, GB/s"
    assert [row.split()[0] for row in rows[1:4]] == ["cast", "product,", "cpu"]
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert verdicts.startswith("cpu by tconv, NumPy, products beside float32: float16 ")
    told = json.loads(tconv("devices", "--json").out)
    assert told["more"] is None
    for one in told["devices"]:
        assert set(one) == KEYS
        assert [(c["from"], c["to"]) for c in one["casts"]] == [
            ("float32", "float16"), ("float16", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32"),
        ]  # fmt: skip
        assert all(c["bytes_per_second"] > 0 for c in one["casts"])
        assert set(one["products"]) == {"float32", "float16", "bfloat16"}
        assert (one["transfer"] is None) == (one["device"] == "cpu")
    assert [one["by"] for one in told["devices"][:2]] == ["tconv, NumPy", "PyTorch"]
    assert len(told["devices"]) == 2 + torch.cuda.device_count() + torch.backends.mps.is_available()


WITHOUT = """
import sys
sys.modules["torch"] = None
import tconv.devices.timing as timing, tconv.speeds as speeds
timing.ENOUGH = timing.LONGEST = 0.001
speeds.COUNT = 4096
from tconv.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def without_torch(folder: Path, *words: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_without_torch(tmp_path: Path) -> None:
    ran = without_torch(tmp_path, "devices")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines() if "by " in line] == ["device", "cpu"]
    assert ran.err == "other devices need PyTorch, which is not installed; pip install 'tconv[torch]' brings it\n"
    np.save(tmp_path / "x.npy", np.ones(3))
    ran = without_torch(tmp_path, "x.npy", "--half", "--device", "cuda")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "tconv: the device cuda needs PyTorch, which is not installed; pip install 'tconv[torch]' brings it\n"
    )
    ran = without_torch(tmp_path, "x.npy", "--half", "--device", "auto")
    assert (ran.code, ran.out) == (0, "x.float16.npy\n")
    assert ran.err.startswith("device auto: cpu, as PyTorch is not installed")
    assert without_torch(tmp_path, "x.npy", "--bf16", "--device", "cpu").code == 0
