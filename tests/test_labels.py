"""Labels of class folders and of files: whose they are, what they are, in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv import labels
from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.inputs import Found, Input, find
from tconv.memory import ArraySource
from tconv.registry import FORMATS
from tconv.tensor import Extra, Spec, Stream, Tensor


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pictures(*names: str) -> Found:
    """The folder ``ds`` with such files."""
    for name in names:
        path = Path("ds", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2)).save(path)
    return find(["ds"])


def images(*names: str) -> list[Input]:
    return [Input(Path("ds", name), FORMATS["png"], name, Path("ds")) for name in names]


def test_classes_are_those_of_torchvisions_imagefolder() -> None:
    """``find_classes``: the names of the folders, sorted as texts; ``class_to_idx``: numbered in that order."""
    found = pictures("b/1.png", "10/1.png", "2/1.png", "Ant/1.png", "ant/1.png", "b-1/1.png", "ärger/1.png")
    made = labels.from_folders(found)
    assert made.classes == ("10", "2", "Ant", "ant", "b", "b-1", "ärger")
    assert {str(path): value for path, value in made.values.items()} == {
        "ds/10/1.png": 0, "ds/2/1.png": 1, "ds/Ant/1.png": 2, "ds/ant/1.png": 3, "ds/b/1.png": 4, "ds/b-1/1.png": 5,
        "ds/ärger/1.png": 6,
    }  # fmt: skip
    assert made.dtype.name == "int64"


def test_the_order_is_that_of_torchvisions_imagefolder() -> None:
    """``make_dataset``: class by class; in it ``sorted(os.walk(...))``, that is by the folder's path as a text, where
    "-" comes before "/" and "/" before letters; in a folder ``sorted(fnames)``.
    """
    names = ["b/2.png", "b/10.png", "a/z.png", "a/x/y/1.png", "a/x-1/1.png", "a/x/1.png", "a/B.png", "a-b/1.png"]
    assert [one.name for one in labels.in_order(images(*names))] == [
        "a/B.png", "a/z.png", "a/x/1.png", "a/x-1/1.png", "a/x/y/1.png", "a-b/1.png", "b/10.png", "b/2.png",
    ]  # fmt: skip


def test_what_are_class_folders() -> None:
    assert labels.are_class_folders(Found(tuple(images("a/1.png", "b/1.png", "b/c/2.png"))))
    assert not labels.are_class_folders(Found(tuple(images("a/1.png", "a/2.png"))))
    assert not labels.are_class_folders(Found(tuple(images("a/1.png", "b/1.png", "1.png"))))
    assert not labels.are_class_folders(Found((*images("a/1.png"), Input(Path("x.png"), FORMATS["png"], "x.png"))))
    arrays = tuple(Input(Path("ds", n, "x.npy"), FORMATS["npy"], f"{n}/x", Path("ds")) for n in "ab")
    assert not labels.are_class_folders(Found(arrays))
    assert not labels.are_class_folders(Found(()))


def test_a_class_of_which_all_images_are_bad_keeps_its_number() -> None:
    pictures("a/1.png", "c/1.png")
    Path("ds/b").mkdir()
    Path("ds/b/1.png").write_bytes(b"")
    Path("ds/d").mkdir()
    made = labels.from_folders(find(["ds"]))
    assert made.classes == ("a", "b", "c")
    assert made.notes == ("ds: no class, as no image is in it: d",)


def test_labels_of_folders_need_one_folder_of_folders() -> None:
    with pytest.raises(TconvError, match=r"ds: in no class folder are 1\.png"):
        labels.from_folders(pictures("a/1.png", "1.png"))
    with pytest.raises(TconvError, match="is for one folder of class folders"):
        labels.from_folders(find(["ds/a", "ds/1.png"]))


def stream(*names: str, **extra: Any) -> Stream:
    uint8 = dtype("uint8")
    made = [
        Tensor(Spec(name, uint8, (1,)), ArraySource(Path("ds", name), uint8, (1,), np.zeros(1, np.uint8)))
        for name in names
    ]
    return Stream(tuple(made), Extra("data", **extra))


def labelling(**values: int) -> labels.Labelling:
    """What a file says of images in ``ds``, whose classes are cat and dog."""
    paths = {Path("ds", name): value for name, value in values.items()}
    names = {path: path.name for path in paths}
    return labels.Labelling(Path("labels.csv"), paths, names, dtype("int64"), (), ("cat", "dog"))


def test_a_part_of_the_images_gets_its_part_of_the_labels() -> None:
    beside = labelling(a=1, b=0, c=1).beside(stream("c", "b"))
    assert [t.spec.name for t in beside.tensors] == ["c", "b", "labels"]
    assert beside.tensors[-1].source.read(0, 2).tolist() == [1, 0]
    assert beside.extra.texts == {"classes": ("cat", "dog"), "paths": ("c", "b")}


def test_an_image_without_a_label_is_refused() -> None:
    with pytest.raises(TconvError, match=r"ds/b: has no label in labels\.csv; --on-bad skip leaves out what has none"):
        labelling(a=1).beside(stream("a", "b"))


@pytest.mark.parametrize("name", ["labels", "classes", "paths"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    made = labelling(**{name: 1, "a": 0})
    for taken in (stream(name), stream("a", metadata={name: "x"}), stream("a", texts={name: ("x",)})):
        with pytest.raises(TconvError, match=f"there is a '{name}' already"):
            made.beside(taken)
