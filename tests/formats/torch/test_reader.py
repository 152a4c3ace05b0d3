"""Reading PyTorch checkpoints: the values, names and structure that torch.load gives, without torch."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import zipfile
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
import torch

from tconv import registry
from tconv.errors import TconvError
from tconv.formats.torch.objects import Device, Layout, Named, Size
from tconv.tensor import Extra, Ref, Stream
from tests.formats.conformance import Reading, Writing, all_values, values
from tests.formats.torch.made import read_pt, saved, tensors_of, to_numpy, written
from tests.shared_data import manifest, shared

if TYPE_CHECKING:
    from tconv.ops import Array

DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)


def bits(dtype: str, count: int) -> torch.Tensor:
    """Elements of any bit pattern."""
    kind = getattr(torch, dtype)
    raw = np.random.default_rng(0).integers(0, 256, count * kind.itemsize, np.uint8)
    return torch.from_numpy(raw & 1 if dtype == "bool" else raw).view(kind)


class Checkpoint(Reading):
    suffix = ".pt"
    legacy: ClassVar[bool]

    def sample(self, folder: Path) -> Path:
        w = torch.arange(12.0).view(3, 4)
        value = {
            "w": w,
            "tied": w,
            "row": w[1],
            "turned": w.t(),
            "b": torch.nn.Parameter(torch.tensor([0.5, -0.0, float("nan")]).to(torch.bfloat16)),
            "n": torch.tensor(70000),
            "u4": torch.arange(4).to(torch.uint32 if not self.legacy else torch.int32),  # torch cannot load the first
            "z": torch.tensor([1 + 2j]).conj(),
            "empty": torch.empty(0, 3),
            "mask": torch.tensor([True, False]),
        }
        return saved(folder / "x.pt", value, legacy=self.legacy)

    def reference(self, path: Path) -> Mapping[str, Array]:
        loaded = torch.load(path, weights_only=True)
        return {str(name): to_numpy(t) for name, t in loaded.items() if isinstance(t, torch.Tensor)}


class TestZip(Checkpoint, Writing):
    legacy = False
    dtypes = frozenset(DTYPES)


class TestLegacy(Checkpoint):
    legacy = True


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_of_any_bits(tmp_path: Path, dtype: str, legacy: bool) -> None:
    want = bits(dtype, 24).reshape(2, 3, 4)
    (got,) = read_pt(saved(tmp_path / "x.pt", {"w": want}, legacy=legacy)).tensors
    assert got.spec.dtype.name == dtype
    assert got.spec.shape == (2, 3, 4)
    assert values(got).tobytes() == to_numpy(want).tobytes()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_the_legacy_layout(tmp_path: Path, protocol: int) -> None:
    w = torch.arange(12.0).view(3, 4)
    value = {"w": w, "row": w[1], "p": torch.nn.Parameter(torch.tensor([0.5], dtype=torch.bfloat16)), "n": 3}
    path = saved(tmp_path / "x.bin", value, legacy=True, protocol=protocol)
    assert registry.detect(path).name == "pt"
    (tmp_path / "x").write_bytes(path.read_bytes())  # no suffix tells
    assert registry.detect(tmp_path / "x").name == "pt"
    loaded = torch.load(path, weights_only=False)
    found = {t.spec.name: values(t).astype(float).tolist() for t in read_pt(path).tensors}
    assert found == {n: loaded[n].tolist() for n in ("w", "row", "p")}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_that_torch_saves_in(tmp_path: Path, protocol: int) -> None:
    value = {"w": torch.arange(3), "epoch": 300, "name": "é", "raw": b"\xff", "seen": {1, 2}, "big": 2**80}
    stream = read_pt(saved(tmp_path / "x.pt", value, protocol=protocol))
    assert stream.extra.tree == {**value, "w": Ref("w")}


def test_views_have_the_values_that_torch_shows(tmp_path: Path) -> None:
    base = torch.arange(60.0).view(3, 4, 5)
    z = torch.tensor([1 + 2j, 3 - 4j])
    views = {
        "transposed": base.transpose(0, 2),
        "sliced": base[1:, ::2, 1:4],
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
        "channels_last": torch.arange(48.0).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "diagonal": base[0].diagonal(),
        "0-d": base[1, 2, 3],
        "conj": z.conj(),
        "neg": z.clone().conj().imag,
        "real": z.clone().real,
    }
    stream = read_pt(saved(tmp_path / "x.pt", views))
    assert {n: v.tobytes() for n, v in all_values(stream).items()} == {
        n: to_numpy(v).tobytes() for n, v in views.items()
    }
    assert [t.spec.shape for t in stream.tensors] == [tuple(v.shape) for v in views.values()]


def test_bytes_of_bools_that_are_neither_0_nor_1(tmp_path: Path) -> None:
    wild = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    (got,) = read_pt(saved(tmp_path / "x.pt", {"m": wild})).tensors
    assert values(got).view(np.uint8).tolist() == [0, 1, 1, 1]


def test_names_and_tree(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    value = {
        "epoch": 7,
        "model": model.state_dict(),
        "steps": [torch.tensor(1), (torch.tensor(2), None, "x")],
        3: {"lr": 0.1, 4: torch.tensor(3)},
        "more": defaultdict(list, {"a": [1.5, True]}),
        "meta": [torch.Size([2, 3]), torch.device("cuda", 1), torch.device("cpu"), torch.bfloat16, torch.strided],
    }
    stream = read_pt(saved(tmp_path / "x.pt", value))
    assert [t.spec.name for t in stream.tensors] == [
        *("model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias"),
        *("model.1.running_mean", "model.1.running_var", "model.1.num_batches_tracked"),
        *("steps.0", "steps.1.0", "3.4"),
    ]
    assert stream.extra.kind == "weights"
    tree = stream.extra.tree
    assert list(tree) == ["epoch", "model", "steps", 3, "more", "meta"]
    assert type(tree["model"]) is OrderedDict
    assert vars(tree["model"]) == {"_metadata": {"": {"version": 1}, "0": {"version": 1}, "1": {"version": 2}}}
    assert tree["model"]["0.weight"] == Ref("model.0.weight")
    assert tree["steps"] == [Ref("steps.0"), (Ref("steps.1.0"), None, "x")]
    assert tree[3] == {"lr": 0.1, 4: Ref("3.4")}
    assert tree["more"] == {"a": [1.5, True]}
    assert tree["more"].default_factory is list
    assert tree["meta"] == [
        *(Size((2, 3)), Device("cuda", 1), Device("cpu"), Named("torch.bfloat16"), Layout("torch.strided")),
    ]
    assert [str(v) for v in tree["meta"][1:]] == ["cuda:1", "cpu", "torch.bfloat16", "torch.strided"]


def test_numpy_values_stay_in_the_tree(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    stream = read_pt(saved(tmp_path / "x.pt", {"a": array, "s": np.float32(1.5), "d": np.dtype("<f8")}))
    assert stream.tensors == ()
    tree = stream.extra.tree
    assert tree["a"].dtype == np.dtype(">i4")
    assert tree["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (type(tree["s"]), tree["s"]) == (np.float32, 1.5)
    assert tree["d"] == np.dtype("<f8")
    assert stream.notes == (f"{tmp_path / 'x.pt'}: its NumPy arrays (1) are kept as they are",)


def test_a_bare_tensor_is_data_of_the_given_name(tmp_path: Path) -> None:
    stream = read_pt(saved(tmp_path / "file.pt", torch.arange(3)))
    assert [t.spec.name for t in stream.tensors] == ["x"]
    assert stream.extra == Extra("data", Ref("x"))


def test_parameters_and_gradients(tmp_path: Path) -> None:
    p = torch.nn.Parameter(torch.zeros(2))
    p.no_decay = True  # type: ignore[attr-defined]  # what people hang on parameters
    value = {
        "p": p,
        "frozen": torch.nn.Parameter(torch.zeros(2), requires_grad=False),
        "g": torch.zeros(2, requires_grad=True),
        "plain": torch.zeros(2),
    }
    attrs = [dict(t.spec.attrs) for t in read_pt(saved(tmp_path / "x.pt", value)).tensors]
    assert attrs == [
        {"requires_grad": True, "parameter": True, "state": {"no_decay": True}},
        {"parameter": True},
        {"requires_grad": True},
        {},
    ]


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_tied_tensors_have_one_source(tmp_path: Path, legacy: bool) -> None:
    w = torch.arange(12.0).view(3, 4)
    value = {"a": w, "b": torch.nn.Parameter(w), "turned": w.t(), "row": w[0], "row again": w[0], "alone": w + 1}
    tensors = {t.spec.name: t for t in read_pt(saved(tmp_path / "x.pt", value, legacy=legacy)).tensors}
    aliases = {name: t.spec.alias_of for name, t in tensors.items()}
    assert aliases == {"a": None, "b": "a", "turned": None, "row": None, "row again": "row", "alone": None}
    assert tensors["b"].source is tensors["a"].source
    assert tensors["row again"].source is tensors["row"].source


def test_a_view_differs_from_its_conjugate(tmp_path: Path) -> None:
    z = torch.tensor([1 + 2j])
    tensors = read_pt(saved(tmp_path / "x.pt", {"z": z, "c": z.conj()})).tensors
    assert [t.spec.alias_of for t in tensors] == [None, None]
    assert [values(t).tolist() for t in tensors] == [[1 + 2j], [1 - 2j]]


def test_the_device_is_the_one_that_was_saved(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.zeros(2)}, legacy=True)
    cpu, cuda = b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:1"
    assert path.read_bytes().count(cpu) == 1
    path.write_bytes(path.read_bytes().replace(cpu, cuda))
    (got,) = read_pt(path).tensors
    assert got.spec.device == "cuda:1"
    assert values(got).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_big_endian_storages(tmp_path: Path, dtype: str) -> None:
    """As a big-endian machine writes them: every element (each part of a complex one) the other way round."""
    want = bits(dtype, 6)
    width = want.element_size() // (2 if want.is_complex() else 1)
    swapped = want.clone()
    swapped.view(torch.uint8).copy_(want.view(torch.uint8).view(-1, width).flip(1).reshape(-1))
    path = saved(tmp_path / "x.pt", {"w": swapped})
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(tmp_path / "big.pt", "w") as other:
        for name in archive.namelist():
            other.writestr(name, b"big" if name.endswith("byteorder") else archive.read(name))
    (got,) = read_pt(tmp_path / "big.pt").tensors
    assert values(got).tobytes() == to_numpy(want).tobytes()


def test_two_tensors_of_one_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.pt", {"a.b": torch.zeros(1), "a": {"b": torch.zeros(1)}})
    with pytest.raises(TconvError, match=r"\['a\.b'\] and \['a'\]\['b'\]") as caught:
        read_pt(path)
    assert (caught.value.file, caught.value.tensor) == (str(path), "a.b")


def some(kind: str) -> Any:
    """What a checkpoint may hold that is no plain tensor."""
    eye = torch.eye(4)
    made: dict[str, Callable[[], object]] = {
        "coo": eye.to_sparse,
        "csr": eye.to_sparse_csr,
        "csc": eye.to_sparse_csc,
        "bsr": lambda: eye.to_sparse_bsr((2, 2)),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "quantized by channel": lambda: torch.quantize_per_channel(
            eye, torch.full((4,), 0.1), torch.zeros(4), 0, torch.quint8
        ),
        "quantized by channel, float": lambda: torch.quantize_per_channel(
            eye, torch.full((4,), 0.1), torch.zeros(4), 0, torch.quint4x2
        ),
        "a quantized parameter": lambda: torch.nn.Parameter(some("quantized"), requires_grad=False),
        "meta": lambda: torch.zeros(2, device="meta"),
        "a parameter on meta": lambda: torch.nn.Parameter(torch.zeros(2, device="meta")),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "uninitialized": torch.nn.parameter.UninitializedParameter,
        "complex32": lambda: torch.zeros(2, dtype=torch.complex32),
        "e8m0": lambda: torch.zeros(2, dtype=torch.uint8).view(torch.float8_e8m0fnu),
        "fp4": lambda: torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
        "storage": lambda: torch.zeros(2).untyped_storage(),
        "typed storage": lambda: torch.zeros(2).storage(),  # type: ignore[no-untyped-call]  # deprecated
        "objects": lambda: np.array([None]),
        "a scalar of a date": lambda: np.datetime64("2020-01-01"),
        "records": lambda: np.zeros(2, [("a", "f4")]),
        "dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    }
    return made[kind]()


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        *((kind, r"a sparse tensor, .*; save it dense: \.to_dense\(\)") for kind in ("coo", "csr", "csc", "bsr")),
        ("quantized", r"a quantized tensor, .*; save it dequantized: \.dequantize\(\)"),
        ("quantized by channel", "a quantized tensor"),
        ("quantized by channel, float", "a quantized tensor"),
        ("a quantized parameter", "a quantized tensor"),
        ("meta", "a tensor on the meta device, which has no values"),
        ("a parameter on meta", "a tensor on the meta device, which has no values"),
        ("nested", "a nested tensor"),
        ("uninitialized", "a parameter without a shape yet"),
        ("complex32", r"a tensor of dtype torch\.complex32"),
        ("e8m0", r"a tensor of dtype torch\.float8_e8m0fnu"),
        ("fp4", r"a tensor of dtype torch\.float4_e2m1fn_x2"),
        ("storage", "a bare storage"),
        ("typed storage", "a bare storage"),
        ("objects", "a NumPy array of dtype 'O8'"),
        ("a scalar of a date", "a NumPy array of dtype 'M8'"),
        ("records", "a NumPy array of dtype 'V4'"),
        ("dates", "a NumPy array of dtype 'M8'"),
    ],
)
@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.filterwarnings("ignore")  # torch warns of what it makes here
def test_what_is_no_plain_tensor_is_refused_by_name_and_the_rest_is_read(
    tmp_path: Path, kind: str, named: str, legacy: bool
) -> None:
    value = OrderedDict(w=torch.arange(3), layer={"bad": some(kind)}, b=torch.ones(2))
    path = saved(tmp_path / "x.pt", value, legacy=legacy)
    stream = read_pt(path)
    assert {n: v.tolist() for n, v in ((t.spec.name, values(t)) for t in stream.tensors)} == {
        "w": [0, 1, 2],
        "b": [1, 1],
    }
    (other,) = stream.others
    assert (other.file, other.tensor) == (str(path), "layer.bad")
    assert re.search(f"^{named}", f"{other.reason}; {other.remedy}")
    assert stream.extra.tree == OrderedDict(w=Ref("w"), layer={"bad": Ref("layer.bad")}, b=Ref("b"))
    written(tmp_path / "out.pt", stream)  # as with --skip
    assert {n: v for n, v in torch.load(tmp_path / "out.pt").items() if n != "layer"}.keys() == {"w", "b"}
    assert torch.load(tmp_path / "out.pt")["layer"] == {}


def test_a_bare_tensor_that_is_not_plain_has_the_given_name(tmp_path: Path) -> None:
    stream = read_pt(saved(tmp_path / "x.pt", some("coo")))
    assert (stream.tensors, [o.tensor for o in stream.others], stream.extra.tree) == ((), ["x"], Ref("x"))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: torch.nn.Linear(2, 2), r"torch\.nn\.modules\.linear\.Linear"),
        (lambda: np.ma.masked_array([1.0], [True]), r"numpy\.ma"),
        (lambda: torch.Generator(), r"torch\._C\.Generator"),
        (lambda: datetime(2020, 1, 1), r"datetime\.datetime"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_objects_of_other_classes_are_refused_with_their_names(
    tmp_path: Path, make: Callable[[], object], named: str
) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.ones(1), "o": make()})
    with pytest.raises(TconvError, match=rf"names {named}.*, which is not allowed") as caught:
        read_pt(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_namespaces_become_dicts_and_paths_become_text(tmp_path: Path, protocol: int) -> None:
    args = argparse.Namespace(lr=0.1, out=Path("runs") / "1", init=torch.ones(2), inner=SimpleNamespace(n=[1]))
    value = {"args": args, "w": torch.zeros(1), "root": PureWindowsPath("C:/x"), "none": argparse.Namespace()}
    path = saved(tmp_path / "x.pt", value, protocol=protocol)
    stream = read_pt(path)
    want = {"lr": 0.1, "out": "runs/1", "init": Ref("args.init"), "inner": {"n": [1]}}
    assert stream.extra.tree == {"args": want, "w": Ref("w"), "root": "C:\\x", "none": {}}
    assert stream.notes == (
        f"{path}: argparse.Namespace is read as a dict: args, none",
        f"{path}: pathlib.PosixPath is read as text: args.out",
        f"{path}: types.SimpleNamespace is read as a dict: args.inner",
        f"{path}: pathlib.PureWindowsPath is read as text: root",
    )
    written(tmp_path / "out.pt", stream)
    again = torch.load(tmp_path / "out.pt", weights_only=True)
    assert again["args"].pop("init").tolist() == [1, 1]
    assert again["args"] == {"lr": 0.1, "out": "runs/1", "inner": {"n": [1]}}


def test_classes_of_tensors_are_only_named(tmp_path: Path) -> None:
    value = {"kind": torch.cuda.FloatTensor, "old": torch.LongTensor}  # type: ignore[attr-defined]  # made at run time
    tree = read_pt(saved(tmp_path / "x.pt", value)).extra.tree
    assert tree == {"kind": Named("torch.cuda.FloatTensor"), "old": Named("torch.LongTensor")}


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_bytes_after_the_end_are_told_and_ignored(tmp_path: Path, legacy: bool) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.arange(3)}, legacy=legacy)
    path.write_bytes(path.read_bytes() + b"garbage" * 1000)
    stream = read_pt(path)
    assert values(stream.tensors[0]).tolist() == [0, 1, 2]
    assert re.fullmatch(
        r".*x\.pt: the 7,000 bytes after (its end|the end of its zip archive) are ignored", stream.notes[0]
    )


@pytest.mark.parametrize("size", [100, 400, -1, -22, -100])
def test_a_cut_off_archive_is_said_to_be_truncated(tmp_path: Path, size: int) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.arange(1000)})
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(TconvError, match=r"truncated: the directory at the end of its zip archive is missing"):
        read_pt(path)


def test_a_cut_off_checkpoint_of_the_legacy_layout_is_said_to_be_truncated(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.arange(1000)}, legacy=True)
    data = path.read_bytes()
    for size in (60, 200, 400, 1000, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(TconvError, match="truncated"):
            read_pt(path)


def zipped_again(path: Path, out: Path) -> Path:
    """As an unpacked checkpoint is when it is zipped by hand."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return out


