"""What channels are that are not RGB: every format that can say it does, and what reads it back takes it for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tconv
from tconv.dtypes import dtype
from tconv.formats import order
from tconv.tensor import Spec, Tensor

torch = pytest.importorskip("torch")

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 5, 4, 3), np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("im").mkdir()
    for n, x in enumerate(PIXELS):
        Image.fromarray(x).save(f"im/{n}.png")
    return "im"


HOLDS = ["npz", "safetensors", "pt"]


@pytest.mark.parametrize("suffix", HOLDS)
@pytest.mark.parametrize("stack", [True, False])
def test_pictures_come_back_in_the_colours_that_they_had(folder: str, suffix: str, stack: bool) -> None:
    tconv.convert(folder, f"x.{suffix}", channels="bgr", stack=stack)
    opened = tconv.open(f"x.{suffix}")
    assert {order.word(spec) for spec in opened.specs} == {"BGR"}
    np.testing.assert_array_equal(np.stack([v for _, v in opened]).reshape(PIXELS.shape), PIXELS[..., ::-1])
    tconv.convert(f"x.{suffix}", "png/", input_layout="NHWC" if stack else "HWC", format="png")
    back = [np.asarray(Image.open(p)) for p in sorted(Path("png").iterdir())]
    np.testing.assert_array_equal(back, PIXELS)


@pytest.mark.parametrize("first", HOLDS)
@pytest.mark.parametrize("second", HOLDS)
def test_from_one_format_to_the_other_it_stays_said(folder: str, first: str, second: str) -> None:
    tconv.convert(folder, f"x.{first}", "scale | stack", channels="bgr")
    assert tconv.convert(f"x.{first}", f"y.{second}").notes == ()
    assert order.word(tconv.open(f"y.{second}").specs[0]) == "BGR"


def test_the_libraries_themselves_tell_it(folder: str) -> None:
    tconv.convert(folder, "x.npz", channels="bgr", stack=True)
    tconv.convert(folder, "x.pt", channels="bgr", stack=True)
    with np.load("x.npz", allow_pickle=False) as file:
        assert sorted(file) == ["channels", "x"]
        assert file["channels"].tolist() == ["BGR"]
    loaded = torch.load("x.pt", weights_only=True, mmap=True)
    assert (list(loaded), loaded["channels"]) == (["x", "channels"], "BGR")


@pytest.mark.parametrize("channels", ["rgb", "gray", "rgba", "keep"])
def test_of_other_channels_nothing_is_said(folder: str, channels: Any) -> None:
    tconv.convert(folder, "x.npz", channels=channels, stack=True)
    tconv.convert(folder, "x.pt", channels=channels, stack=True)
    assert np.load("x.npz").files == ["x"]
    assert list(torch.load("x.pt", weights_only=True)) == ["x"]


def test_what_cannot_say_it_tells_so(folder: str) -> None:
    made = tconv.convert(folder, "x.npy", channels="bgr")
    assert made.notes == (
        "x.npy: left out, as the format cannot hold it: that the channels of x are BGR (an .npz says it)",
    )


@pytest.mark.parametrize("suffix", ["npz", "pt"])
def test_an_array_of_that_name_takes_the_place(folder: str, suffix: str) -> None:
    made = tconv.convert(folder, f"channels.{suffix}", channels="bgr", stack=True)
    (note,) = made.notes
    assert "that the channels of channels are BGR" in note
    assert tconv.open(f"channels.{suffix}").specs[0].shape == PIXELS.shape


def inks(path: Path) -> Path:
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (5, 4, 4), np.uint8), "CMYK").save(path, quality=100)
    return path


@pytest.mark.parametrize("suffix", HOLDS)
def test_inks_are_never_taken_for_colours_with_alpha(tmp_path: Path, suffix: str) -> None:
    path = tconv.convert(inks(tmp_path / "a.jpg"), tmp_path / f"x.{suffix}", channels="keep").path
    with pytest.raises(tconv.TconvError, match=r"and these are inks \(CMYK\)"):
        tconv.convert(path, tmp_path / "x.png", input_layout="HWC")


def test_inks_and_colours_do_not_go_into_one_array(tmp_path: Path) -> None:
    inks(tmp_path / "a.jpg")
    Image.new("RGBA", (4, 5)).save(tmp_path / "b.png")
    said = r"a\.jpg is uint8 \(5, 4, 4\) HWC CMYK and b\.png is uint8 \(5, 4, 4\) HWC; channels=\"rgb\" makes"
    with pytest.raises(tconv.TconvError, match=said):
        tconv.convert(tmp_path, tmp_path / "x.npy", channels="keep")


def test_of_several_kinds_in_one_file_each_is_said_where_that_can_be(tmp_path: Path) -> None:
    inks(tmp_path / "a.jpg")
    Image.new("RGB", (4, 5)).save(tmp_path / "b.png")
    made = tconv.convert(tmp_path, tmp_path / "x.safetensors", channels="keep")
    assert made.notes == ()
    assert [order.word(spec) for spec in tconv.open(made.path).specs] == ["CMYK", None]
    (note,) = tconv.convert([tmp_path / "a.jpg", tmp_path / "b.png"], tmp_path / "x.npz", channels="keep").notes
    assert "that the channels of a.jpg are CMYK" in note


def test_labels_and_what_has_no_such_axis_are_no_pictures() -> None:
    def spec(name: str, *shape: int, **attrs: Any) -> Spec:
        return Spec(name, dtype("uint8"), shape, attrs=attrs)

    specs = [spec("x", 2, 5, 4, 3), spec("mask", 2, 5, 4), spec("labels", 3, label=True)]
    tensors: Any = [Tensor(one, None) for one in specs]  # type: ignore[arg-type]  # nothing is read
    assert [order.word(t.spec) for t in order.known(tensors, "BGR")] == ["BGR", None, None]


def test_a_data_set_tells_it_and_does_not_mix(folder: str) -> None:
    tconv.convert(folder, "a.npz", "scale | stack", channels="bgr")
    tconv.convert(folder, "b.npz", "scale | stack")
    assert tconv.loaders.torch.Dataset("a.npz").channels == "BGR"
    assert tconv.loaders.torch.Dataset("b.npz").channels == ""
    with pytest.raises(tconv.TconvError, match=r"b\.npz: its channels are RGB, as far as it says, and those of"):
        tconv.loaders.torch.Dataset(["a.npz", "b.npz"])
