"""Labels beside images, as a user asks for them and as NumPy, safetensors and PyTorch read them back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open

from tests.cli.conftest import Ran

torch = pytest.importorskip("torch")

Tconv = Callable[..., Ran]

# In the order of torchvision's ImageFolder; how grey a picture is tells which one it is.
GREYS = {"cat/1.png": 10, "cat/10.png": 20, "cat/2.png": 30, "dog/1.png": 40, "dog/sub/3.png": 50}
LABELS = [0, 0, 0, 1, 1]


@pytest.fixture
def pets(tmp_path: Path) -> str:
    for name, grey in GREYS.items():
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (grey, grey, grey)).save(path)
    return "pets"


def loaded(path: str) -> dict[str, Any]:
    """Arrays and lists as the format's own library gives them, nothing unpickled that could run code."""
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name].tolist() if file[name].dtype.kind == "U" else file[name] for name in file}
    if path.endswith(".pt"):
        found = torch.load(path, weights_only=True)
        return {name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in found.items()}
    with safe_open(path, "np") as file:
        texts = {name: json.loads(text) for name, text in file.metadata().items() if name != "tconv"}
        return {name: file.get_tensor(name) for name in file.keys()} | texts  # noqa: SIM118  # it is no dict


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt"])
@pytest.mark.parametrize("cast", [[], ["--to", "float16"], ["--normalize", "--stats", "imagenet", "--layout", "CHW"]])
def test_class_folders_are_labels_beside_a_stack(tconv: Tconv, pets: str, suffix: str, cast: list[str]) -> None:
    ran = tconv(pets, "--stack", "-o", f"x{suffix}", *cast, "--verify")
    assert (ran.code, ran.out) == (0, f"x{suffix}\n")
    assert ran.err == "pets: its folders are labels: cat, dog; --no-labels leaves them out\n"
    found = loaded(f"x{suffix}")
    assert found.keys() == {"x", "labels", "classes", "paths"}
    assert (found["labels"].dtype, found["labels"].tolist()) == (np.dtype(np.int64), LABELS)
    assert found["classes"] == ["cat", "dog"]
    assert found["paths"] == list(GREYS)
    if not cast:
        assert found["x"][:, 0, 0, 0].tolist() == list(GREYS.values())


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".pt"])
def test_class_folders_are_labels_beside_single_images(tconv: Tconv, pets: str, suffix: str) -> None:
    assert tconv(pets, "--normalize", "-o", f"x{suffix}").code == 0
    found = loaded(f"x{suffix}")
    assert found.keys() == {*GREYS, "labels", "classes", "paths"}
    assert found["labels"].tolist() == LABELS
    assert found["paths"] == list(GREYS)


def test_the_default_output_has_them_too(tconv: Tconv, pets: str) -> None:
    assert tconv(pets, "--to", "float32", "--normalize").out == "pets.safetensors\n"
    assert loaded("pets.safetensors")["labels"].tolist() == LABELS


def test_an_array_alone_has_no_place_for_them_and_says_so(tconv: Tconv, pets: str) -> None:
    ran = tconv(pets, "-o", "x.npy")
    assert (ran.code, ran.out) == (0, "x.npy\n")
    assert ran.err == "pets: the labels of its class folders are left out; --stack -o x.npz holds both\n"
    assert np.load("x.npy")[:, 0, 0, 0].tolist() == list(GREYS.values())
    refused = tconv(pets, "--labels", "folders", "-o", "y.npy")
    assert (refused.code, refused.out) == (2, "")
    assert "holds a single array, and no labels" in refused.err


def test_no_labels(tconv: Tconv, pets: str) -> None:
    ran = tconv(pets, "--no-labels", "--stack", "-o", "x.npz")
    assert (ran.code, ran.err) == (0, "")
    assert loaded("x.npz").keys() == {"x"}
    assert tconv(pets, "--no-labels", "--labels", "folders").code == 2


def test_one_file_an_image_has_its_class_in_its_path(tconv: Tconv, pets: str) -> None:
    ran = tconv(pets, "-o", "out/", "--format", "npz")
    assert (ran.code, ran.err) == (0, "")
    assert loaded("out/cat/1.npz").keys() == {"cat/1.png"}
    for more in (["-o", "out2/"], ["-o", "out2/", "--split"]):
        assert tconv(pets, *more, "--labels", "folders").code == 2


