"""device: an operation that changes nothing, on every tensor; and devices that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.ops import MoveTo, place
from tconv.pipeline import steps_from_text
from tconv.step import Step
from tconv.steps.device import Device
from tconv.tensor import Extra, Stream
from tests.memory import stream, tensor


def through(text: str, given: Stream) -> Stream:
    for step in steps_from_text([text]):
        given = step.apply(given)
    return given


def test_it_is_written_as_it_is_read() -> None:
    for text in ("device(cuda)", "device(cuda:1)", "device(auto)", "device(cpu)", "device(mps)"):
        (step,) = steps_from_text([text])
        assert str(step) == text
    assert steps_from_text(["device(where=cuda:3)"]) == [Device("cuda:3")]


@pytest.mark.parametrize("text", ["device(gpu)", "device(cuda:)", "device", "device(1)", "device(cuda, 1)"])
def test_what_is_no_device(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([text])
    assert caught.value.remedy


def test_every_tensor_moves_and_none_changes() -> None:
    pytest.importorskip("torch")
    given = stream(tensor(np.arange(3), "i"), tensor(np.ones((2, 2), np.float32), "f"))
    made = through("device(torch)", given)
    assert [t.spec for t in made.tensors] == [t.spec for t in given.tensors]
    assert [t.ops for t in made.tensors] == [(MoveTo(device="torch", step="device(torch)"),)] * 2
    assert evaluate(made.tensors[0])[0].tolist() == [0, 1, 2]


def test_who_never_left_the_cpu_need_not_go_back() -> None:
    assert through("device(cpu)", stream(tensor(np.ones(2)))).tensors[0].ops == ()
    back = through("device(torch) | cast(float32) | device(cpu)", stream(tensor(np.ones(2)))).tensors[0]
    move = place(back.ops)
    assert move is not None
    assert move.device == "cpu"


def test_a_stack_goes_on_where_its_parts_are() -> None:
    pytest.importorskip("torch")
    parts = stream(*(tensor(np.full((2, 3), n, np.float32), f"{n}") for n in range(3)))
    (made,) = through("device(torch) | cast(float16) | stack | permute(1, 0, 2) | cast(float32)", parts).tensors
    move = place(made.ops)
    assert move is not None
    assert move.device == "torch"
    np.testing.assert_array_equal(evaluate(made)[0], np.stack([np.full((2, 3), n) for n in range(3)], 1))


def test_a_quantization_that_touches_nothing_is_still_refused() -> None:
    pytest.importorskip("torch")
    with pytest.raises(TconvError, match="touches no tensor"):
        through("device(torch) | quantize(int8)", Stream((tensor(np.ones(2)),), Extra("weights")))


def test_rules_have_devices_of_their_own() -> None:
    pytest.importorskip("torch")
    given = stream(tensor(np.ones(2), "a"), tensor(np.ones(2), "b"))
    a, b = through("match('a': device(torch) | cast(float16), '*': cast(float16))", given).tensors
    assert place(a.ops) is not None
    assert place(b.ops) is None
    (step,) = steps_from_text(["match('a': device(torch) | cast(float16))"])
    assert [one.name for one in step.flat()] == ["device", "cast"]
    assert isinstance(step, Step)
