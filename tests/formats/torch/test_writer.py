"""Writing checkpoints: what torch.load makes of them, mapped or not, and what unzip says."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats import positional
from tconv.formats.torch.writer import TorchWriter
from tconv.tensor import Extra, Ref, Spec, Stream, Tensor
from tests.formats.torch.made import assert_alike, read_pt, saved, storage, to_numpy, written


def renamed(tensor: Tensor, name: str) -> Tensor:
    return replace(tensor, spec=replace(tensor.spec, name=name))


def trained() -> dict[str, Any]:
    """A training checkpoint: a model with BatchNorm's counter, a real optimizer's state, settings."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(8, 3)).sum().backward()
    optimizer.step()
    return {
        "epoch": 3,
        "state_dict": model.state_dict(),
        "optimizer_states": [optimizer.state_dict()],
        "params": list(model.parameters()),
        "hyper_parameters": {"lr": 0.1, "name": "é", "betas": (0.9, 0.999), "resume": None, "amp": True},
    }


def plain_values() -> dict[Any, Any]:
    return {
        "numbers": [0, 255, 256, -1, 2**31, -(2**31) - 1, 2**100, 1.5, float("inf"), 1j, True, None],
        "texts": ["", "x", "höhe 整", "\udce9", "x" * 300],
        "bytes": [b"", b"\0\xff", bytearray(b"ab"), bytearray()],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, (2, [3]))],
        "sets": [set(), {1, 2}],
        "torch": [torch.Size([2, 3]), torch.device("cuda", 1), torch.device("cpu"), torch.bfloat16, torch.strided],
        "dicts": [{}, OrderedDict(), OrderedDict(b=1, a=2), Counter("aab"), {(1, "a"): 2, 3: 4, None: 5, 1.5: 6}],
        "long": list(range(2500)),
        7: {"wide": {i: str(i) for i in range(1500)}},
    }


def richer_values() -> dict[Any, Any]:
    """What torch.load takes with ``weights_only=False`` alone."""
    return {
        "more": [frozenset({1, 2}), slice(1, None, 2), range(1, 9, 2), defaultdict(list, {"a": [1]}), dict, list],
        "none": defaultdict(None, {1: 2}),
        "scalars": [np.float32(1.5), np.int64(7), np.bool_(True), np.complex64(1j), np.str_("ab")],
        "arrays": [np.arange(6, dtype=np.int16).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.array(2.5)],
        "odd arrays": [np.zeros((0, 3)), np.array(["a", "bc"]), np.array([1], ">u4"), np.array([True])],
        "dtypes": [np.dtype("<f4"), np.dtype(">i8")],
    }


def through(folder: Path, value: object, *, weights_only: bool = True, mmap: bool = True) -> Any:
    """What torch.load makes of it after tconv has read it and written it again."""
    stream = read_pt(saved(folder / "in.pt", value))
    written(folder / "out.pt", stream)
    return torch.load(folder / "out.pt", weights_only=weights_only, mmap=mmap)


def test_a_training_checkpoint_comes_back(tmp_path: Path) -> None:
    value = trained()
    assert_alike(through(tmp_path, value), value)


def test_plain_values_come_back(tmp_path: Path) -> None:
    assert_alike(through(tmp_path, plain_values()), plain_values())


@pytest.mark.parametrize("protocol", [2, 5])
def test_numpy_and_rarer_values_come_back(tmp_path: Path, protocol: int) -> None:
    path = saved(tmp_path / "in.pt", richer_values(), protocol=protocol)
    written(tmp_path / "out.pt", read_pt(path))
    assert_alike(torch.load(tmp_path / "out.pt", weights_only=False), torch.load(path, weights_only=False))


def test_parameters_gradients_and_attributes_come_back(tmp_path: Path) -> None:
    p = torch.nn.Parameter(torch.arange(3.0))
    p.no_decay = True  # type: ignore[attr-defined]  # what people hang on parameters
    t = torch.zeros(2)
    t.tags = ["a", 1]  # type: ignore[attr-defined]  # as above
    value = {
        "p": p,
        "t": t,
        "frozen": torch.nn.Parameter(torch.arange(3), requires_grad=False),
        "half": torch.nn.Parameter(torch.ones(2).to(torch.float8_e5m2)),
        "g": torch.zeros(2, requires_grad=True),
        "z": torch.zeros(2, dtype=torch.complex64, requires_grad=True),
    }
    assert_alike(through(tmp_path, value), value)


def test_views_come_back_contiguous_with_their_values(tmp_path: Path) -> None:
    base = torch.arange(60.0).view(3, 4, 5)
    z = torch.tensor([1 + 2j, 3 - 4j])
    value = {
        "channels_last": torch.arange(48.0).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "sliced": base[1:, ::2, 1:4],
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
        "conj": z.conj(),
        "neg": z.clone().conj().imag,
    }
    got = through(tmp_path, value)
    assert_alike(got, value)
    assert all(t.is_contiguous() and not t.is_conj() and not t.is_neg() for t in got.values())


