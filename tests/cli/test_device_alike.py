"""With a device and without: the same files, reports and words, for inputs of every kind and chains of every sort."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]
torch = pytest.importorskip("torch")

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float32", "float64"]
BIG_ENDIAN = [">f2", ">f4", ">f8", ">i2", ">u4"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of every kind: values of all bits (but quiet NaNs), empty, without axes, tied, views of others, of many sizes."""
    tmp_path, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(7)
    for name in DTYPES:
        bits = rng.integers(0, 256, (6, 5, 4, np.dtype(name).itemsize), np.uint8)
        x = bits[..., 0] > 127 if name == "bool" else bits.view(name)[..., 0]
        if "float" in name:  # signalling NaNs are quiet now and then only
            words = x.view(f"u{x.itemsize}")
            words |= np.where(np.isnan(x), x.dtype.type(np.nan), 0).astype(x.dtype).view(words.dtype)
        np.save(tmp_path / f"{name}.npy", x)
    plain = np.array([[np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45, 7e4, 0.1]])
    for name in BIG_ENDIAN:
        with np.errstate(all="ignore"):
            np.save(tmp_path / f"{name[1:]}-big.npy", (plain if "f" in name else np.arange(12)).astype(name))
    np.save(tmp_path / "nothing.npy", np.zeros((0, 3), np.float32))
    np.save(tmp_path / "one.npy", np.float32(0.1))
    np.save(tmp_path / "large.npy", rng.normal(size=(60, 70)).astype(np.float32))
    many: dict[str, Any] = {f"a{n}": rng.normal(size=(4, 3 + n % 3)).astype(np.float32) for n in range(20)}
    many |= {f"d{n}": rng.normal(size=5) for n in range(7)}
    np.savez(tmp_path / "many.npz", **many, nothing=np.zeros((0, 3), np.float32), one=np.float32(3))
    _checkpoint(tmp_path)
    (tmp_path / "ragged").mkdir()
    for n, (height, width) in enumerate([(1, 1), (3, 7), (16, 16), (16, 16), (40, 33), (8, 2)]):
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(tmp_path / "ragged" / f"{n}.png")
    Image.fromarray(rng.integers(0, 65536, (9, 9), np.uint16)).save(tmp_path / "ragged" / "deep.png")
    (tmp_path / "same").mkdir()
    for n in range(9):
        Image.fromarray(rng.integers(0, 256, (12, 10, 3), np.uint8)).save(tmp_path / "same" / f"{n}.png")
    return tmp_path


@pytest.fixture(autouse=True)
def inputs(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the test; and the larger ones are made in several pieces."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr("tconv.evaluate.PIECE", 1000)


def _checkpoint(folder: Path) -> None:
    torch.manual_seed(0)
    shared, weight = torch.randn(16, 8), torch.randn(5, 4)
    state = {
        "embed.weight": shared, "head.weight": shared, "view": shared[2:5], "turned": shared.t(),
        "norm.weight": torch.ones(8), "norm.bias": torch.zeros(8), "double": weight.double(), "half": weight.half(),
        "brain": weight.bfloat16(), "e4": weight.to(torch.float8_e4m3fn), "e5": weight.to(torch.float8_e5m2),
        "long": torch.arange(9), "flags": torch.tensor([True, False]), "one": torch.tensor(1.5),
        "nothing": torch.zeros(0, 4), "parameter": torch.nn.Parameter(torch.randn(3, 3)),
        "large.weight": torch.randn(64, 32), "plain": torch.tensor([float("nan"), -float("nan"), float("inf")]),
    }  # fmt: skip
    optimizer = {"state": {0: {"step": torch.tensor(3.0), "exp_avg": torch.randn(4)}}}
    torch.save({"state_dict": state, "optimizer": optimizer, "epoch": 3}, folder / "ck.pt")
    hot = {"a": torch.tensor([1e5, 1.0]), "b": torch.tensor([1e-9, 1.0]), "c": torch.full((9,), 1e6)}
    torch.save(hot, folder / "hot.pt")


def _written(target: str) -> list[Path]:
    return [
        path for path in Path().rglob(f"{Path(target).stem}*" if target[-1] != "/" else f"{target}*") if path.is_file()
    ]


def alike(tconv: Tconv, here: tuple[str, ...], there: tuple[str, ...], target: str) -> Ran:
    """What both commands do; the second, on a device, must do the same as the first in all but the report's steps."""
    found: list[tuple[Any, ...]] = []
    for words in (here, there):
        ran = tconv(*words, "--report", "report.json", "-o", target, "-f")
        told = [line for line in ran.err.splitlines() if not line.startswith("nothing is done on torch")]
        files = {path.name: path.read_bytes() for path in _written(target)}
        report = json.loads(Path("report.json").read_text()) if ran.code == 0 else None
        found.append((ran.code, ran.out, told, files, report and {**report, "steps": ...}))
        for path in _written(target):
            path.unlink()
    assert found[1] == found[0]
    return ran


TO = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "int8", "uint8", "int16", "int64", "bool", "int4"]


