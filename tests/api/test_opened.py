"""open: names and specs from headers, values when they are asked for, in order, and in batches of any framework."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tconv.api import ahead
from tconv.api.opened import Tensors

PHOTOS = Path(__file__).resolve().parents[2] / "examples" / "photos"
CHAIN = "resize(32x24) | scale | permute(CHW)"


@pytest.fixture(scope="module")
def photos() -> Tensors:
    return tconv.open(PHOTOS)


def test_names_are_in_natural_order_and_specs_come_from_headers(photos: Tensors) -> None:
    assert len(photos) == 12
    assert photos.names[:2] == ("aurora.webp", "balloon.png")
    assert "moon.jpg" in photos
    assert "sun.jpg" not in photos
    spec = photos.spec("moon.jpg")
    assert (str(spec.dtype), spec.shape, spec.axes, spec.range) == ("uint8", (240, 240, 3), "HWC", (0, 255))
    assert [s.name for s in photos.specs] == list(photos.names)
    assert repr(photos).startswith("<tconv.Tensors: aurora.webp uint8 (240, 360, 3), ")
    assert repr(photos).endswith(" and 9 more>")


def test_values_are_those_that_the_command_line_writes(photos: Tensors, tmp_path: Path) -> None:
    written = tconv.convert(PHOTOS, tmp_path / "out.npz", CHAIN).path
    expected = np.load(written)
    made = dict(photos.pipe(CHAIN))
    assert list(made) == expected.files == list(photos.names)
    for name, array in made.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected[name])
        np.testing.assert_array_equal(photos.pipe(CHAIN)[name], array)


def test_what_is_not_wanted_may_be_broken(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(2))
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    (tmp_path / "c.npy").write_bytes(b"\x93NUMPY\1\0")
    (tmp_path / "d.npz").write_bytes(b"PK\3\4 broken")
    with pytest.raises(tconv.TconvError, match=r"c\.npy: .*\n.*d\.npz: "):
        tconv.open(tmp_path)
    assert tconv.open(tmp_path, skip=["c", "d*"]).names == ("a", "x")


def test_piping_gives_another_one_and_leaves_this_one(photos: Tensors) -> None:
    twice = photos.pipe("resize(32x24)").pipe("scale").pipe(["permute(CHW)"])
    assert photos.spec("moon.jpg").shape == (240, 240, 3)
    assert twice.spec("moon.jpg").shape == (3, 32, 24)
    assert twice.spec("moon.jpg").range == (0, 1)
    np.testing.assert_array_equal(twice["moon.jpg"], photos.pipe(CHAIN)["moon.jpg"])


def test_what_does_not_fit_is_told_when_it_is_piped(photos: Tensors) -> None:
    with pytest.raises(tconv.TconvError, match=r"normalize\(imagenet\): the statistics of imagenet are for values in"):
        photos.pipe("normalize(imagenet)")
    with pytest.raises(tconv.UsageError, match="there is no step 'rezise'; did you mean resize"):
        photos.pipe("rezise(224)")


def test_a_name_that_is_not_there_is_a_key_error_with_the_nearest(photos: Tensors) -> None:
    with pytest.raises(KeyError) as missing:
        photos["mon.jpg"]
    assert str(missing.value) == "there is no tensor 'mon.jpg'; did you mean moon.jpg?"
    assert isinstance(missing.value, tconv.TconvError)
    with pytest.raises(tconv.NoSuchTensor, match=r"there are aurora\.webp, balloon\.png"):
        photos.spec("xyz")
    assert photos.get("mon.jpg") is None
    assert photos.get("moon.jpg").shape == (240, 240, 3)


def test_arrays_are_the_callers_own(photos: Tensors) -> None:
    first = photos["moon.jpg"]
    first[:] = 0
    assert photos["moon.jpg"].any()


@pytest.mark.parametrize("framework", ["numpy", "torch", "tensorflow", "jax"])
def test_batches_of_every_framework(photos: Tensors, framework: str) -> None:
    pytest.importorskip(framework, reason="it makes batches of this framework")
    piped = photos.pipe(CHAIN)
    found = list(piped.batches(5, framework))
    assert [len(names) for names, _ in found] == [5, 5, 2]
    assert [name for names, _ in found for name in names] == list(photos.names)
    assert [tconv.inspect(batch).kind for _, batch in found] == [framework] * 3
    for names, batch in found:
        expected = np.stack([piped[name] for name in names])
        np.testing.assert_array_equal(tconv.to_numpy(batch), expected)


def test_a_smaller_last_batch_may_be_left_out(photos: Tensors) -> None:
    assert [len(names) for names, _ in photos.pipe(CHAIN).batches(5, drop_last=True)] == [5, 5]
    assert [len(names) for names, _ in photos.pipe(CHAIN).batches(12, drop_last=True)] == [12]


def test_unequal_shapes_are_refused_at_once_naming_two_files(photos: Tensors) -> None:
    with pytest.raises(
        tconv.TconvError,
        match=r"aurora.webp is uint8 \(240, 360, 3\) HWC and balloon.png is .*; pipe\(\"resize\(224x224\)\"\) or pipe",
    ):
        photos.batches(2)


def test_words_that_make_no_sense(photos: Tensors) -> None:
    with pytest.raises(tconv.UsageError, match="a batch has 1 tensor or more, not 0"):
        photos.pipe(CHAIN).batches(0)
    with pytest.raises(tconv.UsageError, match="there is no framework 'pytorch'; did you mean torch"):
        photos.pipe(CHAIN).batches(2, "pytorch")
    with pytest.raises(tconv.UsageError, match="there is no option 'force'"):
        tconv.open(PHOTOS, force=True)  # type: ignore[call-arg]  # which is for convert
    with pytest.raises(tconv.TconvError, match="there is no such file or folder"):
        tconv.open("no such place")


def test_options_choose_and_read_otherwise(photos: Tensors) -> None:
    grey = tconv.open(PHOTOS, only="m*.jpg", channels="gray", workers=1)
    assert grey.names == ("moon.jpg", "mountains.jpg")
    assert grey.spec("moon.jpg").shape == (240, 240, 1)


def test_a_checkpoint_by_its_parts(tmp_path: Path) -> None:
    path = PHOTOS.parent / "wrapped.pt"
    whole = tconv.open(path)
    part = tconv.open(path, select="model", strip_prefix="module.")
    assert "model.module.0.weight" in whole
    assert part.names == ("0.weight", "0.bias", "2.weight", "2.bias")
    np.testing.assert_array_equal(part["0.bias"], whole["model.module.0.bias"])


def test_several_files_and_names_that_collide(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "x.npy", np.ones(3))
    np.save(tmp_path / "y.npy", np.zeros(2))
    np.save(tmp_path / "a" / "x.npy", np.zeros(3))
    both = tconv.open([tmp_path / "y.npy", str(tmp_path / "x.npy")])
    assert {name: array.tolist() for name, array in both} == {"y": [0, 0], "x": [1, 1, 1]}
    with pytest.raises(tconv.TconvError, match="two tensors have that name"):
        tconv.open([tmp_path / "x.npy", tmp_path / "a" / "x.npy"])


def test_what_steps_tell_of_pictures_comes_beside_them(photos: Tensors) -> None:
    boxed = photos.pipe("letterbox(64)").pipe("scale")
    assert boxed.names[:2] == ("aurora.webp", "aurora.webp.letterbox")
    assert boxed["aurora.webp"].shape == (64, 64, 3)
    assert boxed["aurora.webp"].max() <= 1
    assert boxed["aurora.webp.letterbox"].shape == (5,)
    names, batch = next(boxed.batches(12))
    assert names == photos.names
    assert batch.shape == (12, 64, 64, 3)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_and_beside_batches(photos: Tensors, framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework, reason="it makes batches of this framework")
    boxed = photos.pipe("letterbox(64) | scale")
    found = list(boxed.batches(5, framework, beside=True))
    assert [(len(names), len(batch), list(told)) for names, batch, told in found] == [
        (5, 5, ["letterbox"]), (5, 5, ["letterbox"]), (2, 2, ["letterbox"])
    ]  # fmt: skip
    every = np.concatenate([np.asarray(told["letterbox"]) for _, _, told in found])
    tconv.convert(PHOTOS, tmp_path / "x.npz", "letterbox(64) | scale | stack")
    np.testing.assert_array_equal(every, np.load(tmp_path / "x.npz")["x.letterbox"])


def test_masks_of_padded_batches(photos: Tensors) -> None:
    names, batch, told = next(photos.pipe("scale | pad").batches(3, beside=True))
    masks = told["mask"]
    assert (batch.shape[:3], masks.dtype) == (masks.shape, np.bool_)
    for name, mask in zip(names, masks, strict=True):
        height, width, _ = photos.spec(name).shape
        assert mask.sum() == height * width
        assert mask[:height, :width].all()


def test_what_is_left_out_of_batches_is_told(photos: Tensors, caplog: pytest.LogCaptureFixture) -> None:
    next(photos.pipe("scale | pad").batches(3))
    assert caplog.messages == ["batches: left out: mask of the pictures; beside=True gives that too"]
    caplog.clear()
    assert next(photos.pipe(CHAIN).batches(3, beside=True))[2] == {}
    next(photos.pipe("scale | pad").batches(3, beside=True))
    assert caplog.messages == []


def test_bad_files_are_told_all_at_once(tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.ones(3))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "short.npy").write_bytes((tmp_path / "good.npy").read_bytes()[:-1])
    with pytest.raises(tconv.TconvErrors) as refused:
        tconv.open(tmp_path)
    assert {Path(problem.file).name for problem in refused.value.problems} == {"empty.npy", "short.npy"}


def test_what_a_cast_loses_is_refused_when_the_tensor_is_reached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([1.0, 1e-9]), b=np.array([70000.0]))
    opened = tconv.open(tmp_path / "x.npz").pipe("cast(float16)")
    values = iter(opened)
    assert next(values)[0] == "a"
    assert caplog.messages == [f"{tmp_path / 'x.npz'}: a: cast(float16): 1 of 2 values became 0"]
    with pytest.raises(tconv.TconvError, match=r"x.npz: b: cast\(float16\): 1 of 1 values overflow") as refused:
        next(values)
    assert refused.value.remedy.startswith('on_overflow="saturate" clamps')


def test_a_step_that_depends_on_values_looks_at_them_when_it_is_piped(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([1.0]), b=np.array([70000.0]))
    opened = tconv.open(tmp_path / "x.npz").pipe("cast(float16, on_overflow=keep)")
    assert [str(spec.dtype) for spec in opened.specs] == ["float16", "float64"]


def test_a_file_that_breaks_while_it_is_read_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(1000.0))
    opened = tconv.open(tmp_path / "x.npz")
    (tmp_path / "x.npz").write_bytes(b"")
    with pytest.raises(tconv.TconvError, match=r"x\.npz: a: changed while it was read"):
        opened["a"]
    (tmp_path / "x.npz").unlink()
    with pytest.raises(tconv.TconvError, match=r"x\.npz: .*cannot be read: No such file"):
        opened["a"]


def rows(path: Path, count: int) -> Path:
    """A file of arrays of 8000 bytes, each full of its number."""
    numbered: dict[str, Any] = {str(n): np.full(1000, n, np.float64) for n in range(count)}
    np.savez(path / "x.npz", **numbered)
    return path / "x.npz"


def test_no_more_is_made_ahead_than_the_limit_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    begin = ahead._Making.begin

    def counted(making: Any, pool: Any) -> None:
        begun.append(making.cost)
        begin(making, pool)

    monkeypatch.setattr(ahead._Making, "begin", counted)
    opened = tconv.open(rows(tmp_path, 20), workers=3, max_memory=3 * 24_000)
    for n, (name, array) in enumerate(opened):
        assert (name, array[0]) == (str(n), n)
        assert len(begun) <= n + 4
    assert len(begun) == 20
    assert max(begun) <= 24_000


def test_threads_end_with_the_loop(tmp_path: Path) -> None:
    def working() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("tconv")]

    for name, _ in tconv.open(rows(tmp_path, 20)):
        assert working()
        if name == "3":
            break
    assert not working()


def test_a_tensor_larger_than_the_limit_comes_alone(tmp_path: Path) -> None:
    assert [array[0] for _, array in tconv.open(rows(tmp_path, 5), max_memory=1)] == [0, 1, 2, 3, 4]


def test_a_stack_and_a_large_tensor_are_made_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(5000.0).reshape(50, 100)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr("tconv.evaluate.PIECE", 64)
    made = tconv.open(tmp_path / "x.npy").pipe("cast(float32)")["x"]
    np.testing.assert_array_equal(made, x.astype(np.float32))
    assert made.ctypes.data % 64 == 0
    stacked = tconv.open(PHOTOS).pipe(f"{CHAIN} | stack(into=all)")
    assert stacked.names == ("all",)
    np.testing.assert_array_equal(stacked["all"][3], tconv.open(PHOTOS).pipe(CHAIN)["dunes.jpg"])


@pytest.mark.parametrize("name", [0, -1, None, slice(1, 2), b"moon.jpg", ["moon.jpg"], ("moon.jpg",)])
def test_what_is_no_name_is_told_what_is(photos: Tensors, name: Any) -> None:
    with pytest.raises(tconv.NoSuchTensor, match=r"tensors have names, and .* is none; x\['aurora\.webp'\]"):
        photos[name]
    assert name not in photos
    assert photos.get(name, 7) == 7


@pytest.mark.parametrize("size", [0, -1, 2.0, "4", True, None])
def test_what_is_no_size_of_a_batch(photos: Tensors, size: Any) -> None:
    with pytest.raises(tconv.UsageError, match="a batch has 1 tensor or more, not"):
        photos.batches(size)


def test_sizes_may_be_numpys_and_larger_than_anything(photos: Tensors) -> None:
    small = photos.pipe(CHAIN)
    assert [batch.shape[0] for _, batch in small.batches(np.int64(5))] == [5, 5, 2]
    assert [batch.shape[0] for _, batch in small.batches(10**30)] == [12]
    assert [batch.shape[0] for _, batch in small.batches(5, drop_last=True)] == [5, 5]
    assert not list(small.batches(13, drop_last=True))


@pytest.mark.parametrize(
    ("framework", "says"),
    [
        ("tf", "did you mean tensorflow"),
        ("np", "did you mean numpy"),
        ("Torch", "did you mean torch"),
        (None, "choose"),
    ],
)
def test_a_framework_that_is_none(photos: Tensors, framework: Any, says: str) -> None:
    with pytest.raises(tconv.UsageError, match=says):
        photos.pipe(CHAIN).batches(2, framework)


@pytest.mark.parametrize(
    ("framework", "device", "says"),
    [
        ("numpy", "cuda", "cannot go to cuda"),
        ("torch", "cuda:99", "cannot go to cuda:99"),
        ("torch", 0, "device is 0; name it"),
        ("torch", "meta", "the device meta holds no values"),
        ("tensorflow", "gpu:99", "cannot go to GPU:99"),
        ("jax", "cuda", "cannot go to cuda"),
    ],
)
def test_a_device_that_is_not_there_is_told_at_once(photos: Tensors, framework: str, device: Any, says: str) -> None:
    pytest.importorskip(framework, reason="the device is its own")
    with pytest.raises(tconv.TconvError, match=says):
        photos.pipe(CHAIN).batches(2, framework, device)


def test_the_way_out_fits_what_there_is(photos: Tensors, tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", a=np.ones(2), b=np.ones(3))
    with pytest.raises(tconv.TconvError) as weights:
        tconv.open(tmp_path / "w.npz").batches(2)
    assert weights.value.remedy == "without batches each comes as it is"
    with pytest.raises(tconv.TconvError) as stack:
        photos.pipe(CHAIN).pipe("stack").batches(2)
    assert stack.value.remedy == "without batches each comes as it is"
    with pytest.raises(tconv.TconvError, match=r'pipe\("resize\(224x224\)"\) or pipe\("pad"\) makes sizes equal'):
        photos.batches(2)
