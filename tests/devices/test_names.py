"""What devices are called, and what is said where one is not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import tconv.devices
from tconv.devices import names
from tconv.devices.names import Meant, check, elsewhere, resolve
from tconv.errors import TconvError, UsageError


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    names._found.cache_clear()
    yield
    names._found.cache_clear()


@pytest.mark.parametrize("name", ["cpu", "auto", "mps", "cuda", "cuda:0", "cuda:15"])
def test_names_that_there_are(name: str) -> None:
    check(name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("cda", "did you mean cuda"),
        ("cuda:", "did you mean cuda"),
        ("cuda:-1", "did you mean cuda"),
        ("cuda:x", "did you mean cuda"),
        ("gpu", "there are cuda, cuda:1 …, mps, cpu, and auto"),
        ("", "there are cuda"),
    ],
)
def test_names_that_there_are_not(name: str, remedy: str) -> None:
    for asked in (check, resolve):
        with pytest.raises(UsageError, match=f"there is no device '{name}'") as caught:
            asked(name)
        assert caught.value.remedy.startswith(remedy)


def test_what_is_done_elsewhere_needs_no_device_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tconv.devices.there", raising=False)
    monkeypatch.delattr(tconv.devices, "there", raising=False)
    with elsewhere():
        assert [resolve(name).device for name in ("cuda:3", "auto", "cpu")] == ["cuda:3", "auto", "cpu"]
    with pytest.raises(TconvError, match="the device cuda:3 needs PyTorch"):
        resolve("cuda:3")


def test_the_cpu_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "tconv.devices.there", raising=False)
    monkeypatch.delattr(tconv.devices, "there", raising=False)
    assert resolve("cpu") == Meant("cpu")
    assert resolve("auto") == Meant(
        "cpu", "device auto: cpu, as PyTorch is not installed; pip install 'tconv[torch]' brings it"
    )
    for name in ("cuda", "cuda:1", "mps", "torch"):
        with pytest.raises(TconvError) as caught:
            resolve(name)
        assert str(caught.value) == (
            f"the device {name} needs PyTorch, which is not installed; pip install 'tconv[torch]' brings it"
        )


class Torch:
    """What there is as torch would say it."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, cuda: int = 0, mps: bool = False, built: bool = True
    ) -> None:
        torch = pytest.importorskip("torch")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda n: f"Maker {n}")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
        monkeypatch.setattr(torch.version, "cuda", "13.0" if built else None)


def refusal(name: str) -> str:
    with pytest.raises(TconvError) as caught:
        resolve(name)
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_no_cuda_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = "--device cpu, or --device auto for the best there is"
    Torch(monkeypatch)
    assert refusal("cuda") == f"there is no CUDA device here; {ways}"
    assert refusal("mps") == f"there is no MPS device here; {ways}"
    Torch(monkeypatch, built=False)
    names._found.cache_clear()
    assert refusal("cuda:3") == f"there is no CUDA device here: this PyTorch is built without CUDA; {ways}"


def test_what_torch_warns_of_is_why(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    torch = pytest.importorskip("torch")
    Torch(monkeypatch)

    def unavailable() -> bool:
        warnings.warn("CUDA initialization: Found no NVIDIA driver on your system. Please check", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", unavailable)
    assert "here: CUDA initialization: Found no NVIDIA driver on your system; --device cpu" in refusal("cuda")


def test_devices_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    Torch(monkeypatch, cuda=2)
    assert resolve("cuda") == Meant("cuda:0")
    assert resolve("cuda:1") == Meant("cuda:1")
    assert refusal("cuda:2") == "there is no device cuda:2; there are cuda:0 to cuda:1"
    Torch(monkeypatch, cuda=1)
    assert refusal("cuda:7") == "there is no device cuda:7; there is cuda:0"


def test_auto_takes_the_best_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    Torch(monkeypatch, cuda=2, mps=True)
    assert resolve("auto") == Meant("cuda:0", "device auto: cuda:0, Maker 0")
    Torch(monkeypatch, mps=True)
    names._found.cache_clear()
    assert resolve("auto") == Meant("mps", "device auto: mps")
    Torch(monkeypatch, built=False)
    names._found.cache_clear()
    assert resolve("auto") == Meant(
        "cpu", "device auto: cpu, as there is no other (this PyTorch is built without CUDA)"
    )


def test_a_name_costs_no_import() -> None:
    code = (
        "import sys; from tconv.pipeline import steps_from_text; steps_from_text(['device(cuda:1) | scale'])\n"
        "import tconv.devices.names as n; n.resolve('cpu'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