@pytest.mark.parametrize("name", [*DTYPES, *(f"{name[1:]}-big" for name in BIG_ENDIAN), "nothing", "one", "large"])
def test_arrays_of_every_dtype(tconv: Tconv, name: str) -> None:
    codes = set()
    for to, policy in [*((to, "saturate") for to in TO), ("half", "error"), ("half", "inf"), ("half", "keep")]:
        words = (f"{name}.npy", "--to", to, "--on-overflow", policy)
        codes.add(alike(tconv, words, (*words, "--device", "torch"), "x.safetensors").code)
    assert 0 in codes


CHAINS = [
    ("many.npz", "cast(float16)"),
    ("many.npz", "cast(float16, max_error=0.0002)"),
    ("many.npz", 'match("a*": cast(bfloat16) | clamp(-1, 1), "*": cast(float16))'),
    ("many.npz", "cast(float64) | clamp(-0.5, 0.5) | cast(float32) | cast(bfloat16)"),
    ("ck.pt", "cast(float16)"),
    ("ck.pt", "cast(bfloat16, policy=amp)"),
    ("ck.pt", 'match("*head*": cast(float16), "*": cast(bfloat16))'),
    ("ck.pt", "quantize(int8)"),
    ("ck.pt", "quantize(int8) | quantize(int8)"),
    ("ck.pt", "cast(float16) | quantize(uint8, scheme=affine)"),
    ("ck.pt", 'match("*large*": quantize(int4, group=8)) | dequantize'),
    ("hot.pt", "cast(float16)"),
    ("hot.pt", "cast(float16, on_overflow=saturate)"),
    ("hot.pt", "cast(float16, on_overflow=inf)"),
    ("hot.pt", "cast(float16, on_overflow=keep)"),
    ("ragged", "pad"),
    ("ragged", "scale"),
    ("ragged", "scale(uint16) | cast(float32)"),
    ("ragged", "resize(9x13) | scale | normalize(imagenet) | permute(CHW) | cast(float16)"),
    ("ragged", "letterbox(20) | scale | stack"),
    ("same", "scale | stack | permute(NCHW)"),
    ("same", "scale | resize(5x4) | normalize(clip) | stack | unstack"),
    ("same", "cast(float32) | clamp(3, 200) | cast(uint8)"),
]


REFUSED = [("hot.pt", "cast(float16)"), ("ck.pt", "quantize(int8) | quantize(int8)")]


@pytest.mark.parametrize(("name", "chain"), CHAINS)
def test_chains_of_every_sort(tconv: Tconv, name: str, chain: str) -> None:
    target = "x.pt" if name.endswith(".pt") else "x.safetensors"
    for most, how in (("1", ("-j", "1")), ("7", ("-j", "8", "--max-memory", "1MB")), ("100000", ("-j", "2"))):
        here = (name, "--step", chain, *how)
        ran = alike(tconv, here, (*here, "--device", "torch", "--device-batch", most), target)
        assert ran.code == ((name, chain) in REFUSED), ran.err


@pytest.mark.parametrize(("name", "chain"), [row for row in CHAINS if " | " in row[1]])
def test_a_device_in_the_middle_and_the_cpu_in_between(tconv: Tconv, name: str, chain: str) -> None:
    here = (name, "--step", chain, "-j", "2")
    for marks in (("device(torch)", "device(cpu)", "device(torch)"), ("device(cpu)", "device(torch)", "device(cpu)")):
        steps = [step for pair in zip(itertools.cycle(marks), chain.split(" | ")) for step in pair]
        alike(tconv, here, (name, "--step", " | ".join([*steps, "device(cpu)"]), "-j", "2"), "x.pt")


@pytest.mark.parametrize(
    "words",
    [
        ("ck.pt", "--half", "--keep", "*norm*", "--verify", "-o", "x.pt"),
        ("ck.pt", "--half", "--tie", "-o", "x.safetensors"),
        ("ck.pt", "--half", "--shard-size", "1kB", "--format", "safetensors", "-o", "x/"),
        ("ck.pt", "--quantize", "int8", "--min-sqnr", "45", "-o", "x.safetensors"),
        ("same", "--normalize", "--stats", "imagenet", "--layout", "NCHW", "--batch-size", "4", "-o", "x.npy"),
        ("ragged", "--normalize", "--channels", "gray", "--pad", "-o", "x.npz"),
        ("ragged", "--normalize", "-o", "x.npy"),
        ("uint8.npy", "--normalize", "--input-layout", "HWC", "--stats", "0.5/0.25", "--range", "0,200", "-o", "x.npy"),
    ],
)
def test_options_of_every_sort(tconv: Tconv, words: tuple[str, ...]) -> None:
    *here, _, target = words
    ran = alike(tconv, tuple(here), (*here, "--device", "torch", "--device-batch", "3"), target)
    assert ran.code == ("stack" in ran.err), ran.err
