"""normalize: the arithmetic, where the channels are, where the statistics come from, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.ops import Promise
from tconv.pipeline import steps_from_text
from tconv.step import Step
from tconv.steps.normalize import Normalize
from tconv.steps.permute import Permute
from tconv.steps.scale import Scale
from tconv.steps.stack import Stack
from tests.memory import stream, tensor

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.ops import Array

IMAGE = (np.arange(3 * 4 * 3).reshape(3, 4, 3) * 7 % 256).astype(np.uint8)  # as high as it has channels
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def through(x: Array, axes: str | None, *steps: Step, known: tuple[float, float] | None = None) -> Array:
    at = stream(tensor(x, axes=axes, known=known))
    for step in steps:
        at = step.apply(at)
    (made,) = at.tensors
    return evaluate(made)[0]


def once(x: Array, mean: tuple[float, ...], std: tuple[float, ...]) -> Array:
    """(x - mean) / std of each value in exact arithmetic, rounded to float64, then to float32; channels last."""
    flat = [
        float((Fraction(float(v)) - Fraction(mean[n % len(mean)])) / Fraction(std[n % len(std)]))
        for n, v in enumerate(x.reshape(-1))
    ]
    rounded: Array = np.array(flat).reshape(x.shape).astype(np.float32)
    return rounded


@pytest.mark.parametrize("stack", [False, True])
def test_channels_follow_the_axes_wherever_they_are(stack: bool) -> None:
    """The same picture, whichever of permute and normalize comes first."""
    wanted = once(IMAGE, MEAN, STD).transpose(2, 0, 1)
    step, first = Normalize(mean=MEAN, std=STD), [Stack()] if stack else []
    order = Permute("NCHW" if stack else "CHW")
    for steps in ([step, order], [order, step]):
        made = through(IMAGE, "HWC", *first, *steps, known=(0, 255))
        made = made[0] if stack else made
        assert (made.shape, made.dtype) == ((3, 3, 4), np.float32)
        np.testing.assert_array_max_ulp(made, wanted, 1)


def test_bytes_do_not_wrap() -> None:
    made = through(np.array([[0, 255]], np.uint8), None, Normalize(mean=128, std=1))
    assert made.tolist() == [[-128, 127]]


def test_scaled_then_imagenet() -> None:
    made = through(IMAGE, "HWC", Scale(), Normalize("imagenet"), known=(0, 255))
    wanted = ((IMAGE / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)).astype(np.float32)
    np.testing.assert_array_equal(made, wanted)


def test_the_published_statistics() -> None:
    pixel = np.ones((1, 1, 3), np.float32)
    imagenet = through(pixel, "HWC", Normalize("imagenet"), known=(0, 1)).reshape(-1)
    np.testing.assert_allclose(imagenet, [2.2489083, 2.4285715, 2.64], rtol=1e-6)
    clip = through(pixel, "HWC", Normalize("clip"), known=(0, 1)).reshape(-1)
    np.testing.assert_allclose(clip, [1.9303361, 2.0748837, 2.1458981], rtol=1e-6)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), st.floats(-100, 100), st.floats(1e-3, 100))
def test_one_number_for_all_is_rounded_once(numbers: list[float], mean: float, std: float) -> None:
    x = np.array(numbers, np.float32)
    wanted = ((x.astype(np.float64) - mean) / std).astype(np.float32)
    np.testing.assert_array_equal(through(x, None, Normalize(mean=mean, std=std)), wanted)


def test_dtypes_and_ranges() -> None:
    for dtype, result in (
        (np.uint8, "float32"),
        (np.int64, "float32"),
        (np.float16, "float16"),
        (np.float64, "float64"),
    ):
        (made,) = Normalize(mean=2, std=4).apply(stream(tensor(np.ones(3, dtype), known=(0, 10)))).tensors
        assert (made.spec.dtype.name, made.spec.range) == (result, (-0.5, 2))
    (made,) = Normalize(mean=(0, 1), std=(1, 2)).apply(stream(tensor(np.ones((2, 5)), axes="CW", known=(0, 4)))).tensors
    assert made.spec.range == (-0.5, 4)
    (made,) = Normalize(mean=0, std=1).apply(stream(tensor(np.ones(3)))).tensors
    assert made.spec.range is None


# ----------------------------------------------------------------------------------------------- what is refused
def test_named_statistics_want_values_in_0_1() -> None:
    for known, text in (((0, 255), r"in \[0, 255\]"), (None, "not known"), ((-1, 1), r"in \[-1, 1\]")):
        with pytest.raises(TconvError, match=text) as caught:
            Normalize("imagenet").apply(stream(tensor(IMAGE, axes="HWC", known=known)))
        assert "--normalize" in str(caught.value)
        assert "--range" in str(caught.value)


def test_twice_is_refused_for_named_statistics() -> None:
    with pytest.raises(TconvError, match="for values in"):
        through(IMAGE, "HWC", Scale(), Normalize("clip"), Normalize("clip"), known=(0, 255))


@pytest.mark.parametrize(
    ("shape", "axes", "text"),
    [
        ((3, 4, 3), None, r"which axis of \(3, 4, 3\).*--input-layout"),
        ((3, 4), "HW", "HW have no channels"),
        ((3, 4, 4), "HWC", "4 channels, and the statistics are for 3"),
        ((3, 4, 1), "HWC", "1 channels, and the statistics are for 3"),
    ],
)
def test_channels_that_do_not_fit(shape: tuple[int, ...], axes: str | None, text: str) -> None:
    with pytest.raises(TconvError, match=text):
        Normalize(mean=MEAN, std=STD).apply(stream(tensor(np.ones(shape), axes=axes)))


def test_named_statistics_follow_the_order_of_the_channels() -> None:
    """(x - mean) / std of blue, green, red; computed by hand for x = 0.5."""
    given = tensor(np.full((1, 1, 3), 0.5, np.float32), axes="HWC", known=(0, 1))
    given = replace(given, spec=replace(given.spec, attrs={"channels": "BGR"}))
    (made,) = Normalize("imagenet").apply(stream(given)).tensors
    wanted = [(0.5 - 0.406) / 0.225, (0.5 - 0.456) / 0.224, (0.5 - 0.485) / 0.229]
    np.testing.assert_allclose(evaluate(made)[0].ravel(), wanted, rtol=1e-6)


def test_complex_values_and_integer_fields_are_refused() -> None:
    with pytest.raises(TconvError, match="complex"):
        Normalize(mean=0, std=1).apply(stream(tensor(np.ones(2, np.complex64))))
    with pytest.raises(TconvError, match=r"normalize\(.*: it would change integer fields.*: label \(int64\)"):
        Normalize(mean=0, std=1).apply(stream(tensor(np.ones(2)), tensor(np.ones(2, np.int64), "label")))


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.5, None, "missing: std"),
        (None, 0.5, "missing: mean"),
        (None, None, "missing: mean and std"),
        (0.5, 0, "std is 0"),
        (0.5, (0.1, -0.5), r"std is -0\.5"),
        ((0.5, 0.5), (0.1, 0.1, 0.1), "mean has 2 numbers, std has 3"),
        ((), (), "no numbers"),
        (float("nan"), 1, "no number"),
        (0, float("inf"), "no number"),
    ],
)
def test_bad_numbers_fail_at_construction(
    mean: float | tuple[float, ...] | None, std: float | tuple[float, ...] | None, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        Normalize(mean=mean, std=std)


# -------------------------------------------------------------------------------- where the statistics come from
def test_numbers_as_text() -> None:
    text = "0.485,0.456,0.406/0.229,0.224,0.225"
    assert Normalize(text) == Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    assert steps_from_text([f"normalize('{text}')"]) == [Normalize(text)]
    assert Normalize("0.5/2") == Normalize(mean=0.5, std=2)
    assert Normalize(mean=(1, 2, 3), std=2).numbers == ((1, 2, 3), (2, 2, 2))


def test_a_stats_file_stands_for_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"mean": [0.1, 0.2, 0.3], "std": [1, 2, 3], "count": 7}))
    assert Normalize(str(path)) == Normalize(mean=(0.1, 0.2, 0.3), std=(1, 2, 3))
    path.write_text('{"mean": 0.5, "std": 0.25}')
    assert Normalize(str(path)) == Normalize(mean=0.5, std=0.25)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1, 2]", "no mean and std"),
        ('{"mean": 1}', "no mean and std"),
        ('{"mean": "x", "std": 1}', "'x', which is no number"),
        ('{"mean": [true], "std": 1}', "no number"),
        ('{"mean": NaN, "std": 1}', "no number"),
        ('{"mean": 0, "std": 0}', "std is 0"),
        ('{"mean": 0, "std": 1, "range": [1, 0]}', r"its range is \[1, 0\]"),
        ('{"mean": 0, "std": 1, "range": "x"}', "its range is 'x'"),
        ('{"mean": 0, "std": 1, "range": ["a", 1]}', "'a', which is no number"),
        (" " * (1 << 20) + "{}", "larger than"),
    ],
)
def test_broken_stats_files_are_refused_by_name(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "stats.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=text):
        Normalize(str(path))


def test_a_file_of_other_bytes_and_none_at_all(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_bytes(b"\xff\xfe\0{")
    with pytest.raises(UsageError, match=r"stats\.json: .*no JSON"):
        Normalize(str(path))
    with pytest.raises(UsageError, match="is no file, so no stats file"):
        Normalize(str(tmp_path))
    with pytest.raises(UsageError, match="mean"):  # an integer that no float holds
        Normalize(mean=10**400, std=1)
    for name in ("imagnet", "x" * 5000, "a\0b", "0.5,x/0.1"):
        with pytest.raises(UsageError, match=r"neither imagenet nor clip|cannot be read"):
            Normalize(name)


def test_name_and_numbers_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="not both"):
        Normalize("imagenet", mean=0.5, std=0.5)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Normalize("imagenet"), "normalize(imagenet)"),
        (Normalize(mean=0.5, std=2), "normalize(mean=0.5, std=2)"),
        (Normalize(mean=(0.1, 1e-9), std=(2.5, 1e20)), "normalize(mean=[0.1, 1e-09], std=[2.5, 1e+20])"),
    ],
)
def test_the_text_parses_back(step: Normalize, text: str) -> None:
    assert str(step) == text
    assert steps_from_text([text]) == [step]


def test_what_the_file_says_was_normalized_is_not_normalized_again() -> None:
    marked = tensor(np.zeros((1, 1, 3), np.float32), axes="HWC", known=(-2.1, 2.64))
    with pytest.raises(TconvError, match=r"lie in \[-2.1, 2.64\], says the file: they were normalized before; leave"):
        Normalize("imagenet").apply(stream(marked))
    (made,) = Normalize("imagenet").apply(stream(marked.then(Promise(range=(0, 1))))).tensors
    np.testing.assert_allclose(evaluate(made)[0].ravel(), [-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225], rtol=1e-6)


@pytest.mark.parametrize(("dtype", "std"), [("float64", 1e-300), ("float32", 1e-300), ("float32", 1e-30)])
def test_what_no_number_is_large_enough_for_is_counted(dtype: str, std: float) -> None:
    (made,) = Normalize(mean=0, std=std).apply(stream(tensor(np.array([1e10, 0, -1e10, np.inf], dtype)))).tensors
    values, account = evaluate(made)
    (lost,) = account.by_cast.values()
    assert lost.overflow == 2
    assert lost.bad("error")
    assert values[1] == 0
    assert values[3] == np.inf