def test_a_compressed_archive_is_read(tmp_path: Path) -> None:
    base = torch.arange(60.0).view(3, 4, 5)
    value = {
        "a": base,
        "turned": base.permute(2, 0, 1),
        "last": torch.arange(48).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "part": base[1],
        "one": base[1, 2, 3],
        "empty": torch.zeros(0, 3),
        "mask": torch.tensor([True, False]),
        "u16": torch.arange(5).to(torch.uint16),
    }
    path = zipped_again(saved(tmp_path / "x.pt", value), tmp_path / "y.pt")
    stream = read_pt(path)
    assert stream.others == ()
    for _ in range(2):
        assert_reads(path, torch.load(path, weights_only=True))
    for tensor in stream.tensors:
        whole = values(tensor).reshape(-1)
        for lo, hi in ((3, 7), (1, 2), (0, 5), (whole.size, whole.size)):
            assert tensor.source.read(min(lo, whole.size), min(hi, whole.size)).tolist() == whole[lo:hi].tolist()


def test_a_view_with_holes_of_a_compressed_storage_is_refused_by_name(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(3, 4)
    value = {"a": base, "column": base[:, 1], "wide": torch.ones(2, 1).expand(2, 3), "z": torch.tensor([1j]).conj()}
    stream = read_pt(zipped_again(saved(tmp_path / "x.pt", value), tmp_path / "y.pt"))
    assert [t.spec.name for t in stream.tensors] == ["a"]
    assert [o.tensor for o in stream.others] == ["column", "wide", "z"]
    assert "zip -0 -r" in stream.others[0].remedy


def test_a_description_that_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/data.pkl", b"\x80\x02" + b"]" * 100_000_001)
    with pytest.raises(TconvError, match=r"'data\.pkl' unpacks to 100,000,003 bytes, and no more than .* are read"):
        read_pt(path)
    monkeypatch.setattr("tconv.formats.torch.archive.MAX_STORED", 100)
    path = saved(tmp_path / "y.pt", {"w" * 100: 1})
    with pytest.raises(TconvError, match=r"'data\.pkl' has 1.. bytes, and no more than 100 are read"):
        read_pt(path)


