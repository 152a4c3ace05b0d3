"""--gpu-jpeg: what the plan and the notes say, refusals, and the ways to ask for it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tconv as api
from tests.cli.conftest import Ran

pytest.importorskip("torch")

from tests.devices.stand_in import TorchVision, absent, installed

Tconv = Callable[..., Ran]
PHOTOS = Path(__file__).resolve().parents[2] / "examples" / "photos"
NOTE = "JPEGs are decoded on torch: pixels differ a little from those of the exact decoder\n"
BY_TORCH = ("--device", "torch", "--gpu-jpeg")


@pytest.fixture(autouse=True)
def _photos(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS, tmp_path / "photos")


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> TorchVision:
    return installed(monkeypatch)


def test_pictures_come_from_the_device_and_that_is_said(tconv: Tconv, torchvision: TorchVision) -> None:
    ran = tconv("photos", *BY_TORCH, "-o", "x.npz")
    assert (ran.code, ran.out, ran.err) == (0, "x.npz\n", f"{NOTE}nothing is done on torch: there is nothing to do\n")
    assert tconv("photos", "-o", "y.npz").code == 0
    with np.load("x.npz") as made, np.load("y.npz") as exact:
        differ = {name for name in made if not np.array_equal(made[name], exact[name])}
        assert all(np.array_equal(made[name], exact[name] ^ 1) for name in differ)
    assert differ == {path.name for path in PHOTOS.glob("*.jpg") if _mode(path) == "RGB"}
    ran = tconv("plan", "photos", *BY_TORCH, "-o", "z.npz", "--normalize")
    assert f"decoded by torchvision on torch ({len(differ)})" in ran.out
    assert ran.err == NOTE
    plan = json.loads(tconv("plan", "photos", *BY_TORCH, "-o", "z.npz", "--print", "json").out)
    assert plan["decoders"]["torchvision on torch"] == len(differ)


def _mode(path: Path) -> str:
    with Image.open(path) as image:
        return str(image.mode)


def test_how_many_it_did_not_take_is_said(tconv: Tconv, torchvision: TorchVision) -> None:
    torchvision.said = "out of memory"
    ran = tconv("photos", *BY_TORCH, "--normalize", "--verify", "-o", "x.npz")
    assert ran.code == 0
    count = len({size for _, _, size in torchvision.asked})
    told = f"{count} of the JPEGs were decoded exactly, on the CPU, as the GPU did not take them\n"
    assert ran.err == NOTE + told
    tconv("photos", "--normalize", "-o", "y.npz")
    assert Path("x.npz").read_bytes() == Path("y.npz").read_bytes()


def test_a_broken_picture_is_named_as_ever(tconv: Tconv, torchvision: TorchVision) -> None:
    whole = Path("photos/waves.jpg").read_bytes()
    Path("photos/waves.jpg").write_bytes(whole[: len(whole) // 2])
    scaled = ("photos", "--normalize", "-o", "x.npz")
    here, there = tconv(*scaled), tconv(*scaled, *BY_TORCH)
    assert (there.code, there.err.removeprefix(NOTE)) == (here.code, here.err)
    assert "photos/waves.jpg: truncated or corrupt" in there.err
    assert tconv(*scaled, *BY_TORCH, "--on-bad", "skip").code == 3


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "--gpu-jpeg needs a CUDA device; say which: --device cuda"),
        (("--device", "cpu"), "--gpu-jpeg needs a CUDA device, and there is only cpu; say which: --device cuda"),
        (("--step", "device(cpu) | scale"), "--gpu-jpeg needs a CUDA device, and there is only cpu"),
        (("--device", "auto"), "--gpu-jpeg needs a CUDA device, and there is only cpu"),
        (("--device", "torch", "--fast", "--resize", "8"), "--gpu-jpeg and --fast exclude each other"),
    ],
)
def test_wrong_commands(tconv: Tconv, words: tuple[str, ...], reason: str) -> None:
    ran = tconv("photos", "--gpu-jpeg", *words, "-o", "x.npz")
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("x.npz").exists()


def test_without_torchvision(tconv: Tconv, monkeypatch: pytest.MonkeyPatch) -> None:
    absent(monkeypatch)
    for verb in ((), ("plan",)):
        ran = tconv(*verb, "photos", *BY_TORCH, "-o", "x.npz")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            "tconv: --gpu-jpeg needs torchvision with decode_jpeg, which is not installed; "
            "pip install torchvision in the build that goes with your PyTorch\n"
        )
    ran = tconv("photos", "--normalize", "--device", "cuda", "--gpu-jpeg", "--print", "yaml")  # for another machine
    assert (ran.code, ran.out) == (0, "version: 1\ninput: {gpu-jpeg: true}\nsteps:\n  - device: cuda\n  - scale\n")


def test_with_a_torchvision_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, cuda=None)
    from tconv.devices import nvjpeg

    nvjpeg.check("torch")
    with pytest.raises(api.TconvError, match="this torchvision is built without CUDA, which --gpu-jpeg needs"):
        nvjpeg.check("cuda:0")


@pytest.mark.usefixtures("torchvision")
def test_it_is_said_if_nothing_comes_of_it(tconv: Tconv) -> None:
    np.save("x.npy", np.ones(3, np.float32))
    ran = tconv("x.npy", "--half", *BY_TORCH, "-o", "y.npy")
    assert ran.err == f"{NOTE}no input is an image, so nothing comes of --gpu-jpeg\n"
    ran = tconv("photos/balloon.png", "--normalize", *BY_TORCH, "-o", "z.npy")
    assert ran.err == f"{NOTE}nothing comes of --gpu-jpeg: no input is a JPEG in colour\n"


def test_files_and_python_ask_for_it_too(tconv: Tconv, torchvision: TorchVision, tmp_path: Path) -> None:
    Path("p.yaml").write_text("version: 1\ninput: {gpu-jpeg: true}\nsteps:\n  - device: torch\n  - scale\n")
    ran = tconv("photos/waves.jpg", "--pipeline", "p.yaml", "-o", "x.npy")
    assert (ran.code, ran.err) == (0, NOTE)
    assert len(torchvision.asked) == 1
    assert tconv("photos/waves.jpg", "--pipeline", "p.yaml", "--print", "yaml").out == Path("p.yaml").read_text()
    made = api.convert("photos/waves.jpg", "y.npy", "device(torch) | scale", gpu_jpeg=True)
    assert made.notes == (NOTE.rstrip(),)
    assert Path("x.npy").read_bytes() == Path("y.npy").read_bytes()
    made = api.convert("photos/waves.jpg", "z.npy", "scale", device="torch", gpu_jpeg=True)
    assert Path("x.npy").read_bytes() == Path("z.npy").read_bytes()
    with pytest.raises(api.UsageError, match='gpu_jpeg=True needs a CUDA device; say which: device="cuda"'):
        api.convert("photos/waves.jpg", "v.npy", "scale", gpu_jpeg=True)
