"""Rows of files: which array is what, what is refused, and that nothing is shared with the files."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tconv
from tconv.loaders import files
from tconv.loaders.rows import Rows, open_rows
from tests.loaders.made import IMAGES, LABELS, photos, ragged, safetensors, stacked


def opened(src: Any, images: str | None = None, labels: str | None = "labels", dtype: Any = "float32") -> Rows:
    return open_rows(src, images, labels, dtype)


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_rows_and_labels_by_their_names(tmp_path: Path, kind: str) -> None:
    rows = opened(stacked(tmp_path, kind))
    assert (len(rows), rows.labelled, rows.shape) == (10, True, (3, 4, 5))
    for n in (0, 3, 9, -1):
        np.testing.assert_array_equal(rows.image(n), IMAGES[n])
        label = rows.label(n)
        assert label is not None
        assert (str(label.dtype), label.shape, label.item()) == ("int64", (), LABELS[n])
    np.testing.assert_array_equal(rows.images([7, 0, 7]), IMAGES[[7, 0, 7]])
    assert rows.labels([7, 0, 7]).tolist() == [6, 3, 6]
    assert rows.name(3).endswith(f"data.{kind}: images[3]")
    assert not opened(tmp_path, labels=None, images="images").labelled


def test_labels_that_are_asked_for_by_name_must_be_there(tmp_path: Path) -> None:
    """Those of the usual name may be missing; of another name they would be without anyone noticing."""
    path = stacked(tmp_path, "npz")
    with pytest.raises(tconv.TconvError, match=r"data\.npz: there is no 'lables'; did you mean labels"):
        opened(path, labels="lables")
    np.savez(tmp_path / "other.npz", images=IMAGES, target=LABELS)
    assert opened(tmp_path / "other.npz", labels="target").labels([3]).tolist() == [LABELS[3]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None,), "None names no file"),
        ((b"x",), "decode it"),
        (("",), "an input is an empty text"),
        ((".", 3), "images is 3; give the name of an array"),
        ((".", None, 3), "labels is 3; give the name of an array"),
    ],
)
def test_arguments_of_wrong_types(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(tconv.UsageError, match=said):
        opened(*arguments)


def test_an_npy_file_holds_rows_without_labels(tmp_path: Path) -> None:
    rows = opened(photos(tmp_path))
    assert (len(rows), rows.labelled, rows.shape) == (12, False, (3, 8, 8))
    assert rows.label(0) is None
    np.testing.assert_array_equal(rows.images(range(12)), np.load(tmp_path / "photos.npy"))


def test_one_array_beside_labels_is_the_images_whatever_its_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "shapes.npz", shapes=IMAGES, labels=LABELS)
    np.testing.assert_array_equal(opened(tmp_path / "shapes.npz").image(4), IMAGES[4])


def test_an_array_an_image_ragged_sizes_included(tmp_path: Path) -> None:
    rows = opened(ragged(tmp_path))
    assert (len(rows), rows.shape) == (4, None)
    assert [rows.image(n).shape for n in range(4)] == [(3, n + 1, 2) for n in range(4)]
    assert [rows.image(n).max() for n in range(4)] == [0, 1, 2, 3]
    assert rows.labels(range(4)).tolist() == [0, 1, 2, 3]
    assert rows.name(2) == "2.png"
    with pytest.raises(tconv.TconvError, match=r"0\.png is \(3, 1, 2\) and 2\.png is \(3, 3, 2\)"):
        rows.images([0, 2])


def test_a_single_image_is_one_sample(tmp_path: Path) -> None:
    rows = opened(safetensors(tmp_path / "one.safetensors", {"a.png": IMAGES[0]}, "CHW"))
    assert (len(rows), rows.shape) == (1, (3, 4, 5))
    many = opened(safetensors(tmp_path / "many.safetensors", {"a": IMAGES}, "NCHW"))
    assert (len(many), many.shape) == (10, (3, 4, 5))


def test_files_follow_each_other_in_natural_order(tmp_path: Path) -> None:
    for n in (2, 10, 1):
        np.save(tmp_path / f"batch-{n}.npy", np.full((n, 2), n, np.float32))
    for src in (tmp_path, f"{tmp_path}/*.npy", [tmp_path / f"batch-{n}.npy" for n in (1, 2, 10)]):
        rows = opened(src)
        assert rows.images(range(13))[:, 0].tolist() == [1, 2, 2] + 10 * [10]


@pytest.mark.parametrize("stored", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_images_are_float32_and_labels_int64(tmp_path: Path, stored: Any) -> None:
    images, labels = IMAGES.astype(stored), LABELS.astype(np.uint8)
    rows = opened(safetensors(tmp_path / "x.safetensors", {"images": images, "labels": labels}))
    np.testing.assert_array_equal(rows.image(2), images[2].astype(np.float32))
    assert rows.image(2).dtype == rows.images([1, 2]).dtype == np.float32
    assert rows.labels([1]).dtype == np.int64
    assert opened(tmp_path / "x.safetensors", dtype=None).image(2).dtype == images.dtype
    assert opened(tmp_path / "x.safetensors", dtype="float64").image(2).dtype == np.float64


def test_labels_that_are_numbers_or_vectors(tmp_path: Path) -> None:
    boxes = np.arange(40, dtype=np.float64).reshape(10, 4)
    np.savez(tmp_path / "x.npz", images=IMAGES, labels=boxes)
    found = opened(tmp_path / "x.npz").labels([1, 2])
    assert found.dtype == np.float32
    assert found.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_integer_images_are_given_only_as_they_are(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    with pytest.raises(tconv.TconvError, match=r"x\.npy: its images are uint8, in their own range; .*dtype=None"):
        opened(tmp_path / "x.npy")
    assert opened(tmp_path / "x.npy", dtype=None).image(1).dtype == np.uint8


def test_what_is_given_out_is_the_callers_own(tmp_path: Path) -> None:
    rows = opened(stacked(tmp_path, "npz"))
    rows.image(0)[:] = 7
    rows.images([0, 1])[:] = 7
    np.testing.assert_array_equal(rows.image(0), IMAGES[0])
    np.testing.assert_array_equal(np.load(tmp_path / "data.npz")["images"], IMAGES)
    assert rows.images([1, 2]).ctypes.data % 64 == 0


def test_a_pickled_copy_holds_no_map_and_reads_the_same(tmp_path: Path) -> None:
    rows = opened(stacked(tmp_path, "safetensors", np.zeros((10, 100, 100), np.float32)))
    rows.image(0)
    text = pickle.dumps(rows)
    assert len(text) < 5000
    copy = pickle.loads(text)  # our own
    np.testing.assert_array_equal(copy.image(3), rows.image(3))
    assert copy.labels([3]).tolist() == [1]


def test_paths_are_found_again_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stacked(tmp_path, "npz")
    monkeypatch.chdir(tmp_path)
    rows = opened("data.npz")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(rows.image(1), IMAGES[1])


def test_there_is_nothing_beyond_the_last(tmp_path: Path) -> None:
    rows = opened(stacked(tmp_path, "npz"))
    for index in (10, -11):
        with pytest.raises(IndexError, match="of 10"):
            rows.image(index)


def test_a_file_that_became_shorter_is_no_crash(tmp_path: Path) -> None:
    rows = opened(stacked(tmp_path, "npy"))
    (tmp_path / "data.npy").write_bytes((tmp_path / "data.npy").read_bytes()[:200])
    with pytest.raises(tconv.TconvError, match="changed while it was read"):
        rows.image(9)


def test_a_file_that_is_cut_off_while_it_is_read_is_no_crash(tmp_path: Path) -> None:
    """A map of it would end the process with SIGBUS."""
    rows = opened(stacked(tmp_path, "npy", np.zeros((10, 100, 100), np.float32)))
    rows.image(0)
    os.truncate(tmp_path / "data.npy", 4096)
    for index in (0, 9):
        with pytest.raises(tconv.TconvError, match="changed while it was read"):
            rows.images([index])


def test_of_many_files_a_few_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", 2)
    for n in range(5):
        np.save(tmp_path / f"{n}.npy", np.full((3, 2, 2), n, np.float32))
    rows = opened(tmp_path)
    order = [(n * 7) % 15 for n in range(15)] * 2
    assert [int(rows.image(i)[0, 0]) for i in order] == [i // 3 for i in order]
    assert len(rows._files._open) == 2


def refused(tmp_path: Path, says: str, path: Path | None = None, **options: Any) -> None:
    with pytest.raises(tconv.TconvError, match=says):
        opened(path or tmp_path, **options)


def test_what_cannot_be_mapped_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "deflated.npz", images=IMAGES)
    refused(tmp_path, r"deflated\.npz: images: its elements do not lie .* \(deflated, Fortran order or big-endian\)")
    (tmp_path / "deflated.npz").unlink()
    for array in (np.asfortranarray(IMAGES), IMAGES.astype(">f4")):
        np.save(tmp_path / "x.npy", array)
        refused(tmp_path, "do not lie in the file as they are in memory")
    examples = Path(__file__).resolve().parents[2] / "examples"
    refused(
        tmp_path,
        "PyTorch checkpoint files are not mapped; tconv makes .npy, .npz and .safetensors of it",
        examples / "tiny.pt",
    )
    refused(tmp_path, "JPEG files are not mapped", examples / "photos" / "moon.jpg")


def test_weights_are_no_images(tmp_path: Path) -> None:
    pytest.importorskip("safetensors.numpy").save_file({"w": IMAGES}, tmp_path / "w.safetensors")
    refused(tmp_path, r"w\.safetensors: it holds weights")


def test_what_is_what_has_to_be_clear(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, points=np.ones((5, 2)), extra=np.ones((5, 3)), labels=np.arange(4))
    refused(
        tmp_path, r"which of its fields are the images: points \(5, 2\), extra \(5, 3\)\?; say images='points'", path
    )
    refused(tmp_path, "there is no 'pionts'; did you mean points", path, images="pionts")
    refused(tmp_path, "labels: 4 labels for 5 images", path, images="points")
    assert len(opened(path, images="points", labels=None)) == 5
    np.savez(path, labels=np.arange(4))
    refused(tmp_path, "there are no images in it", path)
    np.savez(path, images=np.array(1.0))
    refused(tmp_path, "a single number is no row", path)
    np.savez(path, images=np.ones(3), labels=np.array(1))
    refused(tmp_path, "a single label", path)
    np.savez(path, images=np.ones(1), labels=np.array([2**64 - 1], np.uint64))
    refused(tmp_path, "labels: cast.int64.: 1 of 1 values overflow int64", path)


def test_labels_in_all_files_or_in_none(tmp_path: Path) -> None:
    stacked(tmp_path, "npz")
    np.save(tmp_path / "x.npy", IMAGES)
    refused(tmp_path, r"x\.npy: has no labels, and others have")
    assert len(opened(tmp_path / "x.npy")) == 10


def test_dtypes_of_several_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    np.save(tmp_path / "b.npy", IMAGES.astype(np.float16))
    refused(tmp_path, r"a\.npy is float32 and .*b\.npy is float16; dtype=\"float32\" makes one", dtype=None)
    for first, second in ((0, 19), (19, 0)):  # the wider one last, too
        made = opened(tmp_path).images([first, second])
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made[1 if first else 0], IMAGES[0])
        np.testing.assert_array_equal(made[0 if first else 1], IMAGES[9].astype(np.float16))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    (tmp_path / "b.npy").write_bytes(b"")
    refused(tmp_path, r"b\.npy: the file is empty")
    with pytest.raises(tconv.UsageError, match="there is no input"):
        opened([])


def test_a_sample_that_does_not_fit_is_named(tmp_path: Path) -> None:
    images = np.ones((4, 2))
    images[2, 1] = 1e300
    rows = opened(stacked(tmp_path, "npz", images, None))
    assert rows.image(1).tolist() == [1.0, 1.0]
    reads: list[Callable[[], Any]] = [lambda: rows.image(2), lambda: rows.images([1, 2, 3])]
    for read in reads:
        with pytest.raises(tconv.TconvError, match=r"data\.npz: images\[2\]: .* 1 of 2 values overflow") as refused:
            read()
        assert "dtype=None" in refused.value.remedy
    assert opened(tmp_path / "data.npz", dtype=None).image(2)[1] == 1e300


def test_labels_of_another_name_have_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, images=IMAGES, targets=LABELS)
    assert not opened(path, images="images").labelled
    np.testing.assert_array_equal(opened(path, "images", "targets").labels([0, 2]), LABELS[[0, 2]])
    with pytest.raises(tconv.TconvError, match=r"x\.npz: there is no 'target'; did you mean targets"):
        opened(path, "images", "target")


@pytest.mark.parametrize("names", [(3, "labels"), (None, 3), ([], None)])
def test_what_names_no_array(tmp_path: Path, names: Any) -> None:
    with pytest.raises(tconv.UsageError, match="give the name of an array in the files"):
        opened(stacked(tmp_path, "npz"), *names)
