"""A torchvision for tests of what calls it: the exact decoder in its place, and a list of what it was asked for."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import simplejpeg  # type: ignore[import-untyped]  # it has no annotations
import torch

import tconv.devices


class TorchVision:
    """``said``: what it raises instead of decoding. ``shift``: what its pixels are off by, as those of a GPU are."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.said = ""
        self.shift = 1

    def decode_jpeg(self, encoded: Any, mode: Any, device: Any) -> Any:
        data = bytes(encoded.numpy())
        self.asked.append((str(device), mode, len(data)))
        if self.said:
            raise RuntimeError(self.said)
        pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False)
        return torch.from_numpy(pixels ^ self.shift).permute(2, 0, 1)


def installed(monkeypatch: pytest.MonkeyPatch, cuda: str | None = "13.0") -> TorchVision:
    """As if it were installed, for this test."""
    made = TorchVision()
    package, io = ModuleType("torchvision"), ModuleType("torchvision.io")
    vars(package).update(version=SimpleNamespace(cuda=cuda), io=io)
    vars(io).update(decode_jpeg=made.decode_jpeg, ImageReadMode=SimpleNamespace(RGB="RGB"))
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.io", io)
    forgotten(monkeypatch)
    return made


def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not."""
    monkeypatch.setitem(sys.modules, "torchvision", None)
    forgotten(monkeypatch)


def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imported it imports it again, in this test and after it."""
    monkeypatch.delitem(sys.modules, "tconv.devices.nvjpeg", raising=False)
    monkeypatch.delattr(tconv.devices, "nvjpeg", raising=False)
    monkeypatch.setitem(sys.modules, "tconv.devices.nvjpeg", None)
    del sys.modules["tconv.devices.nvjpeg"]
