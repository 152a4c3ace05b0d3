"""Files of labels and images: which image each path means, and what all labels are together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tconv import label_matching
from tconv.errors import TconvError
from tconv.inputs import Found, find
from tconv.labels import Labelling


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


def written(content: str, name: str = "labels.csv") -> Path:
    Path(name).write_text(content)
    return Path(name)


def of_file(content: str | list[Any], found: Found) -> Labelling:
    if isinstance(content, str):
        return label_matching.from_file(written(content), found, [Path("ds")])
    lines = "".join(json.dumps({"path": path, "label": label}) + "\n" for path, label in content)
    return label_matching.from_file(written(lines, "labels.jsonl"), found, [Path("ds")])


@pytest.mark.parametrize("path", ["a/1.png", "./a/1.png", "ds/a/1.png", "1.png", "ABSOLUTE"])
def test_a_path_is_meant_in_any_way_that_leaves_no_doubt(path: str, tmp_path: Path) -> None:
    path = str(tmp_path / "ds/a/1.png") if path == "ABSOLUTE" else path
    made = of_file(f"path,label\n{path},5\n", pictures("a/1.png", "a/2.png"))
    assert made.values == {Path("ds/a/1.png"): 5}


def test_a_path_may_be_relative_to_the_file_of_labels() -> None:
    found = pictures("a/1.png", "b/1.png")
    (Path("ds/a/labels.csv")).write_text("1.png,5\n")
    assert label_matching.from_file(Path("ds/a/labels.csv"), found, [Path("ds")]).values == {Path("ds/a/1.png"): 5}


def test_a_bare_name_of_several_images_is_refused() -> None:
    with pytest.raises(TconvError, match=r"line 1: 1\.png may be any of ds/a/1\.png, ds/b/1\.png; say in which folder"):
        of_file("1.png,5\n", pictures("a/1.png", "b/1.png"))
    with pytest.raises(TconvError, match=r"belong to no image that is there: other/1\.png"):
        of_file("other/1.png,5\n", pictures("a/1.png", "a/2.png"))


def test_text_is_classes_sorted_by_name() -> None:
    made = of_file("1.png,dog\n2.png,Cat\n3.png,dog\n", pictures("1.png", "2.png", "3.png"))
    assert (made.classes, made.dtype.name, made.shape) == (("Cat", "dog"), "int64", ())
    assert {path.name: value for path, value in made.values.items()} == {"1.png": 1, "2.png": 0, "3.png": 1}


def test_integers_stay_integers_and_other_numbers_are_float64() -> None:
    found = pictures("1.png", "2.png")
    whole = of_file(f"1.png,{2**63 - 1}\n2.png,{-(2**63)}\n", found)
    assert (whole.dtype.name, [*whole.values.values()], whole.classes) == ("int64", [2**63 - 1, -(2**63)], None)
    real = of_file("1.png,0.1\n2.png,3\n", found)
    assert (real.dtype.name, [*real.values.values()]) == ("float64", [0.1, 3])


def test_lists_of_one_shape_are_axes() -> None:
    found = pictures("1.png", "2.png")
    made = of_file([["1.png", [0, 1, 1]], ["2.png", [1, 0, 0]]], found)
    assert (made.dtype.name, made.shape) == ("int64", (3,))
    made = of_file([["1.png", [[0, 0, 2.5, 3]]], ["2.png", [[1, 1, 4, 4]]]], found)
    assert (made.dtype.name, made.shape) == ("float64", (1, 4))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1.png,1\n1.png,2\n2.png,3\n", "lines 1 and 2 give ds/1.png different labels"),
        (f"1.png,{2**63}\n2.png,1\n", f"line 1: {2**63} does not fit int64"),
        (f"1.png,{2**53 + 1}\n2.png,0.5\n", f"line 1: {2**53 + 1} does not fit float64"),
        ("1.png,1e999\n2.png,1\n", "line 1: inf does not fit float64"),
        ([["1.png", "7"], ["2.png", 7]], "the label in line 1 is text and the one in line 2 a number"),
        ([["1.png", [1, 2]], ["2.png", [1]]], r"the labels in lines 1 and 2 are unequal, \(2,\) and \(1,\)"),
        ([["1.png", [[1], [1, 2]]], ["2.png", 1]], "lists of different lengths"),
        ([["1.png", [1, 2]], ["2.png", 3]], r"unequal, \(2,\) and \(\)"),
    ],
)
def test_what_is_no_one_label_an_image_is_refused(content: Any, said: str) -> None:
    with pytest.raises(TconvError, match=said) as caught:
        of_file(content, pictures("1.png", "2.png"))
    assert str(caught.value).startswith("labels.")


def test_the_same_label_twice_is_no_contradiction() -> None:
    assert of_file("1.png,1\nds/1.png,1\n", pictures("1.png", "2.png")).values == {Path("ds/1.png"): 1}


def test_labels_without_an_image_are_counted_and_the_first_named() -> None:
    found = pictures("1.png", "2.png")
    strays = "".join(f"no{n}.png,1\n" for n in range(26))
    made = of_file(f"1.png,1\n{strays}", found)
    named = ", ".join(f"no{n}.png" for n in range(20))
    assert str(made.stray) == f"labels.csv: of its labels 26 belong to no image that is there: {named} and 6 more"
    with pytest.raises(TconvError, match="paths are relative to the folder of the images"):
        of_file(strays, found)


def test_a_label_of_a_bad_image_is_no_stray() -> None:
    pictures("1.png")
    Path("ds/2.png").write_bytes(b"")
    made = of_file("1.png,1\n2.png,2\n", find(["ds"]))
    assert made.stray is None
