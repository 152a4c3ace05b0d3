"""Several inputs for one file: what they hold besides tensors is kept or told, never dropped silently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.cli.conftest import Ran, tconv

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]

W = torch.tensor([[1.0, 2.0, -4.0, 3.0]])


def test_containers_and_values_that_a_merge_leaves_out_are_told(tconv: Tconv, tmp_path: Path) -> None:
    torch.save({"epoch": 3, "sd": {"q": W}}, tmp_path / "a.pt")
    torch.save({"w": W}, tmp_path / "b.pt")
    ran = tconv("a.pt", "b.pt", "-o", "x.pt")
    assert ran.err == (
        "a.pt: left out, as tensors of several files are merged: epoch\n"
        "a.pt: its containers are left out, and its tensors called by all their keys\n"
    )
    assert {n: t.tolist() for n, t in torch.load(tmp_path / "x.pt").items()} == {"sd.q": W.tolist(), "w": W.tolist()}


def test_metadata_are_merged_where_they_agree(tconv: Tconv, tmp_path: Path) -> None:
    save_file({"a": W}, tmp_path / "a.safetensors", {"by": "hand", "at": "noon"})
    save_file({"b": W}, tmp_path / "b.safetensors", {"by": "hand", "at": "night", "more": "1"})
    ran = tconv("a.safetensors", "b.safetensors", "-o", "x.safetensors")
    assert ran.err == "b.safetensors: left out: its metadata 'at', which differs from that of an earlier file\n"
    with safe_open(tmp_path / "x.safetensors", "np") as file:
        assert file.metadata() == {"by": "hand", "at": "noon", "more": "1", "format": "pt"}


def test_what_is_quantized_is_known_as_such_in_the_merged_file(tconv: Tconv, tmp_path: Path) -> None:
    save_file({"a": W}, tmp_path / "a.safetensors")
    save_file({"b": W * 2}, tmp_path / "b.safetensors")
    for name in "ab":
        command = ["--step", "quantize(nf4, group=4)", "-o", f"q{name}.safetensors"]
        assert tconv(f"{name}.safetensors", *command).code == 0
    assert tconv("qa.safetensors", "qb.safetensors", "-o", "q.safetensors").code == 0
    assert tconv("q.safetensors", "--step", "dequantize", "-o", "d.pt").code == 0
    found = torch.load(tmp_path / "d.pt")
    assert found["a"].abs().max().item() == 4
    assert found["b"].tolist() == (found["a"] * 2).tolist()
