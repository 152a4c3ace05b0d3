"""Where outputs go by default and by -o, what is refused, and what stdout will say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tconv import targets
from tconv.errors import TconvError, UsageError
from tconv.inputs import Input
from tconv.registry import FORMATS
from tconv.targets import Target, below, check_words, choose


def source(path: str, kind: str, root: str | None = None) -> Input:
    return Input(Path(path), FORMATS[kind], Path(path).name, Path(root) if root else None)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(inputs: list[Input], output: str | None = None, **more: str | bool | None) -> list[str]:
    defaults: dict[str, object] = {"format_name": None, "tag": "float16"}
    return [t.shown for t in choose(inputs, output, **{**defaults, **more})]  # type: ignore[arg-type]  # by keyword


def test_weights_and_arrays_go_beside_themselves_in_their_format() -> None:
    assert shown([source("m/ckpt.pt", "pt"), source("b.pth", "pt")]) == ["m/ckpt.float16.pt", "b.float16.pth"]
    assert shown([source("a.npy", "npy")]) == ["a.float16.npy"]
    assert shown([source("a.npz", "npz")]) == ["a.float16.npz"]


def test_a_folder_of_shards_goes_to_a_folder_beside_it(tmp_path: Path) -> None:
    one = source("m/model.safetensors.index.json", "index", root="m")
    assert choose([one], None, None, "float16") == [
        Target(
            tmp_path / "m.float16", tmp_path / "m.float16", "m.float16", FORMATS["safetensors"], (one,), sharded=True
        )
    ]
    assert shown([source("m/pytorch_model.bin.index.json", "index", root="m")], tag="", format_name="safetensors") == [
        "m.safetensors"
    ]
    with pytest.raises(UsageError, match="m: nothing to do"):
        choose([one], None, "safetensors", "")
    with pytest.raises(UsageError, match="needs a place to go"):
        choose([source("m/model.safetensors.index.json", "index")], None, None, "float16")


def test_shards_have_the_format_of_those_that_were_read_or_that_of_the_option() -> None:
    def form(name: str, format_name: str | None = None) -> str:
        (target,) = choose([source(name, "index")], "out/", format_name, "")
        return target.format.name

    assert form("model.safetensors.index.json") == "safetensors"
    assert form("pytorch_model.bin.index.json") == "pt"
    assert form("pytorch_model.bin.index.json", "safetensors") == "safetensors"
    with pytest.raises(UsageError, match=r"not npz; --format safetensors or pt, or one file with -o FILE\.npz"):
        form("model.safetensors.index.json", "npz")


def test_where_shards_cannot_go_is_told_before_any_file_is_looked_for() -> None:
    for output, split, reason in (
        (None, False, "--shard-size writes a folder; say where with -o DIR/"),
        ("x.safetensors", False, "x.safetensors: --shard-size writes a folder; write -o x.safetensors/"),
        ("out/", True, "--split and --shard-size exclude each other"),
    ):
        with pytest.raises(UsageError, match=reason):
            check_words(output, None, split, pack=True)


def test_a_dtype_that_numpy_lacks_goes_to_safetensors() -> None:
    assert shown([source("a.npy", "npy")], tag="bfloat16", beyond_npy=True) == ["a.bfloat16.safetensors"]
    assert shown([source("a.pt", "pt")], tag="bfloat16", beyond_npy=True) == ["a.bfloat16.pt"]


def test_a_folder_of_images_goes_beside_the_folder() -> None:
    Path("images").mkdir()
    inputs = [source("images/a.png", "png", "images"), source("images/b/c.jpg", "jpeg", "images")]
    assert shown(inputs) == ["images.safetensors"]
    assert shown(inputs, format_name="npy") == ["images.npy"]


def test_the_current_folder_goes_beside_itself(tmp_path: Path) -> None:
    (target,) = choose([source("a.png", "png", ".")], None, None, "")
    assert target.path == tmp_path.with_name(tmp_path.name + ".safetensors")
    assert target.shown == str(target.path)


def test_one_image_goes_beside_itself() -> None:
    assert shown([source("x/a.jpg", "jpeg")]) == ["x/a.safetensors"]


def test_several_images_and_folders_of_arrays_need_a_place() -> None:
    with pytest.raises(UsageError, match="need a place"):
        shown([source("a.png", "png"), source("b.png", "png")])
    with pytest.raises(UsageError, match="needs a place"):
        shown([source("d/a.npy", "npy", "d")])


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to do"):
        shown([source("a.pt", "pt")], tag="")
    assert shown([source("a.pt", "pt")], tag="", format_name="safetensors") == ["a.safetensors"]


def test_a_file_takes_all_inputs_and_its_suffix_is_the_format(tmp_path: Path) -> None:
    inputs = [source("a.npy", "npy"), source("b.npy", "npy")]
    (target,) = choose(inputs, "x/out.NPZ", None, "")
    assert target == Target(tmp_path / "x" / "out.NPZ", tmp_path / "x", "x/out.NPZ", FORMATS["npz"], tuple(inputs))


def test_a_suffix_of_no_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"out\.bmp: the suffix '\.bmp'.*\.png, .*\.npy, \.npz, \.safetensors, \.pt"):
        shown([source("a.npy", "npy")], "out.bmp")
    assert shown([source("a.npy", "npy")], "out.weird", format_name="npy") == ["out.weird"]


def test_a_folder_mirrors_the_tree_and_is_shown_once(tmp_path: Path) -> None:
    inputs = [source("in/a.png", "png", "in"), source("in/c/b.jpg", "jpeg", "in")]
    got = choose(inputs, "out/", "npy", "")
    assert [t.path for t in got] == [tmp_path / "out" / "a.npy", tmp_path / "out" / "c" / "b.npy"]
    assert {t.shown for t in got} == {"out/"}


def test_an_existing_folder_needs_no_slash(tmp_path: Path) -> None:
    Path("out").mkdir()
    (target,) = choose([source("ckpt.pt", "pt")], "out", None, "float16")
    assert target.path == tmp_path / "out" / "ckpt.pt"


def test_split_needs_a_folder() -> None:
    with pytest.raises(UsageError, match="-o DIR/"):
        shown([source("a.pt", "pt")], split=True)


@pytest.mark.parametrize("name", ["../x", "/abs", "a/../../x", "a//b", "", ".", "a\\..\\b", "x\0y", "a/", "y" * 300])
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    (target,) = choose([source("a.safetensors", "safetensors")], "out/", "npy", "", split=True)
    with pytest.raises(TconvError):
        below(target, name)


def test_names_with_slashes_make_folders(tmp_path: Path) -> None:
    (target,) = choose([source("a.safetensors", "safetensors")], "out/", "npy", "", split=True)
    assert below(target, "cats/1.png") == tmp_path / "out" / "cats" / "1.png.npy"
    assert below(target, "layers.0.weight") == tmp_path / "out" / "layers.0.weight.npy"


def test_links_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.npy").symlink_to(tmp_path / "real" / "x.npy")
    (target,) = targets.choose([source("a.npy", "npy")], "link.npy", None, "")
    assert (target.path, target.root, target.shown) == (
        tmp_path / "real" / "x.npy", tmp_path / "real", "link.npy",
    )  # fmt: skip


def test_a_name_of_any_bytes_makes_a_file(tmp_path: Path) -> None:
    (target,) = choose([source("a.safetensors", "safetensors")], "out/", "npy", "", split=True)
    assert os.fsencode(below(target, "caf\udce9.png").name) == b"caf\xe9.png.npy"


@pytest.mark.parametrize(
    ("output", "form", "split", "words"),
    [
        ("x.xyz", None, False, "'.xyz' names no format"),
        ("x.npy", "zzz", False, "zzz"),
        (None, None, True, "-o DIR/"),
        ("x.npy", None, True, "--split writes a folder; write -o x.npy/"),
    ],
)
def test_wrong_words_are_wrong_without_a_look_at_any_file(
    output: str | None, form: str | None, split: bool, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_words(output, form, split)


def test_pictures_in_a_folder_are_called_by_their_tensors(tmp_path: Path) -> None:
    (target,) = choose([source("a.npz", "npz")], "out/", "jpeg", "")
    assert target.split
    assert below(target, "cats/1.png") == tmp_path / "out" / "cats" / "1.jpg"
    assert below(target, "batch-00000") == tmp_path / "out" / "batch-00000.jpg"
    assert below(target, "layers.0") == tmp_path / "out" / "layers.0.jpg"


def test_a_folder_called_by_a_format_of_pictures_gets_these() -> None:
    assert [t.format.name for t in choose([source("a.npy", "npy")], "png/", None, "")] == ["png"]
    assert [t.format.name for t in choose([source("a.npy", "npy")], "png/", "npz", "")] == ["npz"]
    assert [t.format.name for t in choose([source("a.npy", "npy")], "pictures/", None, "")] == ["npy"]


def test_pictures_become_tensors_unless_it_is_said_otherwise() -> None:
    assert [t.format.name for t in choose([source("a.png", "png")], "out/", None, "")] == ["safetensors"]
    assert shown([source("a.png", "png")]) == ["a.safetensors"]
    assert shown([source("a.jpg", "jpeg")], format_name="png") == ["a.png"]
