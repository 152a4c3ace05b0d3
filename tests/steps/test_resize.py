"""resize: sizes, layouts and refusals; that values are Pillow's is in tests/steps/test_resample.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tconv.errors import TconvError, TconvErrors, UsageError
from tconv.ops import Whole
from tconv.pipeline import steps_from_text
from tconv.steps.aspect import contained, covering
from tconv.steps.resize import Resize
from tconv.tensor import Tensor
from tests.memory import rearranged, stream, tensor

RNG = np.random.default_rng(5)
PICTURE = RNG.integers(0, 256, (9, 14, 3), dtype=np.uint8)


def resized(given: Tensor, step: Resize) -> Tensor:
    (made,) = step.apply(stream(given)).tensors
    return made


@pytest.mark.parametrize(
    ("size", "height", "width", "want"),
    [  # what torchvision.transforms.functional._compute_resized_output_size gives: int(size * long / short)
        (224, 375, 500, (224, 298)),
        (224, 500, 375, (298, 224)),
        (256, 333, 500, (256, 384)),
        (224, 225, 227, (224, 225)),
        (7, 3, 10, (7, 23)),
        (224, 1, 3, (224, 672)),
        (4, 3, 3, (4, 4)),
        ("256x192", 10, 20, (256, 192)),
        ("1x1", 10, 20, (1, 1)),
    ],
)
def test_sizes_are_torchvisions(size: int | str, height: int, width: int, want: tuple[int, int]) -> None:
    made = resized(tensor(np.zeros((height, width, 3), np.uint8), axes="HWC", known=(0, 255)), Resize(size))
    assert made.spec.shape == (*want, 3)
    assert (made.spec.axes, made.spec.range, made.spec.dtype.name) == ("HWC", (0, 255), "uint8")


@pytest.mark.parametrize(
    ("step", "height", "width", "want"),
    [
        # torchvision's Resize(size=None, max_size=640): int(640 * short / long)
        (Resize(640, aspect="contain"), 480, 640, (480, 640)),
        (Resize(640, aspect="contain"), 375, 500, (480, 640)),
        (Resize(640, aspect="contain"), 1080, 1920, (360, 640)),
        (Resize(640, aspect="contain"), 1920, 1080, (640, 360)),
        (Resize(640, aspect="contain"), 333, 500, (426, 640)),  # 426.24
        (Resize(640, aspect="contain"), 3, 5000, (1, 640)),  # 0.384: no side is 0
        (Resize(7, aspect="contain"), 5, 5, (7, 7)),
        (Resize("480x640", aspect="contain"), 1000, 1000, (480, 480)),
        (Resize("480x640", aspect="contain"), 100, 200, (320, 640)),
        (Resize("480x640", aspect="cover"), 1000, 1000, (640, 640)),
        (Resize("480x640", aspect="cover"), 100, 200, (480, 960)),
        (Resize("480x640", aspect="cover"), 300, 400, (480, 640)),
        (Resize(224, aspect="cover"), 375, 500, (224, 298)),
        # torchvision's Resize(800, max_size=1333), which detectors are trained with
        (Resize(800, max_size=1333), 480, 640, (800, 1066)),
        (Resize(800, max_size=1333), 1080, 1920, (749, 1333)),  # 800x1422, so 1333 * 800 / 1422 = 749.9
        (Resize(800, max_size=1333), 1920, 1080, (1333, 749)),
        (Resize(8, max_size=9), 1, 1000, (1, 9)),
    ],
)
def test_sizes_that_keep_the_aspect(step: Resize, height: int, width: int, want: tuple[int, int]) -> None:
    made = resized(tensor(np.zeros((height, width), np.float32), axes="HW"), step)
    assert made.spec.shape == want


@given(st.integers(1, 900), st.integers(1, 900), st.integers(1, 900), st.integers(1, 900))
def test_what_is_contained_fits_and_what_covers_covers(height: int, width: int, high: int, wide: int) -> None:
    inner, outer = contained(high, wide, height, width), covering(high, wide, height, width)
    assert 1 <= inner[0] <= high
    assert 1 <= inner[1] <= wide
    assert outer[0] >= high
    assert outer[1] >= wide
    assert inner[0] == high or inner[1] == wide
    assert outer[0] == high or outer[1] == wide


def test_the_size_that_it_has_is_no_operation() -> None:
    given = tensor(PICTURE, axes="HWC", known=(0, 255))
    assert resized(given, Resize(9)) is given
    assert resized(given, Resize("9x14", "lanczos")) is given


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_every_layout_holds_the_same_pictures(method: str) -> None:
    step = Resize("5x6", method)
    batch = RNG.integers(0, 256, (2, 9, 14, 3), dtype=np.uint8)
    want = np.stack([np.asarray(Image.fromarray(x).resize((6, 5), Image.Resampling[method.upper()])) for x in batch])
    for axes, order in {"NHWC": (0, 1, 2, 3), "NCHW": (0, 3, 1, 2)}.items():
        made = resized(tensor(batch.transpose(order), axes=axes, known=(0, 255)), step)
        np.testing.assert_array_equal(rearranged(made), want.transpose(order))
        one = made.ops[0].below()
        assert isinstance(one, Whole)
        np.testing.assert_array_equal(one.apply(batch.transpose(order)[1]), want.transpose(order)[1])
    frames = resized(tensor(batch[np.newaxis], axes="NTHWC", known=(0, 255)), step)
    np.testing.assert_array_equal(rearranged(frames), want[np.newaxis])
    grey = resized(tensor(batch[..., 0].astype(np.float32), axes="NHW", known=(0, 255)), step)
    np.testing.assert_allclose(rearranged(grey), want[..., 0], atol=1)  # in 8 bits each direction is rounded


def test_one_picture_has_no_slices_but_a_plane_of_channels_has() -> None:
    (picture,) = resized(tensor(PICTURE, axes="HWC", known=(0, 255)), Resize(4)).ops
    assert picture.below() is None
    planes = resized(tensor(PICTURE.transpose(2, 0, 1), axes="CHW", known=(0, 255)), Resize(4))
    plane = planes.ops[0].below()
    assert isinstance(plane, Whole)
    np.testing.assert_array_equal(plane.apply(PICTURE[..., 1]), rearranged(planes)[1])


def test_opacity_weighs_the_colours_only_where_the_tensor_says_so() -> None:
    x = RNG.integers(0, 256, (9, 14, 4), dtype=np.uint8)
    plain = tensor(x, axes="HWC", known=(0, 255))
    with_alpha = replace(plain, spec=replace(plain.spec, attrs={"alpha": True}))
    pillow = Image.fromarray(x, "RGBA").resize((6, 5), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(rearranged(resized(with_alpha, Resize("5x6"))), np.asarray(pillow))
    got = rearranged(resized(plain, Resize("5x6")))
    for channel in range(4):
        grey = Image.fromarray(x[..., channel].copy()).resize((6, 5), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(got[..., channel], np.asarray(grey))


def test_opacity_has_to_be_the_last_axis() -> None:
    plain = tensor(np.zeros((4, 9, 14), np.uint8), axes="CHW", known=(0, 255))
    with pytest.raises(TconvError, match="CHW; resize before permute"):
        resized(replace(plain, spec=replace(plain.spec, attrs={"alpha": True})), Resize(4))


@pytest.mark.parametrize(
    ("x", "axes", "known", "remedy"),
    [
        (np.zeros((4, 5), np.bool_), "HW", (0, 1), "resize(3, method=nearest)"),
        (np.zeros((4, 5, 1), np.bool_), "HWC", None, "resize(3, method=nearest)"),
        (
            np.zeros((4, 5), np.uint8),
            "HW",
            (0, 255),
            "resize(3, method=nearest) for labels, cast(float32) before it for intensities",
        ),
        (
            np.zeros((4, 5), np.int64),
            "HW",
            None,
            "resize(3, method=nearest) for labels, cast(float32) before it for intensities",
        ),
        (np.zeros((2, 4, 5), np.uint16), "NHW", (0, 65535), "cast(float32) before it for intensities"),
        (np.zeros((4, 5, 1), np.int64), "HWC", (0, 255), "cast(float32) before it"),
        (np.zeros((4, 5, 3), np.uint64), "HWC", None, "cast(float32) before it"),
        (np.zeros((4, 5), np.complex64), "HW", None, "resize(3, method=nearest)"),
    ],
)
def test_what_has_no_mean_is_chosen_not_averaged(
    x: np.ndarray[Any, Any], axes: str, known: tuple[float, float] | None, remedy: str
) -> None:
    given = tensor(x, "mask.png", axes, known)
    with pytest.raises(TconvError) as caught:
        resized(given, Resize(3))
    error = caught.value
    assert remedy in error.remedy
    assert (error.file, error.tensor, error.step) == ("memory", "mask.png", "resize(3)")
    assert rearranged(resized(given, Resize(3, "nearest"))).dtype == x.dtype


@pytest.mark.parametrize(
    ("shape", "axes", "reason", "remedy"),
    [
        ((4, 5, 3), None, "which axes of (4, 5, 3)", "--input-layout HWC"),
        ((4, 5, 3), "WHC", "WHC", "permute(HWC)"),
        ((3,), "C", "C do not end in HW", "permute(HWC)"),
        ((0, 5, 3), "HWC", "no pixels", "--skip"),
        ((0, 4, 5, 3), "NHWC", "no pixels", "--skip"),
        ((4, 5, 0), "HWC", "no pixels", "--skip"),
        ((1, 5000), "HW", "1120000 pixels long", "resize(224x224)"),
    ],
)
def test_what_is_no_picture_is_refused(shape: tuple[int, ...], axes: str | None, reason: str, remedy: str) -> None:
    with pytest.raises(TconvError) as caught:
        resized(tensor(np.zeros(shape, np.float32), "x", axes), Resize(224))
    assert reason in caught.value.reason
    assert remedy in caught.value.remedy


def test_all_that_refuse_are_told_at_once() -> None:
    with pytest.raises(TconvErrors) as caught:
        Resize(3).apply(stream(tensor(PICTURE, "a"), tensor(PICTURE, "b", "HWC"), tensor(PICTURE, "c")))
    assert [p.tensor for p in caught.value.problems] == ["a", "c"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_the_scratch_that_is_promised_covers_what_numpy_takes(dtype: str, method: str) -> None:
    import tracemalloc

    given = tensor(np.zeros((300, 400, 3), dtype), axes="HWC", known=(0, 1))
    made = resized(given, Resize(200, method))
    (op,) = made.ops
    assert isinstance(op, Whole)
    x = np.zeros((300, 400, 3), dtype)
    op.apply(x)  # what is imported or cached on first use is not counted
    tracemalloc.start()
    op.apply(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= op.scratch(given.spec) + made.spec.nbytes + 100_000
    assert op.scratch(given.spec) <= 4 * (given.spec.size + made.spec.size) * 8


@pytest.mark.parametrize(
    "bad",
    [
        {"size": 0},
        {"size": -1},
        {"size": True},
        {"size": 224.0},
        {"size": None},
        {"size": ""},
        {"size": "224x"},
        {"size": "224,224"},
        {"size": "0x3"},
        {"size": 10**30},
        {"size": 3, "method": "area"},
        {"size": 3, "method": None},
        {"size": 3, "aspect": "inside"},
        {"size": "3x4", "max_size": 9},
        {"size": 3, "max_size": 9, "aspect": "contain"},
        {"size": 3, "max_size": 3},
        {"size": 3, "max_size": True},
        {"size": 3, "max_size": 10**9},
    ],
)
def test_bad_parameters_fail_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Resize(**bad)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("resize(224)", Resize(224)),
        ("resize('224')", Resize(224)),
        ("resize(224x192)", Resize("224x192")),
        ("resize('224 X 192')", Resize("224x192")),
        ("resize(size=224, method=bicubic)", Resize(224, "bicubic")),
        ("resize(8x9, lanczos)", Resize("8x9", "lanczos")),
        ("resize(8x9, aspect=cover)", Resize("8x9", aspect="cover")),
        ("resize(8, bicubic, contain)", Resize(8, "bicubic", "contain")),
        ("resize(800, max_size=1333)", Resize(800, max_size=1333)),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Resize) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]


@pytest.mark.parametrize("text", ["resize", "resize(2, size=3)", "resize(2, antialias=false)", "resize([2, 3])"])
def test_text_that_does_not_fit_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        steps_from_text([text])