def test_what_is_left_out_takes_its_label_along(tconv: Tconv, pets: str) -> None:
    Path("pets/cat/10.png").write_bytes(Path("pets/cat/10.png").read_bytes()[:-20])
    Path("pets/dog/1.png").write_bytes(b"")
    ran = tconv(pets, "--stack", "-o", "x.npz", "--on-bad", "skip", "--skip", "cat/2*")
    assert ran.code == 3
    found = loaded("x.npz")
    assert found["x"][:, 0, 0, 0].tolist() == [10, 50]
    assert found["labels"].tolist() == [0, 1]
    assert found["paths"] == ["cat/1.png", "dog/sub/3.png"]


def test_a_class_keeps_its_number_when_another_is_left_out(tconv: Tconv, pets: str) -> None:
    tconv(pets, "--stack", "-o", "x.npz", "--only", "dog/*")
    assert loaded("x.npz")["labels"].tolist() == [1, 1]
    assert loaded("x.npz")["classes"] == ["cat", "dog"]


def test_a_flat_folder_has_no_classes(tconv: Tconv, pets: str) -> None:
    ran = tconv("pets/cat", "--stack", "-o", "x.npz")
    assert (ran.code, ran.err) == (0, "")
    assert loaded("x.npz").keys() == {"x"}
    assert tconv("pets/cat", "--stack", "-o", "y.npz", "--labels", "folders").code == 1


def test_a_file_labels_a_flat_folder(tconv: Tconv, pets: str) -> None:
    Path("pets/cat/labels.csv").write_text("file_name,label\n2.png,30\n10.png,20\n1.png,10\n")
    ran = tconv("pets/cat", "--labels", "pets/cat/labels.csv", "--stack", "--half", "-o", "x.safetensors")
    assert (ran.code, ran.err) == (0, "")
    found = loaded("x.safetensors")
    assert found["x"][:, 0, 0, 0].tolist() == found["labels"].tolist() == [10, 30, 20]
    assert (found["labels"].dtype, found["x"].dtype) == (np.dtype(np.int64), np.dtype(np.float16))
    assert found["paths"] == ["1.png", "2.png", "10.png"]
    assert "classes" not in found