@pytest.mark.parametrize("folder", ["../", "/", "..", "a\\", "C:"])
def test_the_names_of_members_are_only_names(tmp_path: Path, folder: str) -> None:
    inside = tmp_path / "deep" / "er"
    inside.mkdir(parents=True)
    path = saved(inside / "x.pt", {"w": torch.arange(3)})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(inside / "y.pt", "w") as new:
        for name in old.namelist():
            new.writestr(name.replace("x/", f"{folder.rstrip('/')}/"), old.read(name))
    (got,) = read_pt(inside / "y.pt").tensors
    assert values(got).tolist() == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["deep", "er", "x.pt", "y.pt"]


def test_a_zip_archive_in_a_storage_is_just_bytes(tmp_path: Path) -> None:
    inner = saved(tmp_path / "inner.pt", {"w": torch.arange(3)}).read_bytes()
    path = saved(tmp_path / "x.pt", {"w": torch.frombuffer(bytearray(inner), dtype=torch.uint8)})
    (got,) = read_pt(path).tensors
    assert values(got).tobytes() == inner


def test_other_files_are_refused_by_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    for content, said in (
        (b"\x80\x04N.", "a plain pickle"),
        (b"lmgg" + bytes(100), "not a PyTorch checkpoint"),
    ):
        path.write_bytes(content)
        with pytest.raises(TconvError, match=said):
            read_pt(path)


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("model.json", "TorchScript archive of PyTorch before 1.4"),
        (".data/extern_modules", "archive of torch.package"),
        ("archive_format", "program of torch.export"),
    ],
)
def test_other_archives_of_torch_are_refused_as_what_they_are(tmp_path: Path, member: str, said: str) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"x/{member}", b"")
    with pytest.raises(TconvError, match=said):
        read_pt(path)


