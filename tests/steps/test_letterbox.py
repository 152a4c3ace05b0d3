"""letterbox: geometry by ultralytics' numbers, pixels by Pillow and OpenCV, boxes mapped back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tconv.errors import TconvError, UsageError
from tconv.pipeline import steps_from_text
from tconv.steps.letterbox import Letterbox, placed
from tconv.steps.stack import Stack
from tests.memory import stream, tensor
from tests.steps.test_pad import picture, pictures, values


@pytest.mark.parametrize(
    ("size", "height", "width", "ratio", "new", "top", "left"),
    [  # what LetterBox(new_shape, auto=False) of ultralytics computes for these
        ((640, 640), 1080, 1920, 1 / 3, (360, 640), 140, 0),
        ((640, 640), 375, 500, 1.28, (480, 640), 80, 0),
        ((640, 640), 500, 333, 1.28, (640, 426), 0, 107),
        ((640, 640), 427, 640, 1.0, (427, 640), 106, 0),  # 213 rows are left over: 106 above, 107 below
        ((384, 640), 720, 1280, 0.5, (360, 640), 12, 0),
        ((64, 64), 101, 100, 64 / 101, (64, 63), 0, 0),  # one column is left over: at the right
        ((640, 640), 640, 640, 1.0, (640, 640), 0, 0),
        ((640, 640), 5000, 1, 0.128, (640, 1), 0, 319),  # 0.128 columns, where OpenCV fails
    ],
)
def test_geometry(
    size: tuple[int, int], height: int, width: int, ratio: float, new: tuple[int, int], top: int, left: int
) -> None:
    assert placed(*size, height, width) == (ratio, *new, top, left)


@pytest.mark.parametrize(
    ("height", "width", "new", "border"),
    [  # rows × columns after the resize; above, below, left, right
        (9, 14, (9, 14), (2, 3, 0, 0)),
        (14, 9, (14, 9), (0, 0, 2, 3)),
        (5, 5, (14, 14), (0, 0, 0, 0)),
        (21, 28, (10, 14), (2, 2, 0, 0)),  # 10.5 rows, halves to even
        (60, 20, (14, 5), (0, 0, 4, 5)),
    ],
)
def test_pixels_are_pillows_and_the_border_is_opencvs(
    height: int, width: int, new: tuple[int, int], border: tuple[int, int, int, int]
) -> None:
    x = picture(height, width)
    inner = np.asarray(Image.fromarray(x).resize(new[::-1], Image.Resampling.BILINEAR))
    want = cv2.copyMakeBorder(inner, *border, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    np.testing.assert_array_equal(values(Letterbox(14).apply(pictures(x)))["0"], want)


def test_a_stack_has_a_row_of_numbers_for_each_picture() -> None:
    got = values(Stack("all").apply(Letterbox("6x8").apply(pictures(picture(12, 4), picture(3, 8)))))
    assert got["all"].shape == (2, 6, 8, 3)
    assert got["all.letterbox"].dtype == np.float32
    assert got["all.letterbox"].tolist() == [[0.5, 3, 0, 12, 4], [1, 0, 1, 3, 8]]


@pytest.mark.parametrize("axes", ["NHWC", "NCHW"])
def test_a_batch_is_framed_alike(axes: str) -> None:
    batch = np.stack([picture(4, 8), picture(4, 8)])
    turned = batch if axes == "NHWC" else batch.transpose(0, 3, 1, 2)
    got = values(Letterbox(8, fill=0).apply(pictures(turned, axes=axes)))
    want = np.pad(batch, ((0, 0), (2, 2), (0, 0), (0, 0)))
    np.testing.assert_array_equal(got["0"], want if axes == "NHWC" else want.transpose(0, 3, 1, 2))
    assert got["0.letterbox"].tolist() == [[1, 0, 2, 4, 8]] * 2


@given(st.integers(40, 400), st.integers(40, 400), st.data())
def test_a_box_is_mapped_back_to_where_it_was(height: int, width: int, data: st.DataObject) -> None:
    """A white box in a black picture, found in the letterbox, is where it was by the formula of the docstring."""
    x1, y1 = data.draw(st.integers(0, width - 20)), data.draw(st.integers(0, height - 20))
    x2, y2 = data.draw(st.integers(x1 + 20, width)), data.draw(st.integers(y1 + 20, height))
    x = np.zeros((height, width, 1), np.uint8)
    x[y1:y2, x1:x2] = 255
    got = values(Letterbox(160, fill=0).apply(pictures(x)))
    ratio, left, top, h, w = got["0.letterbox"].tolist()
    rows, columns = (np.flatnonzero((got["0"][..., 0] >= 128).any(axis=axis)) for axis in (1, 0))
    found = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
    back = [(found[0] - left) / ratio, (found[1] - top) / ratio, (found[2] - left) / ratio, (found[3] - top) / ratio]
    assert (h, w) == (height, width)
    # Half a pixel of the letterbox, and what rounding the smaller side to whole pixels moves.
    assert np.abs(np.subtract(back, [x1, y1, x2, y2])).max() <= 1.01 / ratio + 0.01


@pytest.mark.parametrize(
    ("dtype", "known", "grey"),
    [("uint8", (0, 255), 114), ("uint16", (0, 65535), 29298), ("float32", (0, 1), np.float32(114 / 255))],
)
def test_the_border_is_grey_in_the_range_of_the_picture(dtype: str, known: tuple[float, float], grey: float) -> None:
    x = np.zeros((2, 4, 1), dtype)
    got = values(Letterbox(4).apply(stream(tensor(x, "x", "HWC", known))))["x"][..., 0]
    assert got[0].tolist() == [grey] * 4
    assert not got[1:3].any()


def test_opacity_is_framed_with_the_colours() -> None:
    plain = tensor(picture(2, 4, 4), "x", "HWC", (0, 255))
    with_alpha = replace(plain, spec=replace(plain.spec, attrs={"alpha": True}))
    got = values(Letterbox(4, fill=0).apply(stream(with_alpha)))
    assert not got["x"][0].any()
    assert got["x"].shape == (4, 4, 4)


@pytest.mark.parametrize(
    ("x", "axes", "known", "step", "reason", "remedy"),
    [
        (np.zeros((5, 6, 3)), "HWC", None, Letterbox(4), "its values is unknown", "put letterbox before normalize"),
        (np.zeros((5, 6, 3)), "HWC", (-2, 2), Letterbox(4), "its values is [-2, 2]", "or fill=VALUE"),
        (np.zeros((5, 6, 3), np.uint8), "HWC", (0, 255), Letterbox(4, 256), "no fill=256 in uint8", "0 to 255"),
        (np.zeros((5, 6), np.uint8), "HW", (0, 255), Letterbox(4), "may be labels", "resize(4, method=nearest, as"),
        (np.zeros((5, 6), np.bool_), "HW", None, Letterbox(4), "a mask has no values between", "| pad(4)"),
    ],
)
def test_refusals_name_the_place_and_the_way_out(
    x: np.ndarray[Any, Any], axes: str, known: tuple[float, float] | None, step: Letterbox, reason: str, remedy: str
) -> None:
    with pytest.raises(TconvError) as caught:
        step.apply(stream(tensor(x, "cat.png", axes, known)))
    error = caught.value
    assert reason in error.reason
    assert remedy in error.remedy
    assert (error.file, error.tensor, error.step) == ("memory", "cat.png", str(step))


@pytest.mark.parametrize(
    "bad", [{"size": 0}, {"size": "4x"}, {"size": 4, "fill": float("inf")}, {"size": 4, "fill": False}]
)
def test_bad_parameters_fail_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Letterbox(**bad)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("letterbox(640)", Letterbox(640)),
        ("letterbox(384X640, fill=0)", Letterbox("384x640", 0)),
        ("letterbox(640, 0.5)", Letterbox(640, 0.5)),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Letterbox) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]
