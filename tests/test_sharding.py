"""Sharded checkpoints out: shard by shard, packed anew, or as one file; an index that is true; nothing by halves."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tconv.formats import safetensors
from tests.cli.conftest import Ran, tconv
from tests.formats.sharded import ALL, FIRST, SECOND, TOTAL, bin_folder, safetensors_folder, write_index

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]
INDEX = "model.safetensors.index.json"
BESIDES = {"config.json", "tokenizer/vocab.txt"}
HALF_TOTAL = (TOTAL - 8) // 2 + 8


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def same(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], half: bool = False) -> None:
    """The same names, dtypes and bits; ``half``: as ``torch.Tensor.half`` makes them."""
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        wanted = tensor.half() if half and tensor.is_floating_point() else tensor
        assert found[name].dtype == wanted.dtype
        assert torch.equal(found[name], wanted)


def as_transformers_load(folder: Path) -> dict[str, torch.Tensor]:
    """What the index promises, from where it says it is; and nothing else is in the shards."""
    (path,) = folder.glob("*.index.json")
    weight_map = json.loads(path.read_text())["weight_map"]
    shards = {
        name: load_file(folder / name)
        if name.endswith(".safetensors")
        else torch.load(folder / name, weights_only=True)
        for name in set(weight_map.values())
    }
    assert sum(map(len, shards.values())) == len(weight_map)
    return {name: shards[shard][name] for name, shard in weight_map.items()}


def test_a_folder_to_half_shard_by_shard(tconv: Tconv, tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    ran = tconv("m", "--half", "-o", "out/")
    assert (ran.code, ran.out) == (0, "out/\n")
    assert ran.err == "m: ignored model.gguf, training_args.bin\n"
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    assert files(tmp_path / "out") == BESIDES | {INDEX, one, two}
    same(load_file(tmp_path / "out" / one), FIRST, half=True)
    same(load_file(tmp_path / "out" / two), SECOND, half=True)
    for name in BESIDES:
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()
    found = json.loads((tmp_path / "out" / INDEX).read_text())
    assert found["metadata"] == {"made_by": "hand", "total_size": HALF_TOTAL}
    assert found["weight_map"] == dict.fromkeys(FIRST, one) | dict.fromkeys(SECOND, two)


def test_an_index_is_written_as_transformers_write_it(tconv: Tconv, tmp_path: Path) -> None:
    """A folder that nothing is done to comes out as it was, byte for byte."""
    folder = safetensors_folder(tmp_path / "m")
    assert tconv("m", "-o", "out/").code == 0
    for name in files(tmp_path / "out"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()


def test_beside_the_folder_and_its_bin_shards(tconv: Tconv, tmp_path: Path) -> None:
    bin_folder(tmp_path / "m")
    assert tconv("m", "--half").out == "m.float16\n"
    made = tmp_path / "m.float16"
    one, two = "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"
    assert files(made) == BESIDES | {"pytorch_model.bin.index.json", one, two}
    same(as_transformers_load(made), ALL, half=True)


def test_bin_shards_become_safetensors(tconv: Tconv, tmp_path: Path) -> None:
    bin_folder(tmp_path / "m")
    assert tconv("m", "--format", "safetensors", "-o", "out/").code == 0
    one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    assert files(tmp_path / "out") == BESIDES | {INDEX, one, two}
    same(as_transformers_load(tmp_path / "out"), ALL)


@pytest.mark.parametrize("named", ["m", f"m/{INDEX}"])
def test_all_shards_in_one_file(named: str, tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    for output in ("one.safetensors", "one.pt"):
        assert tconv(named, "--half", "-o", output, "--verify").out == f"{output}\n"
    same(load_file(tmp_path / "one.safetensors"), ALL, half=True)
    same(torch.load(tmp_path / "one.pt", weights_only=True), ALL, half=True)


def test_an_index_that_was_named_itself_takes_its_shards_only(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    assert tconv(f"m/{INDEX}", "-o", "out/").code == 0
    assert files(tmp_path / "out") == {
        INDEX, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
    }  # fmt: skip


def test_packing_is_that_of_hugging_face(tconv: Tconv, tmp_path: Path) -> None:
    """In order, each shard filled up to the limit; what is larger alone, ahead of the shard that is being filled."""
    sizes = {"a": 10, "b": 20, "c": 100, "d": 20, "e": 11, "f": 50}
    state = {name: torch.full((size,), n, dtype=torch.uint8) for n, (name, size) in enumerate(sizes.items())}
    torch.save(state, tmp_path / "x.pt")
    ran = tconv("x.pt", "--shard-size", "50B", "--format", "safetensors", "-o", "out/")
    assert (ran.code, ran.out, ran.err) == (0, "out/\n", "")
    names = [f"model-{n:05d}-of-00004.safetensors" for n in range(1, 5)]
    assert files(tmp_path / "out") == {*names, INDEX}
    assert [set(load_file(tmp_path / "out" / n)) for n in names] == [{"c"}, {"a", "b", "d"}, {"e"}, {"f"}]
    assert json.loads((tmp_path / "out" / INDEX).read_text())["metadata"] == {"total_size": 211}
    same(as_transformers_load(tmp_path / "out"), state)


def test_shards_are_packed_anew_under_new_names(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    assert tconv("m", "--shard-size", "128", "-o", "out/").code == 0
    shards = {f"model-{n:05d}-of-00005.safetensors" for n in range(1, 6)}
    assert files(tmp_path / "out") == BESIDES | {INDEX} | shards
    same(as_transformers_load(tmp_path / "out"), ALL)


def test_what_fits_into_one_shard_needs_no_index(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    assert tconv("m", "--shard-size", "5GB", "-o", "out/").code == 0
    assert files(tmp_path / "out") == BESIDES | {"model.safetensors"}
    same(load_file(tmp_path / "out" / "model.safetensors"), ALL)


def test_of_a_checkpoint_the_model_goes_into_shards(tconv: Tconv, tmp_path: Path) -> None:
    torch.save({"state_dict": FIRST, "epoch": 3}, tmp_path / "x.pt")
    assert tconv("x.pt", "--shard-size", "100", "-o", "out/").code == 0
    assert files(tmp_path / "out") == {
        "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json",
    }  # fmt: skip
    same(as_transformers_load(tmp_path / "out"), FIRST)


def test_tied_tensors_are_whole_in_each_of_their_shards(tconv: Tconv, tmp_path: Path) -> None:
    tied = torch.arange(25.0)
    state = {"embed": tied, "head": tied, "part": tied[:5], "head2": tied}
    torch.save(state, tmp_path / "x.pt")
    assert tconv("x.pt", "--shard-size", "120B", "--format", "safetensors", "-o", "s/").code == 0
    same(as_transformers_load(tmp_path / "s"), state)


def test_in_checkpoints_what_shares_bytes_goes_into_one_shard(tconv: Tconv, tmp_path: Path) -> None:
    tied, other = torch.arange(25.0), torch.ones(20)
    state = {"part": tied[:5], "embed": tied, "other": other, "head": tied}
    torch.save(state, tmp_path / "x.pt")
    ran = tconv("x.pt", "--shard-size", "120B", "--format", "pt", "-o", "pt/", "--tie")
    assert ran.err == "--tie is idle: a PyTorch checkpoint holds tied weights once anyway\n"
    first = torch.load(tmp_path / "pt" / "pytorch_model-00001-of-00002.bin")
    assert sorted(first) == ["embed", "head", "part"]
    assert len({t.untyped_storage().data_ptr() for t in first.values()}) == 1
    index = json.loads((tmp_path / "pt" / "pytorch_model.bin.index.json").read_text())
    assert index["metadata"]["total_size"] == 100 + 80  # as huggingface_hub counts: each storage once
    assert sorted(index["weight_map"]) == ["embed", "head", "other", "part"]
    same(as_transformers_load(tmp_path / "pt"), state)


def test_left_out_tensors_are_in_no_index(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    assert tconv("m", "--only", "model.*", "-o", "out/").code == 0
    same(as_transformers_load(tmp_path / "out"), {n: t for n, t in ALL.items() if n != "lm_head.weight"})
    assert json.loads((tmp_path / "out" / INDEX).read_text())["metadata"]["total_size"] == TOTAL - 128


def test_the_plan_lists_what_is_written_beside(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    lines = tconv("m", "--half", "-o", "out/", "-n").out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("beside"))
    assert [line.split("  ")[0] for line in lines[at + 1 : at + 4]] == [
        "out/config.json", "out/tokenizer/vocab.txt", f"out/{INDEX}",
    ]  # fmt: skip
    assert " in 5 files" in lines[-1]
    assert not (tmp_path / "out").exists()


def test_nothing_that_is_there_is_replaced_unasked(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "config.json").write_text("mine")
    ran = tconv("m", "--half", "-o", "out/")
    assert (ran.code, ran.out) == (1, "")
    assert "out/config.json: exists already; --force replaces it" in ran.err
    assert files(tmp_path / "out") == {"config.json"}
    assert (tmp_path / "out" / "config.json").read_text() == "mine"
    assert tconv("m", "--half", "-o", "out/", "-f").code == 0
    assert (tmp_path / "out" / "config.json").read_text() == '{"hidden_size": 4}\n'


def test_a_folder_inside_the_one_that_is_read_is_not_carried(tconv: Tconv, tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    for _ in range(2):
        assert tconv("m", "--half", "-o", "m/half/", "-f").code == 0
    assert files(folder / "half") == BESIDES | {
        INDEX, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
    }  # fmt: skip


def test_in_place(tconv: Tconv, tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    before = files(folder)
    assert tconv("m", "--half", "-o", "m/").code == 1
    assert tconv("m", "--half", "-o", "m/", "-f").code == 0
    assert files(folder) == before
    same(as_transformers_load(folder), ALL, half=True)


NEW = {"n1": torch.full((8,), 2.0), "n2": torch.full((8,), 2.0)}


@pytest.mark.parametrize("before", ["single", "shards", "more shards", "single bin", "bin shards"])
@pytest.mark.parametrize("form", ["safetensors", "pt"])
@pytest.mark.parametrize("size", ["40", "1GB"])
def test_no_weights_of_an_earlier_checkpoint_stay_in_use(
    before: str, form: str, size: str, tconv: Tconv, tmp_path: Path
) -> None:
    """transformers look for model.safetensors, then for its index, then for pytorch_model.bin and its index."""
    save_file(NEW, tmp_path / "new.safetensors", {"format": "pt"})
    out, old = tmp_path / "out", {"old": torch.ones(2)}
    if before == "single":
        out.mkdir()
        save_file(old, out / "model.safetensors")
    elif before == "single bin":
        out.mkdir()
        torch.save(old, out / "pytorch_model.bin")
    elif before == "more shards":
        save_file({f"o{n}": torch.ones(8) for n in range(4)}, tmp_path / "old.safetensors")
        assert tconv("old.safetensors", "-o", "out/", "--shard-size", "40").code == 0
    else:
        (bin_folder if "bin" in before else safetensors_folder)(out)
    there = files(out)
    argv = ("new.safetensors", "-o", "out/", "--shard-size", size, "--format", form)
    shadowed = {"pytorch_model.bin"} if (before, form) == ("single bin", "safetensors") else set[str]()
    if not shadowed:
        assert tconv(*argv).code == 1
        assert files(out) == there
    ran = tconv(*argv, "-f")
    assert (ran.code, ran.out) == (0, "out/\n")
    left = {p.name for p in out.iterdir() if p.name.startswith(("model", "pytorch_model"))} - {"model.gguf"}
    stem, suffix = ("pytorch_model", ".bin") if form == "pt" else ("model", ".safetensors")
    if size == "40":
        shards = {f"{stem}-0000{n}-of-00002{suffix}" for n in (1, 2)}
        assert left == {f"{stem}{suffix}.index.json"} | shards | shadowed
        same(as_transformers_load(out), NEW)
    else:
        assert left == {f"{stem}{suffix}"} | shadowed
        path = out / f"{stem}{suffix}"
        same(torch.load(path, weights_only=True) if form == "pt" else load_file(path), NEW)


def test_what_is_removed_is_told(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "out")
    save_file(NEW, tmp_path / "new.safetensors")
    argv = ("new.safetensors", "-o", "out/", "--shard-size", "1GB")
    assert tconv(*argv).err == (
        f"tconv: {tmp_path}/out/{INDEX}: is of another checkpoint, which would be taken for the new one; "
        "--force removes it once the new one is in place, or give another folder\n"
    )
    assert (
        f"{tmp_path}/out/{INDEX}: is of the checkpoint before: it and 2 shards that it names will be removed once the "
        "new one is in place\n"
    ) in tconv(*argv, "-f").err


def test_only_weights_are_removed_whatever_an_index_names(tconv: Tconv, tmp_path: Path) -> None:
    """A stranger's index can name any file beside it."""
    folder = safetensors_folder(tmp_path / "out")
    (folder / "thesis.txt").write_text("years of work")
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"] |= {"a": "thesis.txt", "b": "config.json"}
    (folder / INDEX).write_text(json.dumps(index))
    save_file(NEW, tmp_path / "new.safetensors")
    ran = tconv("new.safetensors", "-o", "out/", "--shard-size", "1GB", "-f")
    assert ran.code == 0
    assert "it and 2 shards that it names will be removed" in ran.err
    assert (folder / "thesis.txt").read_text() == "years of work"
    assert (folder / "config.json").exists()