def test_json_lines_of_lists_and_of_text(tconv: Tconv, pets: str) -> None:
    names = ["1.png", "2.png", "10.png"]
    boxes = [[[0, 0, n, n]] for n in (1, 2, 3)]
    rows = [{"path": path, "label": box} for path, box in zip(names, boxes, strict=True)]
    Path("boxes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tconv("pets/cat", "--labels", "boxes.jsonl", "--stack", "-o", "x.pt")
    assert loaded("x.pt")["labels"].tolist() == boxes
    Path("text.jsonl").write_text("".join(json.dumps({"file_name": p, "label": p[0]}) + "\n" for p in names))
    tconv("pets/cat", "--labels", "text.jsonl", "--stack", "-o", "y.pt")
    assert loaded("y.pt")["labels"].tolist() == [0, 1, 0]
    assert loaded("y.pt")["classes"] == ["1", "2"]


def test_a_file_beats_the_folders(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("".join(f"{name},{grey / 4}\n" for name, grey in GREYS.items()))
    tconv(pets, "--labels", "labels.csv", "--stack", "--to", "uint8", "-o", "x.npz")
    found = loaded("x.npz")
    assert found["labels"].dtype == np.float64
    assert (found["labels"] * 4).tolist() == found["x"][:, 0, 0, 0].tolist()


def test_files_named_one_by_one_are_labelled_too(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("pets/cat/10.png,7\npets/dog/1.png,8\n")
    ran = tconv("pets/dog/1.png", "pets/cat/10.png", "--labels", "labels.csv", "--stack", "-o", "x.npz")
    assert ran.code == 0
    assert loaded("x.npz")["labels"].tolist() == [8, 7]
    assert loaded("x.npz")["paths"] == ["pets/dog/1.png", "pets/cat/10.png"]


def test_arrays_are_labelled_as_images_are(tconv: Tconv) -> None:
    for name in ("a", "b"):
        Path("ds", name).mkdir(parents=True)
        np.save(f"ds/{name}/1.npy", np.array([1.5, 2.5]))
    assert loaded_after(tconv, "ds", "--stack", "--half", "-o", "x.npz").keys() == {"x"}
    found = loaded_after(tconv, "ds", "--stack", "--half", "-o", "x.npz", "--labels", "folders")
    assert (found["labels"].tolist(), found["classes"], found["paths"]) == ([0, 1], ["a", "b"], ["a/1.npy", "b/1.npy"])


def loaded_after(tconv: Tconv, *argv: str) -> dict[str, Any]:
    assert tconv(*argv, "-f").code == 0
    return loaded(argv[argv.index("-o") + 1])


def test_labels_and_images_must_match_before_any_work(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("".join(f"{name},1\n" for name in list(GREYS)[1:]) + "cat/99.png,1\n")
    refused = tconv(pets, "--labels", "labels.csv", "--stack", "-o", "x.npz")
    assert (refused.code, refused.out) == (1, "")
    assert "labels.csv: of its labels 1 belong to no image that is there: cat/99.png" in refused.err
    assert "pets/cat/1.png: has no label in labels.csv" in refused.err
    assert not Path("x.npz").exists()
    ran = tconv(pets, "--labels", "labels.csv", "--stack", "-o", "x.npz", "--on-bad", "skip", "--report", "r.json")
    assert (ran.code, ran.out) == (3, "x.npz\n")
    assert loaded("x.npz")["paths"] == ["cat/2.png", "cat/10.png", "dog/1.png", "dog/sub/3.png"]
    assert {e["path"] for e in json.loads(Path("r.json").read_text())["skipped"]} == {"labels.csv", "pets/cat/1.png"}


def test_images_that_the_patterns_leave_out_need_no_label(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("cat/1.png,1\n")
    ran = tconv(pets, "--labels", "labels.csv", "--only", "cat/1.png", "--stack", "-o", "x.npz")
    assert ran.code == 0
    assert loaded("x.npz")["labels"].tolist() == [1]


def test_many_images_without_a_label_are_counted(tconv: Tconv, tmp_path: Path) -> None:
    Path("im").mkdir()
    for n in range(40):
        Image.new("L", (1, 1)).save(f"im/{n}.png")
    Path("labels.csv").write_text("0.png,1\n")
    refused = tconv("im", "--labels", "labels.csv", "--stack", "-o", "x.npz")
    assert refused.code == 1
    assert "im/1.png: has no label" in refused.err
    assert "im/20.png" in refused.err
    assert "im/39.png" not in refused.err


@pytest.mark.parametrize("name", ["labels", "classes", "paths"])
def test_a_stack_that_would_be_called_like_what_belongs_to_the_labels(tconv: Tconv, pets: str, name: str) -> None:
    refused = tconv(pets, "--stack", "-o", f"{name}.npz")
    assert (refused.code, refused.out) == (1, "")
    assert f"there is a '{name}' already" in refused.err
    assert tconv(pets, "--stack", "-o", f"{name}.npz", "--no-labels").code == 0


def test_the_plan_and_the_report_tell_of_them(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("".join(f"{name},c{n % 2}\n" for n, name in enumerate(GREYS)))
    argv = (pets, "--labels", "labels.csv", "--stack", "--half", "-o", "x.npz")
    lines = [line.split() for line in tconv(*argv, "-n").out.splitlines()]
    assert ["labels", "labels.csv", "->", "int64", "5", "40", "B"] in lines
    assert ["classes", "->", "2", "texts:", "c0,", "c1"] in lines
    tconv(*argv, "--report", "r.json")
    report = json.loads(Path("r.json").read_text())
    assert report["inputs"][-1]["path"] == "labels.csv"
    (output,) = report["outputs"]
    assert output["texts"]["classes"] == ["c0", "c1"]
    tensor = output["tensors"][1]
    assert (tensor["name"], tensor["source"], tensor["casts"]) == ("labels", "labels.csv", [])
    assert tensor["after"] == {"dtype": "int64", "shape": [5], "axes": None, "range": None, "device": "cpu"}
    written = (Path(__file__).parents[2] / "REPORT.md").read_text(encoding="utf8")
    assert "`texts`" in written


def test_a_report_does_not_replace_the_file_of_labels(tconv: Tconv, pets: str) -> None:
    Path("labels.csv").write_text("".join(f"{name},1\n" for name in GREYS))
    refused = tconv(pets, "--labels", "labels.csv", "-o", "x.npz", "--report", "labels.csv", "-f")
    assert refused.code == 1
    assert "the report would replace an input" in refused.err


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_who_converts_once_more_keeps_the_labels(tconv: Tconv, pets: str, suffix: str) -> None:
    """Of tconv's own files nobody need say which field is a label, and nothing of it is lost on the way."""
    tconv(pets, "--stack", "--normalize", "-o", f"x{suffix}")
    for target in ("y.npz", "y.safetensors", "y.pt"):
        assert tconv(f"x{suffix}", "--half", "-o", target).code == 0
        found = loaded(target)
        assert (found["labels"].dtype, found["labels"].tolist()) == (np.dtype(np.int64), LABELS)
        assert (found["classes"], found["paths"]) == (["cat", "dog"], list(GREYS))
        assert found["x"].dtype == np.float16
    assert tconv("check", f"x{suffix}", "--expect", "float32").code == 0
    assert tconv("inspect", f"x{suffix}").code == 0


def test_an_order_of_axes_is_none_of_labels(tconv: Tconv, pets: str) -> None:
    tconv(pets, "--stack", "-o", "x.safetensors")
    assert tconv("x.safetensors", "--layout", "NCHW", "--resize", "2x2", "--normalize", "-o", "y.safetensors").code == 0
    found = loaded("y.safetensors")
    assert (found["x"].shape, found["labels"].tolist()) == ((5, 3, 2, 2), LABELS)


def test_labels_are_changed_when_they_are_meant(tconv: Tconv, pets: str) -> None:
    tconv(pets, "--stack", "-o", "x.safetensors")
    assert tconv("x.safetensors", "--to", "int32", "--fields", "labels", "-o", "y.npz").code == 0
    assert loaded("y.npz")["labels"].dtype == np.int32
    assert tconv("x.safetensors", "--to", "int16", "--only", "labels", "-o", "z.npy").code == 0
    assert (np.load("z.npy").dtype, np.load("z.npy").tolist()) == (np.dtype(np.int16), LABELS)


def test_a_text_beside_labels_can_be_left_out(tconv: Tconv, pets: str) -> None:
    tconv(pets, "--stack", "-o", "x.npz")
    assert tconv("x.npz", "--half", "--fields", "x", "--skip", "paths", "-o", "y.npz").code == 0
    assert loaded("y.npz").keys() == {"x", "labels", "classes"}


def test_weights_have_no_labels(tconv: Tconv) -> None:
    torch.save({"w": torch.ones(2)}, "m.pt")
    Path("labels.csv").write_text("m.pt,1\n")
    refused = tconv("m.pt", "--half", "--labels", "labels.csv", "-o", "x.safetensors")
    assert (refused.code, refused.out) == (1, "")
    assert "this holds weights" in refused.err


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "pt"])
def test_paths_alone_say_which_picture_is_which_row(tconv: Tconv, pets: str, suffix: str) -> None:
    """In the order of the rows, which without labels is that of numbers."""
    assert tconv(pets, "--stack", "--labels", "paths", "-o", f"x.{suffix}").code == 0
    found = loaded(f"x.{suffix}")
    assert sorted(found) == ["paths", "x"]
    names = [*found["paths"]]
    assert names == ["cat/1.png", "cat/2.png", "cat/10.png", "dog/1.png", "dog/sub/3.png"]
    assert [int(x[0, 0, 0]) for x in found["x"]] == [GREYS[name] for name in names]


def test_paths_of_batches_and_of_some(tconv: Tconv, pets: str) -> None:
    assert tconv(pets, "--labels", "paths", "--batch-size", "2", "--only", "cat/*", "-o", "x.npz").code == 0
    assert [[*loaded(f"x-0000{n}.npz")["paths"]] for n in range(2)] == [["cat/1.png", "cat/2.png"], ["cat/10.png"]]


def test_paths_have_no_place_in_a_single_array(tconv: Tconv, pets: str) -> None:
    ran = tconv(pets, "--labels", "paths", "-o", "x.npy")
    assert (ran.code, ran.out) == (2, "")
    assert "this format holds a single array, and no paths; write -o FILE.npz" in ran.err
