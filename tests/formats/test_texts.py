"""Lists of texts beside arrays: as NumPy reads and writes them, and untouched by what only looks like one."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from tconv import registry
from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.tensor import Extra, Spec, Stream
from tconv.writer import ReadOptions

Texts = dict[str, tuple[str, ...]]


def write(path: Path, texts: Texts) -> None:
    spec = Spec("labels", dtype("int64"), (2,), attrs={"label": True})
    row = registry.by_suffix(path)
    assert row is not None
    writer = registry.writer(row)([spec], Extra("data", texts=texts))
    assert writer.left_out == ()
    writer.open(path)
    writer.write(0, 0, np.array([1, 0]))
    writer.commit()
    if path.suffix != ".pt":
        assert path.stat().st_size == writer.size


def read(path: Path) -> Stream:
    row = registry.by_suffix(path)
    assert row is not None
    return registry.reader(row)(path, "x", ReadOptions())


# NumPy's text ends before its trailing NULs, and no file has a name with one.
LISTS = st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=9), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(LISTS, LISTS)
def test_any_texts_come_back(tmp_path: Path, classes: list[str], paths: list[str]) -> None:
    texts: Texts = {"classes": tuple(classes), "paths": tuple(paths)}
    for suffix in (".npz", ".safetensors"):
        path = tmp_path / f"x{suffix}"
        path.unlink(missing_ok=True)
        write(path, texts)
        found = read(path)
        assert found.extra.texts == texts
        assert [t.spec.name for t in found.tensors] == ["labels"]
        assert (found.others, found.notes) == ((), ())
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert {name: file[name].tolist() for name in file} == {"labels": [1, 0], "classes": classes, "paths": paths}
    with safe_open(tmp_path / "x.safetensors", "np") as opened:
        assert [json.loads(opened.metadata()[name]) for name in ("classes", "paths")] == [classes, paths]


def test_texts_are_plain_lists_in_a_checkpoint(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    write(tmp_path / "x.pt", {"classes": ("a", "ü")})
    found = torch.load(tmp_path / "x.pt", weights_only=True)
    assert (found["labels"].tolist(), found["classes"]) == ([1, 0], ["a", "ü"])


def test_the_archive_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "x.npz", {"classes": ("a", "bc")})
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["labels.npy", "classes.npy"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_has_written_is_read(tmp_path: Path, save: object) -> None:
    assert callable(save)
    save(tmp_path / "x.npz", x=np.zeros(2), classes=np.array(["cat", "dog"]), paths=np.array(["a", "b"], ">U7"))
    assert read(tmp_path / "x.npz").extra.texts == {"classes": ("cat", "dog"), "paths": ("a", "b")}


@pytest.mark.parametrize(
    "value",
    [
        np.array([["a"]]),
        np.array("a"),
        np.array([b"a"]),
        np.array(["a"], object),
        np.frombuffer(b"\xff\xff\xff\x7f", "<U1"),
    ],
)
def test_what_is_no_list_of_texts_is_no_tensor_either(tmp_path: Path, value: np.ndarray[Any, Any]) -> None:
    np.savez(tmp_path / "x.npz", classes=value)
    found = read(tmp_path / "x.npz")
    assert not found.extra.texts
    assert [other.tensor for other in found.others] == ["classes"]


def test_other_text_is_no_tensor(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", names=np.array(["a"]))
    found = read(tmp_path / "x.npz")
    assert (dict(found.extra.texts), len(found.others)) == ({}, 1)


def test_damaged_text_is_not_given_out(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    write(path, {"classes": ("catfish", "dogfish")})
    data = path.read_bytes()
    at = data.index("catfish".encode("utf-32-le"))
    path.write_bytes(data[:at] + b"b" + data[at + 1 :])
    found = read(path)
    assert not found.extra.texts
    assert [other.tensor for other in found.others] == ["classes"]


def test_an_array_is_known_as_labels_by_the_paths_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for paths, known in ((["a", "b"], True), (["a"], False)):
        np.savez(path, labels=np.array([1, 0]), x=np.zeros(2), paths=np.array(paths))
        assert [t.spec.name for t in read(path).tensors if t.spec.attrs.get("label")] == ["labels"] * known
    np.savez(path, labels=np.array([1, 0]), x=np.zeros(2))
    assert not any(t.spec.attrs.get("label") for t in read(path).tensors)


@pytest.mark.parametrize(
    "fields",
    [{"texts": ["gone"]}, {"texts": ["bad"]}, {"texts": "classes"}, {"texts": [1]}, {"labels": 3}, {"labels": [None]}],
)
def test_a_mark_that_makes_no_sense_is_ignored_and_told(tmp_path: Path, fields: dict[str, object]) -> None:
    path = tmp_path / "x.safetensors"
    metadata = {"tconv": json.dumps({"kind": "data", **fields}), "bad": '["a", 1]', "classes": '["a"]'}
    save_file({"x": np.zeros(2)}, path, metadata)
    found = read(path)
    assert found.extra.kind == "weights"
    assert found.extra.metadata == {"bad": '["a", 1]', "classes": '["a"]'}
    assert found.notes == (f"{path}: its mark of data is broken, so its tensors are taken for weights",)


def test_a_name_that_numpy_would_not_find_is_refused() -> None:
    spec = Spec("classes.npy", dtype("int64"), (2,))
    with pytest.raises(TconvError, match=r"an \.npz cannot hold it beside 'classes\.npy'"):
        registry.writer(registry.by_name("npz"))([spec], Extra("data", texts={"classes": ("a",)}))


def test_what_has_one_array_leaves_them_out() -> None:
    spec = Spec("x", dtype("int64"), (2,))
    writer = registry.writer(registry.by_name("npy"))([spec], Extra("data", texts={"classes": ("a",)}))
    assert writer.left_out == ("classes",)