def test_a_bare_tensor_comes_back_bare(tmp_path: Path) -> None:
    assert_alike(through(tmp_path, torch.arange(6).view(2, 3)), torch.arange(6).view(2, 3))


def test_state_dicts_load_into_their_model(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    got = through(tmp_path, model.state_dict())
    other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(got, strict=True)
    assert_alike(dict(other.state_dict()), dict(model.state_dict()))
    assert got._metadata == model.state_dict()._metadata  # type: ignore[attr-defined]  # where torch keeps it


def test_tied_tensors_and_parts_share_one_storage_again(tmp_path: Path) -> None:
    w = torch.arange(12.0).view(3, 4)
    value = {"row": w[1], "emb": w, "head": torch.nn.Parameter(w), "turned": w.t(), "tail": w[:, 2:], "alone": w + 1}
    got = through(tmp_path, value)
    assert_alike(got, value)
    assert {storage(got[n]) for n in ("row", "head", "turned", "tail")} == {storage(got["emb"])}
    assert storage(got["alone"]) != storage(got["emb"])
    got["emb"][1, 2] = 100
    assert (got["row"][2].item(), got["turned"][2, 1].item(), got["tail"][1, 0].item()) == (100, 100, 100)
    with zipfile.ZipFile(tmp_path / "out.pt") as archive:
        sizes = [i.file_size for i in archive.infolist() if "/data/" in i.filename]
    assert sizes == [48, 48]


def test_aliases_of_what_is_gone_share_with_each_other(tmp_path: Path) -> None:
    specs = [Spec(name, DTYPES["float32"], (2,), alias_of="gone") for name in "ab"]
    writer = TorchWriter(specs, Extra("weights"))
    assert [writer.stored(i) for i in range(2)] == [True, False]
    writer.open(tmp_path / "x.pt")
    writer.write(0, 0, np.array([1.5, 2.5], np.float32))
    writer.write(1, 0, np.array([9.0, 9.0], np.float32))  # asked for in vain: the first writes it
    writer.commit()
    got = torch.load(tmp_path / "x.pt", weights_only=True)
    assert (got["a"].tolist(), got["b"].tolist()) == ([1.5, 2.5], [1.5, 2.5])


def test_tensors_of_two_files_never_share(tmp_path: Path) -> None:
    w = torch.arange(4.0)
    one = read_pt(saved(tmp_path / "1.pt", {"a": w, "b": w[1:]}))
    two = read_pt(saved(tmp_path / "2.pt", {"c": w + 1, "d": (w + 1)[1:]}))
    both = Stream((*one.tensors, *two.tensors), Extra("weights"))
    written(tmp_path / "out.pt", both)
    got = torch.load(tmp_path / "out.pt", weights_only=True)
    assert {n: t.tolist() for n, t in got.items()} == {
        "a": [0, 1, 2, 3],
        "b": [1, 2, 3],
        "c": [1, 2, 3, 4],
        "d": [2, 3, 4],
    }


def test_what_was_taken_out_is_gone_and_what_steps_added_is_put_in(tmp_path: Path) -> None:
    value = {"epoch": 1, "model": OrderedDict(w=torch.zeros(2), b=torch.ones(2)), "list": [torch.zeros(1), 5]}
    stream = read_pt(saved(tmp_path / "in.pt", value))
    b = next(t for t in stream.tensors if t.spec.name == "model.b")
    writer = written(tmp_path / "out.pt", Stream((b, renamed(b, "model.b.scale")), stream.extra))
    assert writer.left_out == ()
    want = {"epoch": 1, "model": OrderedDict(b=torch.ones(2)), "list": [None, 5], "model.b.scale": torch.ones(2)}
    assert_alike(torch.load(tmp_path / "out.pt", weights_only=True), want)


def test_without_a_tree_it_is_a_dict_by_name(tmp_path: Path) -> None:
    (bare,) = read_pt(saved(tmp_path / "in.pt", torch.arange(3))).tensors
    for tree in (None, Ref("another"), Ref("x"), [Ref("x")]):
        path = tmp_path / f"{tree}.pt".replace("'", "")
        written(path, Stream((bare, renamed(bare, "y")), Extra("data", tree)))
        assert_alike(torch.load(path, weights_only=True), {"x": torch.arange(3), "y": torch.arange(3)})
    written(tmp_path / "empty.pt", Stream((), Extra("data")))
    assert torch.load(tmp_path / "empty.pt", weights_only=True) == {}


def test_a_tensor_never_replaces_a_plain_value() -> None:
    with pytest.raises(TconvError, match="something else by this name") as caught:
        TorchWriter([Spec("epoch", DTYPES["float32"], ())], Extra("weights", {"epoch": 3}))
    assert caught.value.tensor == "epoch"


def test_gradients_that_torch_could_not_load_are_left_out(tmp_path: Path) -> None:
    kept = {"requires_grad": True, "parameter": True}
    specs = [
        Spec("int", DTYPES["int8"], (1,), attrs=kept),
        Spec("f8", DTYPES["float8_e5m2"], (1,), attrs={"requires_grad": True}),
        Spec("ok", DTYPES["float8_e5m2"], (1,), attrs=kept),
    ]
    writer = TorchWriter(specs, Extra("weights", metadata={"format": "pt", "by": "me"}))
    assert writer.left_out == ("metadata 'by'", "requires_grad of int", "requires_grad of f8")
    writer.open(tmp_path / "x.pt")
    for i, spec in enumerate(specs):
        writer.write(i, 0, np.zeros(1, spec.dtype.numpy))
    writer.commit()
    got = torch.load(tmp_path / "x.pt", weights_only=True)
    assert {n: t.requires_grad for n, t in got.items()} == {"int": False, "f8": False, "ok": True}
    assert {n: type(t).__name__ for n, t in got.items()} == {"int": "Parameter", "f8": "Tensor", "ok": "Parameter"}


def test_values_that_no_checkpoint_holds_are_refused() -> None:
    with pytest.raises(TconvError, match="cannot hold a object"):
        TorchWriter([], Extra("weights", {"x": object()}))


def test_a_file_without_all_its_values_is_not_finished(tmp_path: Path) -> None:
    writer = TorchWriter([Spec("w", DTYPES["int8"], (4,))], Extra("weights"))
    writer.open(tmp_path / "x.pt")
    writer.write(0, 1, np.zeros(3, np.int8))
    with pytest.raises(AssertionError, match="not written whole"):
        writer.commit()
    writer.abort()


def test_the_archive_is_sound_and_aligned(tmp_path: Path) -> None:
    path = tmp_path / "out.pt"
    written(path, read_pt(saved(tmp_path / "in.pt", trained())))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[:3] == ["archive/data.pkl", "archive/byteorder", "archive/version"]
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/byteorder") == b"little"
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-t", str(path)], check=True, capture_output=True)
    for tensor in read_pt(path).tensors:
        assert tensor.source.offset % 64 == 0  # type: ignore[attr-defined]  # of plain elements in a file


def test_storages_beyond_4_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros are not written, so that the file is sparse; their checksums and places are those of any bytes."""
    real = positional.pwrite

    def sparse(fd: int, data: memoryview, offset: int) -> None:
        if any(data[:8]) or len(data) < 1 << 20:
            real(fd, data, offset)

    monkeypatch.setattr(positional, "pwrite", sparse)
    count, piece = (1 << 32) + 100, np.zeros(1 << 26, np.uint8)
    specs = [Spec("large", DTYPES["uint8"], (count,)), Spec("after", DTYPES["float32"], (3,))]
    writer = TorchWriter(specs, Extra("weights"))
    path = tmp_path / "x.pt"
    writer.open(path)
    for lo in range(0, 1 << 32, piece.size):
        writer.write(0, lo, piece)
    writer.write(0, 1 << 32, np.arange(100, dtype=np.uint8))
    writer.write(1, 0, np.array([1.5, -2, 3], np.float32))
    writer.commit()
    got = torch.load(path, weights_only=True, mmap=True)
    assert got["large"].shape == (count,)
    assert got["large"][-100:].tolist() == list(range(100))
    assert got["after"].tolist() == [1.5, -2, 3]
    large, after = read_pt(path).tensors
    assert large.source.read(count - 101, count).tolist() == [0, *range(100)]
    assert after.source.read(0, 3).tolist() == [1.5, -2, 3]
    path.unlink()


@pytest.mark.slow
def test_more_storages_than_16_bits_count(tmp_path: Path) -> None:
    count = 70_000
    specs = [Spec(str(n), DTYPES["int8"], ()) for n in range(count)]
    writer = TorchWriter(specs, Extra("weights"))
    path = tmp_path / "x.pt"
    writer.open(path)
    for n in range(count):
        writer.write(n, 0, np.array([n % 100], np.int8))
    writer.commit()
    got = torch.load(path, weights_only=True, mmap=True)
    assert len(got) == count
    assert [got[str(n)].item() for n in (0, 65_535, 65_536, 69_999)] == [0, 35, 36, 99]
    assert len(read_pt(path).tensors) == count


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_from_either_layout(tmp_path: Path, legacy: bool) -> None:
    value = trained()
    written(tmp_path / "out.pt", read_pt(saved(tmp_path / "in.pt", value, legacy=legacy)))
    got: Mapping[str, Any] = torch.load(tmp_path / "out.pt", weights_only=True)
    assert_alike(got, value)
    assert to_numpy(got["state_dict"]["1.num_batches_tracked"]).tolist() == 1