def test_what_is_read_is_never_removed(tconv: Tconv, tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    before = files(folder)
    ran = tconv("m", "--half", "-o", "m/", "--shard-size", "1GB", "-f")
    assert (ran.code, ran.out) == (1, "")
    assert f"m/{INDEX}: is what is read, and would be taken for the new checkpoint beside it" in ran.err
    assert files(folder) == before
    assert tconv("m", "--half", "-o", "m/", "--only", "model.1.*", "-f").code == 0
    assert files(folder) == before


def test_what_goes_wrong_in_one_shard_leaves_none(tconv: Tconv, tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    save_file(SECOND | {"model.1.w": torch.full((4, 4), 1e6)}, folder / "model-00002-of-00002.safetensors")
    ran = tconv("m", "--half", "-o", "out/")
    assert ran.code == 1
    assert "model-00002-of-00002.safetensors: model.1.w: cast(float16): 16 of 16 values overflow" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_header_that_would_be_too_large_is_refused_before_anything_is_written(
    tconv: Tconv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder(tmp_path / "m")
    save_file(FIRST, tmp_path / "first.safetensors", {"format": "pt"})
    length = int.from_bytes((tmp_path / "first.safetensors").read_bytes()[:8], "little")
    monkeypatch.setattr(safetensors, "MAX_HEADER", length - 1)
    ran = tconv("m", "--format", "safetensors", "-o", "out/")
    assert ran.code == 1
    assert f"the header takes {length} bytes, and .safetensors allows {length - 1}" in ran.err
    assert not (tmp_path / "out").exists()


def test_data_are_no_weights(tconv: Tconv, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(3))
    ran = tconv("x.npz", "--shard-size", "1GB", "--format", "safetensors", "-o", "out/")
    assert ran.code == 1
    assert "shards are for the weights of a model, and this holds data" in ran.err


def test_the_report_names_every_shard_that_was_read(tconv: Tconv, tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    assert tconv("m", "--half", "-o", "out/", "--report", "r.json").code == 0
    assert [one["path"] for one in json.loads((tmp_path / "r.json").read_text())["inputs"]] == [
        f"m/{INDEX}", "m/model-00001-of-00002.safetensors", "m/model-00002-of-00002.safetensors",
    ]  # fmt: skip


def test_a_shard_that_turns_out_bad_is_no_input_to_skip(tconv: Tconv, tmp_path: Path) -> None:
    """Nothing can be left out of a checkpoint that goes into one file with others; it is told once, and ends."""
    (tmp_path / "m").mkdir()
    torch.save({"b": torch.ones(2)}, tmp_path / "ok.pt")
    deflated_and_damaged(tmp_path / "m" / "x.bin", {"a": torch.randn(1000)})
    write_index(tmp_path / "m" / "pytorch_model.bin.index.json", {"a": "x.bin"})
    ran = tconv("m", "ok.pt", "--half", "-o", "one.safetensors", "--on-bad", "skip")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("tconv: m/x.bin: a: ")
    assert not (tmp_path / "one.safetensors").exists()


def test_a_checkpoint_with_a_bad_shard_is_skipped_as_a_whole(tconv: Tconv, tmp_path: Path) -> None:
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
        torch.save({"b": torch.ones(2)}, tmp_path / name / f"{name}1.bin")
        torch.save({"a": torch.ones(2)}, tmp_path / name / f"{name}2.bin")
        weight_map = {"b": f"{name}1.bin", "a": f"{name}2.bin"}
        write_index(tmp_path / name / f"{name}.bin.index.json", weight_map)
    deflated_and_damaged(tmp_path / "bad" / "bad2.bin", {"a": torch.randn(1000)})
    ran = tconv("bad", "good", "--half", "-o", "out/", "--on-bad", "skip")
    assert (ran.code, ran.out) == (3, "out/\n")
    assert "skipped: bad/bad2.bin: a: " in ran.err
    assert files(tmp_path / "out") == {"good1.bin", "good2.bin", "good.bin.index.json"}


def deflated_and_damaged(path: Path, state: dict[str, torch.Tensor]) -> None:
    """A checkpoint whose structure can be read and whose values cannot."""
    torch.save(state, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        (at,) = (i.header_offset + i.compress_size // 2 for i in archive.infolist() if i.filename.endswith("data/0"))
    raw = bytearray(path.read_bytes())
    raw[at : at + 100] = bytes(100)
    path.write_bytes(raw)
