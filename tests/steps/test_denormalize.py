"""denormalize: the inverse of normalize against torchvision's formula, what lies outside, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.account import RangeKey
from tconv.dtypes import DTYPES
from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.steps.denormalize import Denormalize
from tconv.steps.normalize import NAMED, Normalize
from tconv.steps.scale import Scale
from tconv.tensor import Tensor
from tests.memory import stream, tensor

torch = pytest.importorskip("torch")
BYTES = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, axis=2)


def batch(stats: str, dtype: str) -> Any:
    """What torch makes of every byte in every channel: to_tensor, then (x - mean) / std."""
    mean, std = (torch.tensor(values) for values in NAMED[stats])
    return ((torch.from_numpy(BYTES).float() / 255 - mean) / std).to(getattr(torch, dtype))


def array(x: Any) -> Any:
    return x.view(torch.int16).numpy().view(DTYPES["bfloat16"].numpy) if x.dtype == torch.bfloat16 else x.numpy()


def pixels(given_: Tensor, step: Denormalize) -> tuple[Any, Any]:
    (made,) = Scale("uint8").apply(step.apply(stream(given_))).tensors
    return evaluate(made)


@pytest.mark.parametrize("stats", list(NAMED))
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_every_byte_comes_back(stats: str, dtype: str) -> None:
    """With 8 digits and the deviations of clip, one step is lost where the values are large."""
    made, lost = pixels(tensor(array(batch(stats, dtype)), "x", "HWC"), Denormalize(stats))
    allowed = 1 if (stats, dtype) == ("clip", "bfloat16") else 0
    assert np.abs(made.astype(int) - BYTES).max() == allowed
    assert not lost


def test_the_numbers_of_torch() -> None:
    x = torch.randn(3, 40, 50, generator=torch.Generator().manual_seed(0))
    mean, std = (torch.tensor(v, dtype=torch.float64)[:, None, None] for v in NAMED["imagenet"])
    (made,) = Denormalize("imagenet").apply(stream(tensor(x.numpy(), "x", "CHW"))).tensors
    assert (made.spec.dtype.name, made.spec.range) == ("float32", (0, 1))
    np.testing.assert_array_equal(evaluate(made)[0], (x.double() * std + mean).float().numpy())


def test_what_lies_outside_is_counted_and_clamped() -> None:
    half = 0.5 / 255
    x = np.array([-half * 0.99, -half * 1.01, -3, 1 + half * 0.99, 1 + half * 1.01, np.inf, 0.5], np.float32)
    made, lost = pixels(tensor(x), Denormalize("none"))
    assert made.tolist() == [0, 0, 0, 255, 255, 255, 128]
    found = lost.by_range[RangeKey(DTYPES["float32"], (0, 1), "denormalize('none')")]
    assert (found.overflow, found.infinite, found.count) == (3, 1, 7)


def test_ties_go_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, 253.5, 254.5]) / 255
    kept = [v * 255 for v in x.tolist()]
    assert kept == [0.5, 1.5, 2.5, 253.5, 254.5]
    assert pixels(tensor(x), Denormalize("none"))[0].tolist() == [0, 2, 2, 254, 254]


def test_nan_is_told() -> None:
    _, lost = pixels(tensor(np.array([0, np.nan], np.float32)), Denormalize("none"))
    assert [found.nan for _, found in lost.refused()] == [1]


@pytest.mark.parametrize(
    ("step", "onto"),
    [
        (Denormalize("none"), (0, 1)),
        (Denormalize("clip"), (0, 1)),
        (Denormalize(mean=0.5, std=0.5), (0, 1)),
        (Denormalize("123.675,116.28,103.53/58.395,57.12,57.375"), (0, 255)),
        (Denormalize(mean=0, std=255), (0, 255)),
    ],
)
def test_where_the_result_lies(step: Denormalize, onto: tuple[float, float]) -> None:
    (made,) = step.apply(stream(tensor(np.zeros((4, 5, 3), np.float32), "x", "HWC"))).tensors
    assert made.spec.range == onto


@given(
    mean=st.lists(st.floats(0, 200), min_size=3, max_size=3), std=st.lists(st.floats(0.25, 80), min_size=3, max_size=3)
)
def test_it_undoes_any_statistics(mean: list[float], std: list[float]) -> None:
    x = np.random.default_rng(0).uniform(0, 255, (6, 7, 3))
    there: Any = stream(tensor(x, "x", "HWC"))
    numbers: Any = {"mean": tuple(mean), "std": tuple(std)}
    for step in (Normalize(**numbers), Denormalize(**numbers)):
        there = step.apply(there)
    np.testing.assert_allclose(evaluate(there.tensors[0])[0], x, rtol=1e-12, atol=1e-11)


def test_bgr_takes_the_named_numbers_in_its_order() -> None:
    x = np.zeros((1, 1, 3), np.float64)
    bgr = tensor(x, "x", "HWC")
    bgr = replace(bgr, spec=replace(bgr.spec, attrs={"channels": "BGR"}))
    (made,) = Denormalize("imagenet").apply(stream(bgr)).tensors
    assert evaluate(made)[0].tolist() == [[[0.406, 0.456, 0.485]]]


def test_a_file_of_statistics(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"mean": [0.1, 0.2, 0.3], "std": [1, 1, 0.5]}))
    assert Denormalize(str(path)) == Denormalize(mean=(0.1, 0.2, 0.3), std=(1, 1, 0.5))


@pytest.mark.parametrize(
    ("x", "known", "stats", "says"),
    [
        (np.zeros((4, 5, 3), np.uint8), None, "imagenet", "what was normalized is floats, and this is uint8"),
        (np.zeros((4, 5, 1), np.float32), None, "imagenet", "it has 1 channels, and the statistics are for 3"),
        (np.zeros((4, 5, 3), np.float32), (0, 1), "imagenet", r"lie in \[0, 1\], says the file: they were not norm"),
        (np.zeros((4, 5, 3), np.float32), (-2.1, 2.6), "none", r"lie in \[-2.1, 2.6\], says the file: they were norm"),
    ],
)
def test_what_was_not_normalized_so_is_refused(x: Any, known: Any, stats: str, says: str) -> None:
    with pytest.raises(TconvError, match=says) as caught:
        Denormalize(stats).apply(stream(tensor(x, "x", "HWC", known)))
    assert caught.value.step.startswith("denormalize(")
    assert caught.value.remedy


def test_wrong_numbers_are_wrong_in_its_own_name() -> None:
    for text in ("denormalize(mean=0.5)", "denormalize(mean=0.5, std=0)", "denormalize(imagnet)"):
        with pytest.raises(UsageError) as caught:
            steps_from_text([text])
        assert "denormalize" in caught.value.step
        assert " normalize(" not in str(caught.value)


@pytest.mark.parametrize("text", ["denormalize(imagenet)", "denormalize('none')", "denormalize(mean=0.5, std=0.5)"])
def test_text(text: str) -> None:
    (step,) = steps_from_text([text])
    assert isinstance(step, Denormalize)
    assert str(step) == text


@pytest.mark.parametrize("text", ["denormalize", "denormalize()", "denormalize(none)"])
def test_without_statistics_it_says_how_none_is_written(text: str) -> None:
    with pytest.raises(UsageError, match=r"denormalize\('none'\) is for values in 0…1"):
        steps_from_text([text])
