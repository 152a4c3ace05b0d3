"""What words stand for: natural order, hidden files, content before suffix, one kind to a folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tconv import registry
from tconv.errors import TconvError, UsageError
from tconv.inputs import find, natural
from tconv.patterns import Patterns
from tests.formats.sharded import safetensors_folder, write_index


def png(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (2, 2)).save(path, "PNG")
    return path


def npy(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.zeros(2))
    return path


def names(words: list[str | Path]) -> list[str]:
    return [one.name for one in find([str(w) for w in words]).inputs]


def test_an_empty_word_is_not_the_current_folder() -> None:
    """``tconv "$UNSET"`` would convert all that is there."""
    with pytest.raises(UsageError, match="an input is an empty text"):
        find(["x.png", ""])


def test_a_name_longer_than_any_is_no_file() -> None:
    with pytest.raises(TconvError, match="there is no such file or folder"):
        find(["a" * 5000])


def test_numbers_sort_as_people_count() -> None:
    paths = [Path(p) for p in ("b/1", "a10", "a9", "a/2", "a/10", "a1b2", "a1b10", "2", "10")]
    assert [str(p) for p in sorted(paths, key=natural)] == [
        "2", "10", "a/2", "a/10", "a1b2", "a1b10", "a9", "a10", "b/1",
    ]  # fmt: skip


def test_files_of_a_folder_sort_alike_wherever_it_is_named_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ["2/9.png", "2.png", "10/1.png", "10.png", "a/2.png", "a/10.png", "a1b2.png"]
    for name in reversed(wanted):
        png(tmp_path / "x" / name)
    monkeypatch.chdir(tmp_path)
    assert names([tmp_path / "x"]) == names(["x"]) == names(["x/"]) == names(["../" + tmp_path.name + "/x"]) == wanted
    monkeypatch.chdir("x")
    assert names(["."]) == names(["../x"]) == wanted


def test_a_folder_is_searched_all_the_way_down_but_not_where_it_is_hidden(tmp_path: Path) -> None:
    for name in ("10.png", "2.png", "sub/1.png", ".hidden.png", ".git/x.png"):
        png(tmp_path / name)
    assert names([tmp_path]) == ["2.png", "10.png", "sub/1.png"]


def test_other_files_of_an_image_folder_are_named_as_ignored(tmp_path: Path) -> None:
    png(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("x")
    npy(tmp_path / "b.npy")
    found = find([str(tmp_path)])
    assert [one.name for one in found.inputs] == ["a.png"]
    assert found.notes == (f"{tmp_path}: ignored notes.txt, b.npy",)


def test_hidden_images_are_named_as_ignored(tmp_path: Path) -> None:
    for name in ("a.png", ".x.png", "sub/.y.png", ".hidden/z.png"):
        png(tmp_path / name)
    (tmp_path / ".DS_Store").write_bytes(b"x")
    found = find([str(tmp_path)])
    assert [one.name for one in found.inputs] == ["a.png"]
    assert found.ignored == (tmp_path / ".hidden", tmp_path / ".x.png", tmp_path / "sub" / ".y.png")
    assert found.notes == (f"{tmp_path}: ignored .hidden/, .x.png, sub/.y.png",)


def test_a_folder_of_hidden_files_only_says_so(tmp_path: Path) -> None:
    png(tmp_path / ".x.png")
    with pytest.raises(TconvError, match=r"holds no file that tconv reads but hidden ones; rename \.x\.png"):
        find([str(tmp_path)])


def test_hidden_files_are_not_carried_along_with_a_model(tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "m")
    png(tmp_path / "m" / ".x.png")
    found = find([str(tmp_path / "m")])
    assert tmp_path / "m" / ".x.png" not in found.inputs[0].carried
    assert tmp_path / "m" / ".x.png" in found.ignored


def test_what_is_not_wanted_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.png", "sub/b.png"):
        png(tmp_path / name)
    (tmp_path / "sub" / "empty.png").write_bytes(b"")
    (tmp_path / "page.jpg").write_text("<!DOCTYPE html>")
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere")
    detect, opened = registry.detect, list[str]()

    def counting(path: Path) -> registry.Format:
        opened.append(path.name)
        return detect(path)

    monkeypatch.setattr(registry, "detect", counting)
    found = find([str(tmp_path)], wanted=Patterns(("*.png",), ("sub/empty*", "gone.png")))
    assert [one.name for one in found.inputs] == ["a.png", "sub/b.png"]
    assert {one.name for one in found.unwanted} == {"gone.png", "page.jpg", "sub/empty.png"}
    assert found.failures == ()
    assert sorted(opened) == ["a.png", "b.png"]


def test_of_files_of_several_tensors_those_named_to_be_skipped_may_be_broken(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(2))
    (tmp_path / "bad.npz").write_bytes(b"")
    (tmp_path / "unknown").write_bytes(b"")
    words = [str(tmp_path / name) for name in ("a.npz", "bad.npz", "unknown")]
    assert [Path(f.file).name for f in find(words).failures] == ["bad.npz", "unknown"]
    assert [Path(f.file).name for f in find(words, wanted=Patterns(("x",))).failures] == ["bad.npz", "unknown"]
    found = find(words, wanted=Patterns((), ("bad*", "unknown")))
    assert ([one.name for one in found.inputs], found.failures) == (["a"], ())


def test_nothing_wanted_is_refused_with_the_names_that_there_are(tmp_path: Path) -> None:
    for n in range(7):
        png(tmp_path / f"{n}.png")
    with pytest.raises(TconvError, match=r"^no tensor is left by --only; names here are 0\.png, .*4\.png and 2 more$"):
        find([str(tmp_path)], wanted=Patterns(("x*",)))


def test_a_folder_without_images_stands_for_its_arrays_by_their_stems(tmp_path: Path) -> None:
    npy(tmp_path / "x.npy")
    npy(tmp_path / "deep" / "y.npy")
    assert names([tmp_path]) == ["deep/y", "x"]


def test_a_link_to_a_folder_is_followed_and_a_loop_told(tmp_path: Path) -> None:
    png(tmp_path / "elsewhere" / "1.png")
    png(tmp_path / "images" / "0.png")
    (tmp_path / "images" / "cats").symlink_to(tmp_path / "elsewhere")
    assert names([tmp_path / "images"]) == ["0.png", "cats/1.png"]
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path / "images")
    found = find([str(tmp_path / "images")])
    assert [str(f) for f in found.failures] == [
        f"{tmp_path}/images/cats/up: the link leads back to a folder that it is in"
    ]


def test_a_folder_that_cannot_be_listed_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    png(tmp_path / "0.png")
    png(tmp_path / "locked" / "1.png")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)  # who runs the tests may be allowed to read everything
    (failure,) = find([str(tmp_path)]).failures
    assert str(failure) == f"{tmp_path}/locked: the folder cannot be read: Permission denied"


def test_a_word_that_names_no_file_may_have_been_meant_otherwise(tmp_path: Path) -> None:
    one = str(png(tmp_path / "a.png"))
    with pytest.raises(TconvError, match=r"no such file or folder; to write it say -o m\.safetensors"):
        find([one, "m.safetensors"])
    with pytest.raises(TconvError, match=r"statistics are chosen with --stats imagenet"):
        find([one, "imagenet"])
    with pytest.raises(TconvError, match=r"no such file or folder$"):
        find(["gone.npy"])


def test_what_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    one = png(tmp_path / "1.png")
    (tmp_path / "x").mkdir()
    found = find([str(tmp_path), str(one), str(tmp_path / "x" / ".." / "1.png"), str(tmp_path)])
    assert [i.name for i in found.inputs] == ["1.png"]
    assert found.notes[0] == f"{one}: named more than once, and taken once"


def test_files_keep_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    b, a = png(tmp_path / "b.png"), png(tmp_path / "a.png")
    assert names([b, a]) == ["b.png", "a.png"]


def test_a_quoted_glob_is_expanded(tmp_path: Path) -> None:
    png(tmp_path / "2.png")
    png(tmp_path / "10.png")
    png(tmp_path / "x" / "3.png")
    assert names([tmp_path / "*.png"]) == ["2.png", "10.png"]
    assert names([tmp_path / "**" / "*.png"]) == ["2.png", "10.png", "3.png"]


def test_a_file_whose_name_looks_like_a_glob_is_taken_as_it_is(tmp_path: Path) -> None:
    assert names([png(tmp_path / "a[1].png")]) == ["a[1].png"]


def test_content_decides_what_a_file_is(tmp_path: Path) -> None:
    wrong = png(tmp_path / "really-a-png.jpg")
    nameless = npy(tmp_path / "array.npy").rename(tmp_path / "array")
    found = find([str(wrong), str(nameless)])
    assert [one.format.name for one in found.inputs] == ["png", "npy"]


@pytest.mark.parametrize("suffix", ["npy", "npz", "png", "jpg", "pt", "safetensors", "txt"])
def test_an_empty_file_is_said_to_be_empty(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"empty.{suffix}"
    path.touch()
    (failure,) = find([str(path)]).failures
    assert str(failure) == f"{path}: the file is empty (0 bytes); fetch or write it again"


def test_every_word_that_names_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(TconvError) as caught:
        find([str(tmp_path / "a"), str(tmp_path / "*.png")])
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'a'}: there is no such file or folder",
        f"{tmp_path / '*.png'}: there is no such file or folder",
    ]


def test_a_folder_with_nothing_in_it_that_tconv_reads(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(TconvError, match="holds no file that tconv reads"):
        find([str(tmp_path)])


def test_pipes_and_dangling_links_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "link.npy").symlink_to(tmp_path / "gone")
    failures = find([str(tmp_path / "pipe.npy"), str(tmp_path / "link.npy")]).failures
    assert [f.reason for f in failures] == ["neither a file nor a folder", "a link to nothing"]


def test_a_plain_pickle_is_refused_for_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.pkl"
    path.write_bytes(b"\x80\x04N.")
    (failure,) = find([str(path)]).failures
    assert "pickle" in failure.reason
    assert "execute" in failure.reason


def test_a_folder_with_an_index_stands_for_its_sharded_checkpoint(tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    png(folder / "assets" / "logo.png")
    found = find([str(folder)])
    (one,) = found.inputs
    assert (one.path, one.format.name, one.root) == (folder / "model.safetensors.index.json", "index", folder)
    assert [p.relative_to(folder).as_posix() for p in one.carried] == [
        "assets/logo.png", "config.json", "tokenizer/vocab.txt",
    ]  # fmt: skip
    assert found.notes == (f"{folder}: ignored model.gguf, training_args.bin",)


def test_an_index_that_was_named_itself_carries_nothing(tmp_path: Path) -> None:
    (one,) = find([str(safetensors_folder(tmp_path / "m") / "model.safetensors.index.json")]).inputs
    assert one.carried == ()
    assert one.root is None


def test_two_sharded_checkpoints_in_a_folder_are_asked_about(tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    write_index(folder / "pytorch_model.bin.index.json", {"a": "x.bin"})
    two = "model.safetensors.index.json and pytorch_model.bin.index.json"
    with pytest.raises(TconvError, match=f"more than one sharded checkpoint: {re.escape(two)}"):
        find([str(folder)])


def test_an_index_deeper_in_a_folder_stands_for_its_shards_too(tmp_path: Path) -> None:
    safetensors_folder(tmp_path / "unet")
    (tmp_path / "unet" / "training_args.bin").unlink()
    assert [p.path.relative_to(tmp_path).as_posix() for p in find([str(tmp_path)]).inputs] == [
        "unet/model.safetensors.index.json"
    ]


def test_other_json_files_are_no_index(tmp_path: Path) -> None:
    png(tmp_path / "a.png")
    (tmp_path / "train.index.json").write_text("{}")
    assert names([tmp_path]) == ["a.png"]
