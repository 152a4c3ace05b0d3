"""scale: the exact formulas, the frameworks' formulas, and the ranges it refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.ops import CastTo, Permute, Promise
from tconv.pipeline import steps_from_text
from tconv.steps.clamp import Clamp
from tconv.steps.scale import FLOAT32, Scale
from tconv.steps.stack import Stack
from tconv.tensor import Extra, Range, Stream, Tensor
from tests.memory import stream, tensor

if TYPE_CHECKING:
    from tconv.ops import Array

X = np.array(
    [0, 0.0019, 0.00195, 0.00197, 0.00392, 0.25, 0.5, 0.9, 0.996, 0.998, 0.999, 0.9999, 1.0, 1.1, 2.0, -0.1], np.float32
)
BYTES = np.arange(256, dtype=np.uint8)
WORDS = np.arange(65536, dtype=np.uint16)


def stated(x: Array, known: Range, name: str = "x") -> Tensor:
    """Values of which the user says in which range they lie."""
    return tensor(x, name).then(Promise(range=known))


def scaled(x: Array, known: Range | None, step: Scale) -> Array:
    (made,) = step.apply(stream(tensor(x) if known is None else stated(x, known))).tensors
    values = evaluate(made)[0]
    assert (values.shape, values.dtype) == (made.spec.shape, made.spec.dtype.numpy)
    return values


def test_bytes_to_the_unit_interval() -> None:
    made = scaled(BYTES, (0, 255), Scale())
    assert made.dtype == np.float32
    assert made.tolist() == [float(np.float32(n / 255)) for n in range(256)]
    assert made[255] == 1


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_words_to_the_unit_interval_are_rounded_once(dtype: str) -> None:
    made = scaled(WORDS, (0, 65535), Scale(dtype))
    wanted = np.array([float(Fraction(n, 65535)) for n in range(65536)])
    np.testing.assert_array_equal(made, wanted.astype(dtype))
    assert made[65535] == 1


def test_bytes_to_words_are_times_257_and_come_back() -> None:
    words = scaled(BYTES, (0, 255), Scale("uint16"))
    assert words.tolist() == [257 * n for n in range(256)]
    np.testing.assert_array_equal(scaled(words, (0, 65535), Scale("uint8")), BYTES)


def test_words_to_bytes_are_rounded() -> None:
    made = scaled(WORDS, (0, 65535), Scale("uint8"))
    assert made.tolist() == [round(Fraction(n * 255, 65535)) for n in range(65536)]


def test_floats_to_bytes_round_half_to_even_and_clamp() -> None:
    made = scaled(X, (0, 1), Scale("uint8"))
    wanted = [min(max(round(Fraction(float(v)) * 255), 0), 255) for v in X]
    assert made.tolist() == wanted
    assert scaled(np.array([0.5, 1.5, 2.5, 253.5]), (0, 255), Scale("uint8")).tolist() == [0, 2, 2, 254]


@given(st.integers(-(2**20), 2**20))
def test_a_symmetric_range_onto_signed_integers(units: int) -> None:
    value = units / 2**20
    made = scaled(np.array([value], np.float32), (-1, 1), Scale("int8"))
    assert made.tolist() == [round((Fraction(value) + 1) * 255 / 2 - 128)]


def test_a_floating_input_keeps_its_dtype() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array([0, 51, 255], dtype)
        np.testing.assert_array_equal(scaled(x, (0, 255), Scale()), np.array([0, 0.2, 1], dtype))


def test_a_stated_unit_range_is_the_identity() -> None:
    x = np.concatenate([X, np.array([-0.0, np.nan, np.inf, 1e-45], np.float32)])
    np.testing.assert_array_equal(scaled(x, (0, 1), Scale()).view(np.uint32), x.view(np.uint32))


def test_a_mask_is_within_0_and_1() -> None:
    assert scaled(np.array([True, False]), None, Scale("uint8")).tolist() == [255, 0]
    assert scaled(np.array([True, False]), None, Scale()).tolist() == [1, 0]


def test_the_range_is_known_afterwards() -> None:
    for step, known in ((Scale(), (0, 1)), (Scale("uint16"), (0, 65535)), (Scale("int8"), (-128, 127))):
        (made,) = step.apply(stream(tensor(BYTES, axes="C", known=(0, 255)))).tensors
        assert (made.spec.range, made.spec.axes) == (known, "C")


# ------------------------------------------------------------------------------------------- the two conventions
def test_floats_to_bytes_like_torchvision_and_tensorflow() -> None:
    """The published formulas, in the arithmetic of the input: MAX + 1 - 1e-3 and MAX + 0.5, truncated."""
    clipped = np.clip(X, 0, 1)
    made = scaled(X, (0, 1), Scale("uint8", like="torchvision"))
    assert made.tolist() == np.minimum(np.trunc(clipped * np.float32(255.999)), 255).tolist()
    made = scaled(X, (0, 1), Scale("uint8", like="tensorflow"))
    assert made.tolist() == np.minimum(np.trunc(clipped * np.float32(255.5)), 255).tolist()


@pytest.mark.parametrize("like", ["torchvision", "tensorflow"])
def test_integers_are_shifted_like_the_frameworks_do(like: str) -> None:
    assert scaled(BYTES, (0, 255), Scale("uint16", like=like)).tolist() == [256 * n for n in range(256)]
    assert scaled(WORDS, (0, 65535), Scale("uint8", like=like)).tolist() == [n >> 8 for n in range(65536)]


def test_integers_to_floats_like_torchvision() -> None:
    torch = pytest.importorskip("torch", reason="the answers are torch's")
    made = scaled(BYTES, (0, 255), Scale(like="torchvision"))
    wanted = torch.from_numpy(BYTES).to(torch.float32).mul_(1.0 / 255).numpy()
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("source", ["uint8", "uint16", "float32", "float64"])
def test_like_tensorflow_is_tensorflow(source: str, target: str) -> None:
    tf = pytest.importorskip("tensorflow", reason="the answers are TensorFlow's")
    if source.startswith("float"):
        x, known = np.linspace(0, 1, 4099, dtype=source), (0.0, 1.0)
    else:
        top = np.iinfo(source).max
        x, known = np.arange(top + 1, dtype=source), (0.0, float(top))
    wanted = tf.image.convert_image_dtype(x, target, saturate=True).numpy()
    np.testing.assert_array_equal(scaled(x, known, Scale(target, like="tensorflow")), wanted)


@pytest.mark.parametrize(
    ("dtype", "known", "step", "text"),
    [
        (np.float32, (0, 255), Scale("uint8", "torchvision"), r"is for float32 values in \[0, 1\], not \[0, 255\]"),
        (np.uint8, (0, 100), Scale(like="tensorflow"), r"is for uint8 values in \[0, 255\]"),
        (np.float16, (0, 1), Scale("uint8", "torchvision"), "does not cover float16"),
        (np.uint16, (0, 65535), Scale("float16", "tensorflow"), "does not cover float16"),
        (np.float32, None, Scale("uint8", "torchvision"), "--range"),
    ],
)
def test_what_a_convention_does_not_define_is_refused(dtype: type, known: Range | None, step: Scale, text: str) -> None:
    with pytest.raises(TconvError, match=text):
        step.apply(stream(tensor(np.ones(2, dtype), known=known)))


# ------------------------------------------------------------------------------------------------------ refusals
def test_an_unknown_range_is_refused_for_every_tensor() -> None:
    given = stream(tensor(X, "a"), tensor(np.array([1], np.float64), "b"), stated(X, (0, 1), "c"))
    with pytest.raises(TconvError) as caught:
        Scale().apply(given)
    first, second = str(caught.value).splitlines()
    assert first.startswith("memory: a: scale: nobody knows the range of these float32 values")
    assert "--range" in first
    assert second.startswith("memory: b: ")


def test_scaling_twice_is_refused() -> None:
    once = Scale().apply(stream(tensor(BYTES, known=(0, 255))))
    with pytest.raises(TconvError, match="scaled already, by scale"):
        Scale().apply(once)
    identity = Scale().apply(stream(stated(X, (0, 1))))
    with pytest.raises(TconvError, match="scaled already"):
        Scale("uint8").apply(identity)
    with pytest.raises(TconvError, match="scaled already"):
        Scale("uint8").apply(Stack().apply(once))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("known", "step", "text"),
    [
        (
            (0, 1),
            Scale(),
            r"its values lie in \[0, 1\] already, says the file: it was scaled before; leave --normalize",
        ),
        ((0, 1), Scale("float16"), "it was scaled before"),
        ((0, 1), Scale(like="torchvision"), "it was scaled before"),
        (
            (-2.1, 2.64),
            Scale(),
            r"its values lie in \[-2.1, 2.64\], says the file: normalized data are not scaled again",
        ),
        ((-2.1, 2.64), Scale("uint8"), "normalized data"),
        ((-1, 1), Scale(), "normalized data"),
        ((0.5, 2), Scale(), "normalized data"),
    ],
)
def test_what_the_file_says_was_scaled_is_not_scaled_again(dtype: type, known: Range, step: Scale, text: str) -> None:
    marked = tensor(np.ones((2, 1), dtype), axes="HC", known=known)
    (stack,) = Stack().apply(stream(marked)).tensors
    for before in (marked, marked.then(Permute(perm=(1, 0))), marked.then(CastTo(dtype=FLOAT32)), stack):
        with pytest.raises(TconvError, match=text) as caught:
            step.apply(stream(before))
        assert "state --range LO,HI" in str(caught.value)
        if step.like is None:
            step.apply(stream(before.then(Promise(range=known))))  # the user says so


def test_what_the_file_says_may_still_be_pixels() -> None:
    half = tensor(np.array([0, 127.5, 255], np.float32), known=(0, 255))
    assert made_of(half, Scale()) == [0, 0.5, 1]
    assert made_of(tensor(np.array([0, 1], np.float32), known=(0, 1)), Scale("uint8")) == [0, 255]
    assert made_of(tensor(np.array([0, 1], np.uint8), known=(0, 1)), Scale()) == [0, 1]
    pixels = tensor(BYTES, known=(0, 255)).then(CastTo(dtype=FLOAT32))
    assert made_of(pixels, Scale()) == [float(np.float32(n / 255)) for n in range(256)]
    (clamped,) = Clamp(0, 1).apply(stream(half)).tensors
    assert made_of(clamped, Scale()) == [0, 1, 1]


def made_of(given: Tensor, step: Scale) -> list[float]:
    (made,) = step.apply(stream(given)).tensors
    values: list[float] = evaluate(made)[0].tolist()
    return values


def test_other_refusals() -> None:
    with pytest.raises(TconvError, match="single value"):
        Scale().apply(stream(tensor(X, known=(3, 3))))
    with pytest.raises(TconvError, match="complex"):
        Scale().apply(stream(tensor(np.array([1], np.complex64), known=(0, 1))))
    with pytest.raises(
        TconvError, match=r"scale: it would change integer fields, which may be labels: labels \(int64\)"
    ):
        Scale().apply(stream(tensor(X, known=(0, 1)), tensor(np.array([1], np.int64), "labels", known=(0, 9))))
    weights = Stream((tensor(BYTES, known=(0, 255)),), Extra("weights"))
    with pytest.raises(TconvError, match="touches no tensor"):
        Scale().apply(weights)


@pytest.mark.parametrize("dtype", ["bool", "complex64", "int64", "uint64", "int4", "uint9"])
def test_targets_that_cannot_be_scaled_to(dtype: str) -> None:
    with pytest.raises(UsageError, match=dtype):
        Scale(dtype)


def test_an_unknown_convention() -> None:
    with pytest.raises(UsageError, match=r"'keras'.*torchvision or tensorflow"):
        Scale("uint8", like="keras")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Scale(), "scale"),
        (Scale("u8"), "scale(uint8)"),
        (Scale("float16"), "scale(float16)"),
        (Scale("uint8", "torchvision"), "scale(uint8, like=torchvision)"),
        (Scale(like="tensorflow"), "scale(like=tensorflow)"),
    ],
)
def test_the_text_parses_back(step: Scale, text: str) -> None:
    assert str(step) == text
    assert steps_from_text([text]) == [step]


def test_nan_in_integers_is_not_silent() -> None:
    (made,) = Scale("uint8").apply(stream(tensor(np.array([0.5, np.nan], np.float32), known=(0, 1)))).tensors
    account = evaluate(made)[1]
    ((_, lost),) = account.refused()
    assert lost.nan == 1


def test_the_op_is_that_of_a_tensor_with_ops_before_it() -> None:
    first = tensor(BYTES, known=(0, 255))
    (made,) = Scale().apply(stream(first)).tensors
    assert isinstance(made, Tensor)
    assert made.source is first.source
    assert first.ops == ()


def test_ranges_near_the_end_of_float64() -> None:
    """Exact values: -1, 0 and 1 are far below the spacing of numbers that large."""
    given = tensor(np.array([-1.7e308, -1.0, 0.0, 1.0, 1.7e308])).then(Promise(range=(-1.7e308, 1.7e308)))
    (made,) = Scale().apply(stream(given)).tensors
    assert evaluate(made)[0].tolist() == [0, 0.5, 0.5, 0.5, 1]
    given = tensor(np.array([0, 0.125e308, 1e308])).then(Promise(range=(0, 1e308)))
    (made,) = Scale("uint8").apply(stream(given)).tensors
    assert evaluate(made)[0].tolist() == [0, 32, 255]
