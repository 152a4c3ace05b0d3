"""Tensors among the attributes of an ordered dict go where its items go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tconv.tensor import Ref
from tconv.training import inside, refs
from tconv.trees import renamed, with_siblings, without
from tests.cli.conftest import Ran, tconv

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]

W, EXTRA = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])


def carrying(**attributes: Any) -> OrderedDict[str, Any]:
    made: OrderedDict[str, Any] = OrderedDict(w=Ref("w"))
    vars(made).update(attributes)
    return made


def test_every_walk_sees_attributes() -> None:
    tree = carrying(extra=Ref("extra"), _metadata={"": {"version": 1}})
    assert refs([tree]) == ["w", "extra"]
    assert inside(tree) == {"w": Ref("w"), "extra": Ref("extra")}
    assert vars(renamed(tree, {"extra": "x"})) == {"extra": Ref("x"), "_metadata": {"": {"version": 1}}}
    assert vars(without(tree, {"extra"})) == {"_metadata": {"": {"version": 1}}}
    added = with_siblings(tree, {"extra": ["extra.scale"]})
    assert vars(added)["extra.scale"] == Ref("extra.scale")
    assert dict(added) == {"w": Ref("w")}
    assert vars(tree) == {"extra": Ref("extra"), "_metadata": {"": {"version": 1}}}


@pytest.fixture
def saved(tmp_path: Path) -> OrderedDict[str, torch.Tensor]:
    """m.pt holds it under "m", top.pt by itself."""
    made = OrderedDict(w=W)
    made._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]  # as Module.state_dict does
    made.extra = EXTRA  # type: ignore[attr-defined]  # an ordered dict takes any
    torch.save({"m": made, "epoch": 3}, tmp_path / "m.pt")
    torch.save(made, tmp_path / "top.pt")
    return made


def test_into_a_flat_file(tconv: Tconv, tmp_path: Path, saved: object) -> None:
    for source, prefix in (("m.pt", "m."), ("top.pt", "")):
        assert tconv(source, "-f", "-o", "x.safetensors").code == 0
        found = {name: t.tolist() for name, t in load_file(tmp_path / "x.safetensors").items()}
        assert found == {f"{prefix}w": W.tolist(), f"{prefix}extra": EXTRA.tolist()}


@pytest.mark.parametrize(
    ("options", "keys", "names"),
    [
        (["--select", "m"], [], {"extra"}),
        (["--strip-prefix", "w"], ["m"], {"extra"}),
        (["--half", "--skip", "*.w"], ["m"], {"extra"}),
        (["--quantize", "int8"], ["m"], {"extra", "extra.scale"}),
    ],
)
def test_into_a_checkpoint(
    tconv: Tconv, tmp_path: Path, saved: object, options: list[str], keys: list[str], names: set[str]
) -> None:
    assert tconv("m.pt", *options, "-f", "-o", "x.pt").code == 0
    found = torch.load(tmp_path / "x.pt", weights_only=False)
    for key in keys:
        found = found[key]
    assert set(vars(found)) - {"_metadata"} == names
    if "extra.scale" not in names:
        assert found.extra.tolist() == EXTRA.tolist()
    assert found._metadata == {"": {"version": 1}}


def test_quantized_and_back(tconv: Tconv, tmp_path: Path, saved: object) -> None:
    assert tconv("m.pt", "--quantize", "int8", "-o", "q.pt").code == 0
    assert tconv("q.pt", "--step", "dequantize(axis=0)", "-o", "d.pt").code == 0
    found = torch.load(tmp_path / "d.pt", weights_only=False)["m"]
    assert set(vars(found)) == {"_metadata", "extra"}
    assert torch.allclose(found.extra, EXTRA, atol=0.04)
