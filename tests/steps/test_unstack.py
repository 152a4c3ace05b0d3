"""unstack: the inverse of stack, with what was to be done to the whole done to each slice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.evaluate import evaluate
from tconv.ops import CastTo, Permute
from tconv.pipeline import steps_from_text
from tconv.steps.stack import Stack
from tconv.steps.unstack import Unstack
from tconv.tensor import Extra, Ref, Stream, Tensor
from tests.memory import ArraySource, stream, tensor

X = np.random.default_rng(0).normal(size=(3, 4, 5, 2)).astype(np.float32)


def apart(*given: Tensor) -> tuple[Tensor, ...]:
    return Unstack().apply(stream(*given)).tensors


def refused(given: Tensor) -> str:
    with pytest.raises(TconvError) as caught:
        apart(given)
    return str(caught.value)


def test_slices_are_numbered_and_keep_what_is_known() -> None:
    whole = tensor(X, "batch", "NHWC", (-9, 9))
    whole = replace(whole, spec=replace(whole.spec, attrs={"channels": "BGR", "place": 3}))
    made = apart(whole)
    assert [t.spec.name for t in made] == ["batch-00000", "batch-00001", "batch-00002"]
    for n, one in enumerate(made):
        assert (one.spec.shape, one.spec.axes, one.spec.range) == ((4, 5, 2), "HWC", (-9, 9))
        assert one.spec.attrs == {"channels": "BGR"}
        np.testing.assert_array_equal(evaluate(one)[0], X[n])


def test_the_frames_of_a_file_are_numbered_before_its_suffix() -> None:
    assert apart(tensor(X, "cats/clip.gif"))[0].spec.name == "cats/clip-00000.gif"
    assert apart(tensor(X, "layer.0"))[0].spec.name == "layer.0-00000"


def test_a_stack_falls_into_its_parts() -> None:
    parts = [tensor(X[n], f"{n}.png", "HWC") for n in range(3)]
    (stack,) = Stack().apply(stream(*parts)).tensors
    half = CastTo(dtype=dtype("float16"))
    assert apart(stack.then(half)) == tuple(part.then(half) for part in parts)


def test_what_has_no_batch_stays() -> None:
    one = tensor(X[0], "a", "HWC")
    given_ = replace(stream(one), extra=Extra("data", {"a": Ref("a")}))
    assert Unstack().apply(given_) is given_
    mixed = Stream((one, tensor(X, "b", "NHWC")), Extra("data", {"a": Ref("a")}))
    made = Unstack().apply(mixed)
    assert [t.spec.name for t in made.tensors] == ["a", "b-00000", "b-00001", "b-00002"]
    assert made.extra.tree is None


def test_what_shared_its_bytes_stands_on_its_own() -> None:
    base, view = tensor(X, "base", "NHWC"), tensor(X, "view", "HWC")
    view = replace(view, spec=replace(view.spec, alias_of="base", axes="DHWC"))
    assert {t.spec.alias_of for t in apart(base, view)} == {None}


@pytest.mark.parametrize("seekable", [True, False])
@given(
    steps=st.lists(
        st.sampled_from(
            ["scale", "normalize(mean=[0.1, 0.2], std=[1, 2])", "permute(NCHW)", "permute(NHWC)", "resize(3x7)",
             "cast(float16)", "clamp(-1, 1)", "crop(3)"]
        ),
        max_size=4, unique=True,
    )
)  # fmt: skip
def test_it_makes_no_difference_what_was_done_before(seekable: bool, steps: list[str]) -> None:
    source = ArraySource(X, seekable=seekable)
    given_: Any = stream(replace(tensor(X, "x", "NHWC", (-9, 9)), source=source))
    try:
        for step in steps_from_text(steps):
            given_ = step.apply(given_)
        apart_ = Unstack().apply(given_).tensors
    except TconvError:
        return  # steps that do not fit each other
    whole = evaluate(given_.tensors[0])[0]
    for n, one in enumerate(apart_):
        np.testing.assert_array_equal(evaluate(one)[0], whole[n])


def test_what_cannot_be_taken_apart() -> None:
    assert "its axes are HWCN, and slices are along an N in front; permute first: permute(NHWC)" in refused(
        tensor(X, "x", "HWCN")
    )
    assert "it is a single value" in refused(tensor(np.float32(3).reshape(())))
    assert "it has 0 slices" in refused(tensor(np.zeros((0, 3)), "x"))
    assert "it has 1,000,001 slices" in refused(tensor(np.zeros((1_000_001, 0)), "x"))
    turned = tensor(X, "x", "HWCN").then(Permute(perm=(3, 0, 1, 2)))
    assert "memory: x: unstack: something that is done to it concerns more than one slice" in refused(turned)


def test_text() -> None:
    assert steps_from_text([str(Unstack())]) == [Unstack()]
