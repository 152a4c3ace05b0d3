"""pad: frames against OpenCV's copyMakeBorder, masks by their sums, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.beside import with_tensors_beside
from tconv.errors import TconvError, TconvErrors, UsageError
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.steps.pad import Inside, Pad
from tconv.steps.stack import Stack
from tconv.tensor import Stream
from tests.memory import stream, tensor

RNG = np.random.default_rng(3)


def picture(height: int, width: int, channels: int = 3) -> np.ndarray[Any, Any]:
    return RNG.integers(1, 256, (height, width, channels), dtype=np.uint8)


def pictures(*arrays: np.ndarray[Any, Any], axes: str = "HWC") -> Stream:
    return stream(*(tensor(x, str(n), axes, (0, 255)) for n, x in enumerate(arrays)))


def values(given: Stream) -> dict[str, np.ndarray[Any, Any]]:
    """Of all tensors and what stands beside them, each as its spec foretells it."""
    found = {}
    for made in with_tensors_beside(given).tensors:
        x, lost = evaluate(made)
        assert not lost
        assert (x.shape, x.dtype) == (made.spec.shape, made.spec.dtype.numpy)
        found[made.spec.name] = x
    return found


def test_ragged_pictures_become_as_large_as_the_highest_and_the_widest() -> None:
    small, high, wide = picture(2, 3), picture(7, 4), picture(5, 9)
    got = values(Stack("all").apply(Pad(fill=114).apply(pictures(small, high, wide))))
    grey = (114, 114, 114)
    want = [
        cv2.copyMakeBorder(small, 0, 5, 0, 6, cv2.BORDER_CONSTANT, value=grey),
        cv2.copyMakeBorder(high, 0, 0, 0, 5, cv2.BORDER_CONSTANT, value=grey),
        cv2.copyMakeBorder(wide, 0, 2, 0, 0, cv2.BORDER_CONSTANT, value=grey),
    ]
    np.testing.assert_array_equal(got["all"], np.stack(want))
    mask = got["all.mask"]
    assert (mask.shape, mask.dtype) == ((3, 7, 9), np.bool_)
    assert mask.sum(axis=(1, 2)).tolist() == [2 * 3, 7 * 4, 5 * 9]
    assert mask[0, :2, :3].all()
    assert mask[1, :, :4].all()
    assert mask[2, :5].all()


@pytest.mark.parametrize(
    ("step", "want"),
    [
        (Pad(), (5, 9)),
        (Pad(multiple=4), (8, 12)),
        (Pad(multiple=1), (5, 9)),
        (Pad(multiple=32), (32, 32)),
        (Pad(9), (9, 9)),
        (Pad("5x10"), (5, 10)),
    ],
)
def test_sizes(step: Pad, want: tuple[int, int]) -> None:
    made = step.apply(pictures(picture(5, 3), picture(2, 9)))
    assert [t.spec.shape for t in made.tensors] == [(*want, 3), (*want, 3)]
    assert all(t.spec.range == (0, 255) and t.spec.axes == "HWC" for t in made.tensors)


def test_equal_pictures_are_left_alone_and_wholly_masked_in() -> None:
    before = pictures(picture(4, 5), picture(4, 5))
    after = Pad().apply(before)
    assert [t.ops for t in after.tensors] == [(), ()]
    assert values(after)["0.mask"].sum() == 20


@given(st.integers(1, 6), st.integers(1, 6))
def test_every_layout_is_padded_alike(height: int, width: int) -> None:
    nhwc = RNG.integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    want = np.pad(nhwc, ((0, 0), (0, 7 - height), (0, 8 - width), (0, 0)), constant_values=9)
    step = Pad("7x8", fill=9)
    for axes, order in {"NHWC": (0, 1, 2, 3), "NCHW": (0, 3, 1, 2)}.items():
        got = values(step.apply(pictures(nhwc.transpose(order), axes=axes)))
        np.testing.assert_array_equal(got["0"], want.transpose(order))
        assert got["0.mask"].shape == (2, 7, 8)
        assert got["0.mask"].sum() == 2 * height * width
    grey = values(step.apply(pictures(nhwc[0, ..., 0], axes="HW")))
    np.testing.assert_array_equal(grey["0"], want[0, ..., 0])
    plane = values(step.apply(pictures(nhwc[0].transpose(2, 0, 1), axes="CHW")))
    np.testing.assert_array_equal(plane["0"], want[0].transpose(2, 0, 1))
    assert plane["0.mask"].shape == (7, 8)


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "float16", "float32", "float64", "complex64"])
def test_every_dtype_is_kept(dtype: str) -> None:
    x = np.ones((1, 2), dtype)
    got = values(Pad("2x3", fill=1).apply(stream(tensor(x, "x", "HW"))))
    np.testing.assert_array_equal(got["x"], np.ones((2, 3), dtype))


def test_after_the_chain_a_stack_is_the_table_of_the_padded_bytes() -> None:
    a, b = picture(2, 3), picture(4, 2)
    normalize = "normalize(mean=[0.5, 0.25, 0.125], std=[0.5, 1, 2])"
    chain = steps_from_text([f"pad | scale | {normalize} | stack | permute(NCHW)"])
    made = pictures(a, b)
    for step in chain:
        made = step.apply(made)
    got = values(made)
    padded = np.stack([np.pad(a, ((0, 2), (0, 0), (0, 0))), np.pad(b, ((0, 0), (0, 1), (0, 0)))])
    want = ((padded / 255 - (0.5, 0.25, 0.125)) / (0.5, 1, 2)).astype(np.float32).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(got["stack"], want)
    assert got["stack.mask"].sum() == 6 + 8


def test_what_is_padded_after_normalize_is_the_mean() -> None:
    chain = steps_from_text(["scale | normalize(mean=[0.5], std=[0.5]) | pad"])
    made = pictures(picture(1, 1), picture(2, 2))
    for step in chain:
        made = step.apply(made)
    assert values(made)["0"][1, 1].tolist() == [0, 0, 0]


@given(st.data())
def test_any_part_of_a_mask_is_the_slice_of_the_whole(data: st.DataObject) -> None:
    high, wide = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    sizes = data.draw(
        st.lists(st.tuples(st.integers(0, high), st.integers(0, wide)), min_size=1, max_size=4), label="sizes"
    )
    whole = np.zeros((len(sizes), high, wide), np.bool_)
    for frame, (height, width) in zip(whole, sizes, strict=True):
        frame[:height, :width] = True
    source = Inside(Path("x"), whole.shape, np.array(sizes))
    lo = data.draw(st.integers(0, whole.size))
    hi = data.draw(st.integers(lo, whole.size))
    np.testing.assert_array_equal(source.read(lo, hi), whole.reshape(-1)[lo:hi])
    out = np.empty(hi - lo, np.bool_)
    assert source.read(lo, hi, out) is out
    np.testing.assert_array_equal(out, whole.reshape(-1)[lo:hi])


@pytest.mark.parametrize(
    ("x", "axes", "known", "step", "reason", "remedy"),
    [
        (
            np.zeros((5, 6)),
            "HW",
            None,
            Pad("4x9"),
            "5x6 does not fit into 4x9",
            "resize(4x9, aspect=contain) | pad(",
        ),
        (np.zeros((5, 6)), None, None, Pad(), "which axes", "--input-layout"),
        (np.zeros((5, 6), np.uint8), "HW", None, Pad(fill=0.5), "no fill=0.5 in uint8", "0 to 255"),
        (np.zeros((5, 6), np.uint8), "HW", None, Pad(fill=-1), "no fill=-1 in uint8", "0 to 255"),
        (np.zeros((5, 6), np.float16), "HW", None, Pad(fill=1e5), "no fill=100000 in float16", "65504"),
        (np.zeros((5, 6)), "HW", (0, 1), Pad(fill=114), "fill=114 is outside of [0, 1]", "at this place of the chain"),
    ],
)
def test_refusals_name_the_place_and_the_way_out(
    x: np.ndarray[Any, Any], axes: str | None, known: tuple[float, float] | None, step: Pad, reason: str, remedy: str
) -> None:
    with pytest.raises(TconvError) as caught:
        step.apply(stream(tensor(x, "cat.png", axes, known)))
    error = caught.value
    assert reason in error.reason
    assert remedy in error.remedy
    assert (error.file, error.tensor, error.step) == ("memory", "cat.png", str(step))


def test_all_that_do_not_fit_are_told() -> None:
    with pytest.raises(TconvErrors) as caught:
        Pad(4).apply(pictures(picture(5, 2), picture(4, 4), picture(1, 9)))
    assert [p.tensor for p in caught.value.problems] == ["0", "2"]


@pytest.mark.parametrize("text", ["resize(3)", "crop(1)", "pad", "letterbox(9)"])
@pytest.mark.parametrize("stacked", ["", " | stack"])
def test_nothing_changes_the_size_after_it(text: str, stacked: str) -> None:
    chain = steps_from_text([f"pad(8){stacked} | {text}"])
    made = pictures(picture(2, 3))
    for step in chain[:-1]:
        made = step.apply(made)
    with pytest.raises(TconvError, match=r"recorded by pad\(8\).*let pad be the last step that changes sizes"):
        chain[-1].apply(made)


@pytest.mark.parametrize(
    "bad",
    [
        {"size": 0},
        {"size": "2x"},
        {"size": True},
        {"multiple": 0},
        {"multiple": True},
        {"multiple": 2_000_000},
        {"size": 3, "multiple": 2},
        {"fill": float("inf")},
        {"fill": float("nan")},
        {"fill": True},
    ],
)
def test_bad_parameters_fail_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Pad(**bad)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("pad", Pad()),
        ("pad()", Pad()),
        ("pad(640)", Pad(640)),
        ("pad(480X640)", Pad("480x640")),
        ("pad(fill=114)", Pad(fill=114)),
        ("pad(multiple=32, fill=0.1)", Pad(multiple=32, fill=0.1)),
        ("pad(8, fill=-1e-300)", Pad(8, fill=-1e-300)),
    ],
)
def test_the_text_of_a_step_parses_back_to_it(text: str, step: Pad) -> None:
    assert steps_from_text([text]) == [step]
    assert steps_from_text([str(step)]) == [step]
