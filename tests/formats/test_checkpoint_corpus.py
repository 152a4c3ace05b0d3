"""Every checkpoint that people have published and that is here becomes .pt and .safetensors, equal bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors import safe_open

from tconv.errors import TconvError, TconvErrors
from tconv.job import convert
from tconv.request import Request, Silent
from tests.formats.conformance import assert_same
from tests.formats.test_safetensors import library
from tests.formats.torch.made import assert_alike, to_numpy
from tests.shared_data import manifest, shared

if TYPE_CHECKING:
    from tconv.ops import Array

FAMILY = {".pt", ".pth", ".th", ".ckpt", ".bin", ".pkl", ".ptl", ".tar", ".safetensors"}
ROWS = [row for row in manifest() if row["kind"] == "checkpoints" and Path(row["path"]).suffix in FAMILY]
KINDS = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["path"].removeprefix("checkpoints/"))
Row = Mapping[str, str]


def refused(source: Path, output: Path, *skip: str) -> list[TconvError]:
    """What a conversion of all that is in ``source`` refuses; nothing, and the output is there."""
    request = Request((str(source),), output=str(output), all=True, skip=skip)
    try:
        convert(request, Silent(), lambda _: None, lambda _: None)
    except TconvError as problem:
        assert not output.exists()
        return list(problem.problems) if isinstance(problem, TconvErrors) else [problem]
    return []


def by_torch(path: Path) -> Any:
    """What torch makes of it; None where it refuses."""
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # it says no in many ways
        return None


def tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """By the keys that lead to each, joined by dots; a bare one is called by its file."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors(item, f"{name}.{key}" if name else str(key))


def named(value: Any, path: Path) -> dict[str, torch.Tensor]:
    return dict(tensors(value, path.stem if isinstance(value, torch.Tensor) else ""))


def without(value: Any, names: set[str], name: str = "") -> Any:
    """The same containers without the tensors of these names."""
    if not isinstance(value, dict):
        return value
    kept = {k: without(v, names, f"{name}.{k}" if name else str(k)) for k, v in value.items()}
    made = type(value)((k, v) for k, v in kept.items() if (f"{name}.{k}" if name else str(k)) not in names)
    vars(made).update(vars(value)) if hasattr(value, "__dict__") else None
    return made


@pytest.mark.filterwarnings("ignore")  # torch's, of old files
@KINDS
def test_both_ways(tmp_path: Path, row: Row) -> None:
    source = shared(*row["path"].split("/"))
    if source.suffix == ".safetensors":
        from_safetensors(source, tmp_path)
    else:
        from_torch(source, tmp_path, row)


def from_safetensors(source: Path, folder: Path) -> None:
    want = library(source)
    problems = [refused(source, folder / name) for name in ("x.safetensors", "x.pt")]
    if not want:
        assert all("there is no tensor in it" in str(p) for found in problems for p in found)
        assert all(problems)
        return
    assert problems == [[], []]
    assert_same(library(folder / "x.safetensors"), want)
    with safe_open(source, "np") as old, safe_open(folder / "x.safetensors", "np") as new:
        assert new.metadata() == {"format": "pt"} | (old.metadata() or {})
    assert_same(arrays(torch.load(folder / "x.pt", weights_only=True)), want)


def arrays(state: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    return {name: to_numpy(tensor) for name, tensor in state.items()}


def from_torch(source: Path, folder: Path, row: Row) -> None:
    value = by_torch(source)
    assert (value is None) == (row["ref_loads"] != "yes")
    want = named(value, source)
    quantized = {name for name, tensor in want.items() if tensor.is_quantized}
    problems = [refused(source, folder / name) for name in ("x.safetensors", "x.pt")]
    if value is None or quantized:  # also of TorchScript, none of which has weights here
        assert all(problems)
        assert all(p.file == str(source) and "\n" not in str(p) for found in problems for p in found)
    if quantized:
        assert all({p.tensor for p in found} == quantized for found in problems)
        assert all("a quantized tensor" in p.reason for found in problems for p in found)
        if quantized == want.keys():
            return
        skipped = [refused(source, folder / name, *quantized) for name in ("x.safetensors", "x.pt")]
        value, problems = without(value, quantized), skipped
    if value is not None:
        assert problems == [[], []]
        assert_alike(torch.load(folder / "x.pt", weights_only=True), value)
        kept = {name: to_numpy(tensor) for name, tensor in want.items() if name not in quantized}
        assert_same(library(folder / "x.safetensors"), kept)


def test_the_manifest_is_all_there_is() -> None:
    """So that a file which is added is tested too."""
    folder = shared("checkpoints")
    there = {p.relative_to(folder.parent).as_posix() for p in folder.rglob("*") if p.suffix in FAMILY}
    assert there == {row["path"] for row in ROWS}
