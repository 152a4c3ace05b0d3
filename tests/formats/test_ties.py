"""Metadata that tie names to tensors: what the safetensors library writes is read; what looks like it is plain text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import load_model, save_model
from torch import nn

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats.safetensors import SafetensorsWriter
from tconv.formats.shards import read as read_index
from tconv.formats.ties import is_tied
from tconv.tensor import Extra, Spec, Stream
from tconv.writer import ReadOptions
from tests.formats.conformance import values
from tests.formats.sharded import write_index
from tests.formats.test_safetensors import read_file

W = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones(2, np.float16)


class Tied(nn.Module):
    """A model whose head is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.mid = nn.Linear(4, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight


def aliases(stream: Stream) -> dict[str, str | None]:
    return {t.spec.name: t.spec.alias_of for t in stream.tensors if is_tied(t.spec)}


def made(folder: Path, metadata: dict[str, str]) -> Path:
    save_file({"w": W, "b": B}, folder / "x.safetensors", metadata)
    return folder / "x.safetensors"


def test_what_the_library_ties_has_all_its_names(tmp_path: Path) -> None:
    model = Tied()
    save_model(model, str(tmp_path / "x.safetensors"))
    stream = read_file(tmp_path / "x.safetensors")
    assert aliases(stream) == {"head.weight": "embed.weight"}
    assert {t.spec.name for t in stream.tensors} == set(model.state_dict())
    by_name = {t.spec.name: t for t in stream.tensors}
    assert np.array_equal(values(by_name["head.weight"]), model.embed.weight.detach().numpy())
    assert stream.extra.metadata == {}
    (note,) = stream.notes
    assert note.endswith("read as another name of the same tensor, as the metadata say: head.weight as embed.weight")


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": "unknown"},
        {"a": "c", "c": "a"},
        {"a": "a"},
        {"w": "b", "b": "w"},
        {"w": "w"},
        {"format": "w"},
        {"tconv.quantized": "w"},
        {"a": "W"},
        {"a": "w "},
        {"a": ""},
        {"a": "__metadata__"},
    ],
)
def test_what_ties_nothing_is_plain_metadata(tmp_path: Path, metadata: dict[str, str]) -> None:
    stream = read_file(made(tmp_path, metadata))
    assert stream.extra.metadata == metadata
    assert sorted(t.spec.name for t in stream.tensors) == ["b", "w"]
    assert stream.notes == ()


def test_a_chain_ends_after_its_first_link(tmp_path: Path) -> None:
    stream = read_file(made(tmp_path, {"a": "w", "z": "a"}))
    assert aliases(stream) == {"a": "w"}
    assert stream.extra.metadata == {"z": "a"}


def test_a_tie_to_what_cannot_be_read_is_plain_metadata(tmp_path: Path) -> None:
    header = {"__metadata__": {"a": "q"}, "q": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 3)
    stream = read_file(tmp_path / "x.safetensors")
    assert (stream.tensors, stream.extra.metadata) == ((), {"a": "q"})


def test_data_keep_their_axes_by_all_names(tmp_path: Path) -> None:
    mark = json.dumps({"kind": "data", "axes": {"w": "HW"}})
    stream = read_file(made(tmp_path, {"tconv": mark, "a": "w"}))
    assert [(t.spec.name, t.spec.axes) for t in stream.tensors if t.spec.axes] == [("w", "HW"), ("a", "HW")]


def test_the_writer_writes_what_the_library_loads(tmp_path: Path) -> None:
    model = Tied()
    state = {name: t.numpy() for name, t in model.state_dict().items()}
    specs = [Spec(name, dtype("float32"), a.shape) for name, a in state.items() if name != "head.weight"]
    specs.insert(1, Spec("head.weight", dtype("float32"), (10, 4), alias_of="embed.weight", attrs={"tied": True}))
    writer = SafetensorsWriter(specs, Extra("weights", metadata={"made": "by hand"}))
    writer.open(tmp_path / "x.safetensors")
    for i, spec in enumerate(specs):
        assert writer.stored(i) == (spec.name != "head.weight")
        if writer.stored(i):
            writer.write(i, 0, state[spec.name].reshape(-1))
    writer.commit()
    assert (tmp_path / "x.safetensors").stat().st_size == writer.size
    with safe_open(tmp_path / "x.safetensors", "np") as file:
        assert sorted(file.keys()) == ["embed.weight", "mid.bias", "mid.weight"]
        assert file.metadata() == {"made": "by hand", "format": "pt", "head.weight": "embed.weight"}
    other = Tied()
    assert not any(load_model(other, tmp_path / "x.safetensors"))  # neither missing nor unexpected
    for name, t in other.state_dict().items():
        assert torch.equal(t, model.state_dict()[name])


def shards(folder: Path, metadata: tuple[dict[str, str], dict[str, str]], index: dict[str, str]) -> Path:
    save_file({"w": W}, folder / "1.safetensors", metadata[0])
    save_file({"b": B}, folder / "2.safetensors", metadata[1])
    return write_index(folder / "m.safetensors.index.json", {"w": "1.safetensors", "b": "2.safetensors"}, index)


def test_shards_tie_within_themselves(tmp_path: Path) -> None:
    path = shards(tmp_path, ({"a": "w", "z": "b"}, {}), {})
    stream = read_index(path, "m", ReadOptions())
    assert aliases(stream) == {"a": "w"}
    assert {t.spec.name: t.spec.attrs["shard"] for t in stream.tensors} == {
        "w": "1.safetensors", "a": "1.safetensors", "b": "2.safetensors",
    }  # fmt: skip
    assert stream.extra.metadata == {"z": "b"}


def test_the_index_ties_too_as_huggingface_hub_writes_it(tmp_path: Path) -> None:
    path = shards(tmp_path, ({"a": "w"}, {}), {"c": "b", "d": "a", "total_size": "28"})
    stream = read_index(path, "m", ReadOptions())
    assert aliases(stream) == {"a": "w", "c": "b", "d": "w"}
    assert {t.spec.name: t.spec.attrs["shard"] for t in stream.tensors if is_tied(t.spec)} == {
        "a": "1.safetensors", "c": "2.safetensors", "d": "1.safetensors",
    }  # fmt: skip
    assert stream.extra.index == {"total_size": "28"}


def test_two_shards_that_tie_the_same_name_are_refused(tmp_path: Path) -> None:
    path = shards(tmp_path, ({"a": "w"}, {"a": "b"}), {})
    with pytest.raises(TconvError, match=r"a: is in 1\.safetensors and 2\.safetensors, and the index does not know it"):
        read_index(path, "m", ReadOptions())


def test_a_name_that_one_shard_ties_and_another_holds_is_refused(tmp_path: Path) -> None:
    path = shards(tmp_path, ({"b": "w"}, {}), {})
    with pytest.raises(TconvError, match=r"b: is in more than one shard: 1\.safetensors and 2\.safetensors"):
        read_index(path, "m", ReadOptions())