def test_torch_is_never_imported(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.pt", {"w": torch.arange(3)})
    code = f"""
import sys
from pathlib import Path
from tconv.formats.torch.reader import read; from tconv.formats.torch.writer import TorchWriter
from tconv.writer import ReadOptions
stream = read(Path({str(path)!r}), "x", ReadOptions())
TorchWriter([t.spec for t in stream.tensors], stream.extra)
print(stream.tensors[0].source.read(0, 3), "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0 1 2] False\n"


def real_files() -> list[dict[str, str]]:
    suffixes = {".pt", ".pth", ".th", ".ckpt", ".bin", ".pkl"}
    return [r for r in manifest() if r["kind"] == "checkpoints" and Path(r["path"]).suffix in suffixes]


@pytest.mark.parametrize("row", real_files(), ids=lambda row: row["path"].rpartition("/")[2])
@pytest.mark.filterwarnings("ignore")  # torch's, of old files
def test_real_files_are_what_torch_loads(row: Mapping[str, str]) -> None:
    """Equal bit for bit, or refused: where torch refuses as well, and by name where tensors are quantized."""
    path = shared(*row["path"].split("/"))
    if "TorchScript" in row["special"]:
        pytest.skip("test_script.py has it")
    try:
        want: Any = torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # torch says no in many ways
        want = None
    if want is None:
        with pytest.raises(TconvError) as caught:
            read_pt(path)
        assert caught.value.file == str(path)
        return
    assert_reads(path, want)


def assert_reads(path: Path, want: Any) -> None:
    stream: Stream = read_pt(path)
    loaded = dict(tensors_of(want, stream.extra.tree))
    for refusal in stream.others:
        assert "quantized" in refusal.reason
        assert loaded.pop(refusal.tensor).is_quantized
    assert [t.spec.name for t in stream.tensors] == list(loaded)
    for tensor in stream.tensors:
        other = loaded[tensor.spec.name]
        assert tensor.spec.shape == tuple(other.shape)
        assert f"torch.{tensor.spec.dtype}" == str(other.dtype)
        assert bool(tensor.spec.attrs.get("requires_grad")) == other.requires_grad
        assert values(tensor).tobytes() == to_numpy(other).tobytes()


def test_the_registry_sends_checkpoints_here(tmp_path: Path) -> None:
    for legacy in (False, True):
        path = saved(tmp_path / f"model.{legacy}.tar", {"w": torch.zeros(1)}, legacy=legacy)
        assert registry.detect(path).name == "pt"
