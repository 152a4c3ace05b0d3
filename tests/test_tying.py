"""``--tie``: tied weights are written once, come back with all their names, and load into their model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_model

from tests.cli.conftest import Ran, tconv
from tests.formats.test_ties import Tied
from tests.test_sharding import as_transformers_load

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]
OUT = "x.safetensors"


def metadata(path: Path) -> dict[str, str]:
    with safe_open(path, "np") as file:
        return file.metadata() or {}


@pytest.fixture
def model(tmp_path: Path) -> Tied:
    """Saved as m.pt."""
    made = Tied()
    torch.save(made.state_dict(), tmp_path / "m.pt")
    return made


def test_tied_weights_are_written_once_and_load_into_the_model(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    ran = tconv("m.pt", "--tie", "-o", OUT, "--verify")
    assert (ran.code, ran.out, ran.err) == (0, f"{OUT}\n", "")
    assert sorted(load_file(tmp_path / OUT)) == ["embed.weight", "mid.bias", "mid.weight"]
    assert metadata(tmp_path / OUT) == {"format": "pt", "head.weight": "embed.weight"}
    other = Tied()
    assert not any(load_model(other, tmp_path / OUT))  # neither missing nor unexpected
    assert all(torch.equal(t, model.state_dict()[name]) for name, t in other.state_dict().items())


def test_without_it_they_are_written_whole_and_a_note_says_so(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    ran = tconv("m.pt", "-o", OUT)
    assert ran.err == f"{OUT}: tied weights are written whole: head.weight (as embed.weight); --tie writes them once\n"
    found = load_file(tmp_path / OUT)
    assert found.keys() == model.state_dict().keys()
    assert torch.equal(found["head.weight"], model.embed.weight)
    assert metadata(tmp_path / OUT) == {"format": "pt"}


def test_there_and_back(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    assert tconv("m.pt", "--half", "--tie", "-o", OUT).code == 0
    for back in ("back.pt", "again.safetensors", "whole.npz"):
        assert tconv(OUT, *(["--tie"] if back == "again.safetensors" else []), "-o", back).code == 0
    loaded = torch.load(tmp_path / "back.pt", weights_only=True)
    assert set(loaded) == set(model.state_dict())
    assert loaded["head.weight"].data_ptr() == loaded["embed.weight"].data_ptr()
    assert torch.equal(loaded["head.weight"], model.head.weight.half())
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / OUT).read_bytes()
    assert tconv("diff", "m.pt", OUT, "--rtol", "0.001", "--atol", "1e-6").code == 0
    assert tconv("diff", "back.pt", "whole.npz").code == 0
    ran = tconv("inspect", OUT)
    assert "same as embed.weight" in ran.out
    assert "4 tensors, 120 B" in ran.out


def test_a_file_of_the_library_becomes_whole_again(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    save_model(model, str(tmp_path / "hf.safetensors"), {"by": "hand"})
    assert tconv("hf.safetensors", "-o", OUT).code == 0
    assert metadata(tmp_path / OUT) == {"by": "hand", "format": "pt"}
    assert {n: t.tolist() for n, t in load_file(tmp_path / OUT).items()} == {
        n: t.tolist() for n, t in model.state_dict().items()
    }


def test_only_twins_can_be_tied_and_others_are_named(tconv: Tconv, tmp_path: Path) -> None:
    w = torch.arange(12.0).view(3, 4)
    state = {"w": w, "row": w[1], "turned": w.t(), "row2": w[1], "w2": w.view(3, 4)}
    torch.save(state, tmp_path / "v.pt")
    ran = tconv("v.pt", "--tie", "-o", OUT)
    assert ran.err == (
        f"{OUT}: written whole, as they share bytes with others without being the same tensor: row, turned\n"
    )
    assert {n: t.tolist() for n, t in load_file(tmp_path / OUT).items()} == {
        n: state[n].tolist() for n in ("w", "row", "turned")
    }
    assert metadata(tmp_path / OUT) == {"format": "pt", "row2": "row", "w2": "w"}


def test_twins_that_fare_otherwise_are_twins_no_more(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    assert tconv("m.pt", "--half", "--keep", "head.*", "--tie", "-o", OUT).code == 0
    found = load_file(tmp_path / OUT)
    assert (found["embed.weight"].dtype, found["head.weight"].dtype) == (torch.float16, torch.float32)
    assert torch.equal(found["head.weight"], model.head.weight)


def test_a_view_of_a_big_storage_takes_its_own_bytes_only(tconv: Tconv, tmp_path: Path) -> None:
    torch.save({"row": torch.arange(1_000_000.0)[10:13]}, tmp_path / "v.pt")
    for out in (OUT, "out.pt"):
        assert tconv("v.pt", "--tie", "-o", out).code == 0
        assert (tmp_path / out).stat().st_size < 2000
    assert load_file(tmp_path / OUT)["row"].tolist() == [10, 11, 12]


def test_aliases_of_what_is_left_out_are_tied_to_each_other(tconv: Tconv, tmp_path: Path) -> None:
    w = torch.arange(3.0)
    torch.save({"a": w, "b": w, "c": w}, tmp_path / "v.pt")
    assert tconv("v.pt", "--skip", "a", "--strip-prefix", "b", "--tie", "-o", OUT).code == 0
    assert list(load_file(tmp_path / OUT)) == ["b"]
    assert metadata(tmp_path / OUT) == {"format": "pt", "c": "b"}


def test_a_name_that_means_something_else_in_the_metadata_is_written_whole(tconv: Tconv, tmp_path: Path) -> None:
    w = torch.arange(3.0)
    meant = ("format", "tconv", "tconv.packed", "tconv.quantized")
    torch.save({"w": w, **dict.fromkeys(meant, w)}, tmp_path / "v.pt")
    ran = tconv("v.pt", "--tie", "-o", OUT)
    said = "written whole, as the metadata have something else by the name: format, tconv, tconv.packed"
    assert ran.err == f"{OUT}: {said}, tconv.quantized\n"
    assert {n: t.tolist() for n, t in load_file(tmp_path / OUT).items()} == {n: [0, 1, 2] for n in ("w", *meant)}
    assert metadata(tmp_path / OUT) == {"format": "pt"}
    assert tconv("diff", "v.pt", OUT).code == 0


def test_packed_weights_by_the_name_of_the_note_on_packing(tconv: Tconv, tmp_path: Path) -> None:
    w = torch.tensor([[-7.0, 7.0], [1.0, 3.5]])
    torch.save({"w": w, "tconv.packed": w}, tmp_path / "v.pt")
    assert tconv("v.pt", "--quantize", "int4", "--tie", "-o", OUT, "--verify").code == 0
    assert tconv(OUT, "--step", "dequantize", "-o", "back.pt").code == 0
    back = torch.load(tmp_path / "back.pt")
    assert {n: t.tolist() for n, t in back.items()} == {n: [[-7, 7], [1, 3.5]] for n in ("w", "tconv.packed")}


def test_shards_keep_a_name_with_the_bytes_it_means(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    assert tconv("m.pt", "--tie", "--format", "safetensors", "--shard-size", "100", "-o", "sh/", "--verify").code == 0
    found = as_transformers_load(tmp_path / "sh")  # the index knows what is there, as that of transformers does
    assert sorted(found) == ["embed.weight", "mid.bias", "mid.weight"]
    (index,) = (tmp_path / "sh").glob("*.index.json")
    assert json.loads(index.read_text())["metadata"] == {"total_size": 160 + 64 + 16}
    for command in (["sh", "-o", "back.pt"], ["sh", "--tie", "--half", "-o", "again/"]):
        assert tconv(*command).code == 0
    loaded = torch.load(tmp_path / "back.pt", weights_only=True)
    assert set(loaded) == set(model.state_dict())
    assert all(torch.equal(t, model.state_dict()[name]) for name, t in loaded.items())
    assert sorted(as_transformers_load(tmp_path / "again")) == sorted(found)
    assert tconv("sh", "-o", "whole/").code == 0
    assert sorted(as_transformers_load(tmp_path / "whole")) == sorted(model.state_dict())


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["-o", "x.npz"], 2, "--tie is for .safetensors, and nothing in a NumPy archive can be tied; leave it out"),
        (["-o", "o/", "--split", "--format", "safetensors"], 2, "--tie and --split exclude each other"),
        (["-o", "x.pt"], 0, "--tie is idle: a PyTorch checkpoint holds tied weights once anyway"),
        (["-o", OUT, "--only", "mid.*"], 0, "--tie is idle: no two tensors in it are the same"),
    ],
)
def test_where_it_makes_no_sense(
    tconv: Tconv, tmp_path: Path, model: Tied, command: list[str], code: int, said: str
) -> None:
    ran = tconv("m.pt", "--tie", *command)
    assert ran.code == code
    assert ran.err.count("\n") == 1
    assert said in ran.err


def test_the_plan_says_what_is_shared(tconv: Tconv, tmp_path: Path, model: Tied) -> None:
    ran = tconv("m.pt", "--tie", "-o", OUT, "-n")
    assert next(line for line in ran.out.splitlines() if "head.weight" in line).endswith("shared")
    assert tconv("m.pt", "--tie", "-o", OUT).code == 0
    assert f"total: {(tmp_path / OUT).stat().st_size} B" in ran.out
