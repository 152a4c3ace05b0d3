"""crop: the window's place and size, on every layout, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError, UsageError
from tconv.ops import Whole
from tconv.pipeline import steps_from_text
from tconv.steps.crop import Crop
from tests.memory import rearranged, stream, tensor


def cropped(x: np.ndarray[Any, Any], axes: str, step: Crop) -> np.ndarray[Any, Any]:
    (made,) = step.apply(stream(tensor(x, axes=axes, known=(0, 255)))).tensors
    assert (made.spec.axes, made.spec.range) == (axes, (0, 255))
    return rearranged(made)


@pytest.mark.parametrize(
    ("height", "width", "size", "top", "left"),
    [  # torchvision.transforms.functional.center_crop: int(round((h - th) / 2.0)), halves to even
        (256, 256, 224, 16, 16),
        (225, 227, 224, 0, 2),  # 0.5 and 1.5
        (229, 231, 224, 2, 4),  # 2.5 and 3.5
        (375, 500, 224, 76, 138),  # 75.5
        (10, 20, "4x6", 3, 7),
    ],
)
def test_the_centre_is_torchvisions(height: int, width: int, size: int | str, top: int, left: int) -> None:
    x = np.arange(height * width, dtype=np.int32).reshape(height, width)
    made = cropped(x, "HW", Crop(size))
    assert int(made[0, 0]) == top * width + left


def test_a_window_from_where_one_says() -> None:
    x = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    np.testing.assert_array_equal(cropped(x, "HWC", Crop("2x3", top=1, left=2)), x[1:3, 2:5])
    np.testing.assert_array_equal(cropped(x, "HWC", Crop(2, top=3, left=4)), x[3:, 4:])


@given(st.data())
def test_shapes_and_values_on_every_layout(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    high, wide = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    top, left = data.draw(st.integers(0, height - high)), data.draw(st.integers(0, width - wide))
    step = Crop(f"{high}x{wide}", top=top, left=left)
    nhwc = np.arange(2 * height * width * 3).reshape(2, height, width, 3)
    want = nhwc[:, top : top + high, left : left + wide]
    np.testing.assert_array_equal(cropped(nhwc, "NHWC", step), want)
    np.testing.assert_array_equal(cropped(nhwc[0], "HWC", step), want[0])
    np.testing.assert_array_equal(cropped(nhwc[0, ..., 0], "HW", step), want[0, ..., 0])
    np.testing.assert_array_equal(cropped(nhwc.transpose(0, 3, 1, 2), "NCHW", step), want.transpose(0, 3, 1, 2))


def test_a_slice_of_the_batch_is_cropped_alike() -> None:
    x = np.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5)
    (made,) = Crop(2).apply(stream(tensor(x, axes="NCHW"))).tensors
    below = made.ops[0].below()
    assert isinstance(below, Whole)
    np.testing.assert_array_equal(below.apply(x[1]), rearranged(made)[1])
    plane = below.below()
    assert isinstance(plane, Whole)
    np.testing.assert_array_equal(plane.apply(x[1, 2]), rearranged(made)[1, 2])
    assert plane.below() is None


def test_the_size_that_it_has_is_no_operation() -> None:
    whole = stream(tensor(np.zeros((5, 6)), axes="HW"))
    assert Crop("5x6").apply(whole).tensors[0] is whole.tensors[0]


@pytest.mark.parametrize(
    ("shape", "axes", "step", "reason", "remedy"),
    [
        ((5, 6), "HW", Crop(6), "6x6 is larger than the picture of 5x6", "resize(6) | crop(6)"),
        ((5, 6), "HW", Crop("2x7"), "2x7 is larger", "resize(7) | crop(2x7)"),
        ((5, 6), "HW", Crop(3, top=3, left=0), "top=3, left=0 reaches out", "top may be up to 2"),
        ((5, 6), None, Crop(3), "which axes", "--input-layout"),
        ((5, 6, 3), "WHC", Crop(3), "WHC", "permute(HWC)"),
        ((0, 6), "HW", Crop(1), "no pixels", "--skip"),
    ],
)
def test_refusals_name_the_place_and_the_way_out(
    shape: tuple[int, ...], axes: str | None, step: Crop, reason: str, remedy: str
) -> None:
    with pytest.raises(TconvError) as caught:
        step.apply(stream(tensor(np.zeros(shape), "cat.png", axes)))
    error = caught.value
    assert reason in error.reason
    assert remedy in error.remedy
    assert (error.file, error.tensor, error.step) == ("memory", "cat.png", str(step))


@pytest.mark.parametrize(
    "bad",
    [
        {"size": 0},
        {"size": -3},
        {"size": True},
        {"size": 2.5},
        {"size": "2x"},
        {"size": "2x3x4"},
        {"size": "0x3"},
        {"size": "1000001"},
        {"size": 3, "top": 1},
        {"size": 3, "left": 1},
        {"size": 3, "top": -1, "left": 0},
        {"size": 3, "top": 0, "left": True},
        {"size": 3, "top": 0, "left": 1.0},
    ],
)
def test_bad_parameters_fail_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Crop(**bad)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("crop(224)", Crop(224)),
        ("crop('224')", Crop(224)),
        ("crop(256X192)", Crop("256x192")),
        ("crop(0010x8)", Crop("10x8")),
        ("crop(4, top=1, left=2)", Crop(4, 1, 2)),
        ("crop(4x5, 1, 2)", Crop("4x5", 1, 2)),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Crop) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]
