"""pictures: which axes a shape can only mean, and the order that files have."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.pipeline import steps_from_text
from tconv.steps.pictures import Pictures
from tests.memory import rearranged, stream, tensor


@pytest.mark.parametrize(
    ("shape", "axes", "made", "into"),
    [
        ((4, 5), None, "HW", (4, 5)),
        ((3, 4, 5), None, "HWC", (4, 5, 3)),
        ((1, 4, 5), None, "HWC", (4, 5, 1)),
        ((4, 5, 3), None, "HWC", (4, 5, 3)),
        ((7, 3, 4, 5), None, "NHWC", (7, 4, 5, 3)),
        ((3, 3, 4, 5), None, "NHWC", (3, 4, 5, 3)),
        ((7, 4, 5, 1), None, "NHWC", (7, 4, 5, 1)),
        ((3, 4, 3), "CHW", "HWC", (4, 3, 3)),
        ((4, 5, 6, 2), "HWCN", "NHWC", (2, 4, 5, 6)),
        ((5, 4), "WH", "HW", (4, 5)),
        ((4, 5, 6), "NHW", "NHW", (4, 5, 6)),
    ],
)
def test_axes(shape: tuple[int, ...], axes: str | None, made: str, into: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    (one,) = Pictures().apply(stream(tensor(x, "x", axes))).tensors
    assert (one.spec.axes, one.spec.shape) == (made, into)
    assert rearranged(one).shape == into


@pytest.mark.parametrize(
    ("shape", "axes", "says"),
    [
        ((3, 4, 3), None, r"nobody said which axes of \(3, 4, 3\) are height, width and channels"),
        ((7, 4, 5), None, "nobody said"),
        ((7, 4, 5, 6), None, "nobody said"),
        ((7, 4, 5, 4), None, "nobody said"),
        ((7,), None, r"an array of the shape \(7,\) is no picture"),
        ((), None, "is no picture"),
        ((2, 7, 4, 5, 3), None, "is no picture"),
        ((4, 5), "DK", "its axes DK are not those of pictures"),
        ((4, 5, 2, 3), "HWDC", "not those of pictures"),
    ],
)
def test_what_may_be_anything_is_asked_about(shape: tuple[int, ...], axes: str | None, says: str) -> None:
    with pytest.raises(TconvError, match=says) as caught:
        Pictures().apply(stream(tensor(np.zeros(shape), "x", axes)))
    assert (caught.value.tensor, caught.value.step) == ("x", "pictures")
    assert "--" in caught.value.remedy


def test_text() -> None:
    assert steps_from_text([str(Pictures())]) == [Pictures()]
