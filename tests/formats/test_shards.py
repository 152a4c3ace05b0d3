"""Sharded checkpoints in: the index and its shards must agree, and nothing outside the folder is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tconv.errors import TconvError
from tconv.formats import shards
from tconv.tensor import Stream
from tconv.writer import ReadOptions
from tests.formats.sharded import ALL, FIRST, SECOND, bin_folder, safetensors_folder, write_index

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def read(path: Path) -> Stream:
    return shards.read(path, "x", ReadOptions())


def refusal(path: Path) -> str:
    with pytest.raises(TconvError) as caught:
        read(path)
    return str(caught.value)


def pair(folder: Path, weight_map: dict[str, Any]) -> Path:
    """Two shards with the tensors a, b and c, and an index that says ``weight_map``."""
    save_file({"a": torch.ones(2)}, folder / ONE)
    save_file({"b": torch.ones(2), "c": torch.ones(2)}, folder / TWO)
    return write_index(folder / "model.safetensors.index.json", weight_map)


@pytest.mark.parametrize("make", [safetensors_folder, bin_folder])
def test_all_tensors_in_the_order_of_the_shards(make: Any, tmp_path: Path) -> None:
    folder = make(tmp_path / "m")
    stream = read(next(folder.glob("*.index.json")))
    assert {t.spec.name for t in stream.tensors[:2]} == set(FIRST)
    assert {t.spec.name for t in stream.tensors[2:]} == set(SECOND)
    assert stream.extra.kind == "weights"
    assert not stream.notes
    assert not stream.others
    for tensor in stream.tensors:
        values = tensor.source.read(0, tensor.spec.size)
        assert np.array_equal(values.reshape(tensor.spec.shape), ALL[tensor.spec.name].numpy())
        assert tensor.source.path == folder / tensor.spec.attrs["shard"]


def test_the_metadata_of_the_shards_and_of_the_index(tmp_path: Path) -> None:
    stream = read(safetensors_folder(tmp_path / "m") / "model.safetensors.index.json")
    assert stream.extra.metadata == {"format": "pt"}
    assert stream.extra.index == {"total_size": 392, "made_by": "hand"}


def test_metadata_that_differ_between_shards_are_told(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / ONE, {"by": "x"})
    save_file({"b": torch.ones(2)}, tmp_path / TWO, {"by": "y"})
    stream = read(write_index(tmp_path / "model.safetensors.index.json", {"a": ONE, "b": TWO}))
    assert stream.extra.metadata == {"by": "x"}
    assert stream.notes == (f"{TWO}: its metadata 'by' differs from that of an earlier shard, which is kept",)


def test_shards_may_be_links_out_of_the_folder(tmp_path: Path) -> None:
    """The caches of Hugging Face's hub are made of them."""
    save_file({"a": torch.ones(2)}, tmp_path / "blob")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ONE).symlink_to("../blob")
    assert len(read(write_index(tmp_path / "m" / "model.safetensors.index.json", {"a": ONE})).tensors) == 1


def test_all_missing_shards_are_named_together(tmp_path: Path) -> None:
    index = pair(tmp_path, {"a": ONE, "b": TWO, "c": TWO})
    (tmp_path / TWO).unlink()
    (tmp_path / ONE).unlink()
    assert refusal(index).startswith(f"2 of 2 shards are missing: {ONE} (tensor a), {TWO} (tensor b and 1 more)")


def test_whatever_index_and_shards_disagree_on_is_told_at_once(tmp_path: Path) -> None:
    text = refusal(pair(tmp_path, {"a": TWO, "b": TWO, "d": ONE}))
    assert text.splitlines() == [
        f"d: the index puts it into {ONE}, where it is not",
        f"a: the index puts it into {TWO}, where it is not; it is in {ONE}",
        f"c: is in {TWO}, and the index does not know it",
        "fetch the checkpoint again, the index and its shards",
    ]


def test_a_name_in_two_shards_is_refused(tmp_path: Path) -> None:
    index = pair(tmp_path, {"a": ONE, "b": TWO, "c": TWO})
    save_file({"a": torch.ones(2), "b": torch.zeros(2)}, tmp_path / ONE)
    assert refusal(index).startswith(f"b: is in more than one shard: {ONE} and {TWO}")


@pytest.mark.parametrize(
    "name",
    ["../x.safetensors", "/etc/passwd", "sub/x.safetensors", "..", ".", "", "sub\\x", "C:x", "a\0b", "./x", "x/",
     "model.safetensors.index.json"],
)  # fmt: skip
def test_a_shard_that_is_no_file_in_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    assert "leads outside its folder or is no file in it" in refusal(pair(tmp_path, {"a": name}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"weight_map": {"a": "x", "a": "y"}}', "'a' is there twice"),
        ('{"weight_map": {"a": 1}}', "it has no weight_map"),
        ('{"weight_map": ["a"]}', "it has no weight_map"),
        ("{}", "it has no weight_map"),
        ('{"weight_map": {}}', "its weight_map is empty"),
        ('{"weight_map": {"a": "x"}, "metadata": 3}', "its metadata are no map"),
        ('{"weight_map": {"a": "x"}, "metadata": {"n": NaN}}', "NaN is no JSON"),
        ("[" * 100_000, "nesting too deep"),
        ('{"weight_map"', "not JSON at character 13"),
        ("", "the file is empty"),
    ],
)
def test_a_broken_index_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert why in message


def test_an_index_too_large_to_be_one_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    with path.open("wb") as file:
        file.truncate(100_000_001)
    assert "100,000,001 bytes, and at most 100,000,000" in refusal(path)


def test_a_shard_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    index = pair(tmp_path, {"a": ONE, "b": TWO, "c": TWO})
    (tmp_path / ONE).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    assert refusal(index).startswith(f"{tmp_path / ONE}: its format is PNG")
    (tmp_path / ONE).write_text("version https://git-lfs.github.com/spec/v1\nsize 123\n")
    assert refusal(index).startswith(f"{tmp_path / ONE}: a Git LFS pointer")
    (tmp_path / ONE).unlink()
    (tmp_path / ONE).mkdir()
    assert refusal(index).startswith(f"{tmp_path / ONE}: cannot be read: ")


def test_an_index_among_the_shards_is_refused(tmp_path: Path) -> None:
    other = "other.safetensors.index.json"
    (tmp_path / other).write_text(json.dumps({"weight_map": {"a": "model.safetensors.index.json"}}))
    assert refusal(pair(tmp_path, {"a": other})).startswith(f"{tmp_path / other}: its format is sharded checkpoint")


def test_what_a_shard_holds_besides_tensors_is_told(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2), "step": 3}, tmp_path / "m.bin")
    stream = read(write_index(tmp_path / "pytorch_model.bin.index.json", {"a": "m.bin"}))
    assert stream.notes == (f"{tmp_path / 'm.bin'}: left out, as shards hold tensors only: step",)
