"""cast: which tensors it touches, what it refuses from specs alone, what it writes of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.ops import CastTo
from tconv.pipeline import steps_from_text
from tconv.steps.cast import Cast
from tconv.steps.normalize import Normalize
from tconv.steps.scale import Scale
from tconv.tensor import Extra, Ref, Stream, Tensor
from tests.memory import ArraySource, stream, tensor


def weights(*tensors: Tensor, tree: object = None) -> Stream:
    return Stream(tensors, Extra("weights", tree))


def test_data_is_all_cast_and_rounded_once() -> None:
    x = tensor(np.array([1 + 2**-11 + 2**-40, 65504.0]), known=(0, 1e5))
    labels = tensor(np.array([3, 70000], np.int64), "labels")
    (made,) = Cast("half").apply(stream(x)).tensors
    assert made.ops == (CastTo(dtype=Cast("half").target, step="cast(float16)"),)
    assert (made.spec.dtype.name, made.spec.range) == ("float16", (0, 1e5))
    assert evaluate(made)[0].view(np.uint16).tolist() == [0x3C01, 0x7BFF]
    (made,) = Cast("int32").apply(stream(labels)).tensors
    assert evaluate(made)[0].tolist() == [3, 70000]


def test_of_weights_only_the_floating_ones() -> None:
    w = tensor(np.array([1 / 3, 2], np.float32), "w")
    double = tensor(np.array([0.1], np.float64), "d")
    steps = tensor(np.array(70000, np.int64), "bn.num_batches_tracked")
    mask = tensor(np.array([True, False]), "mask")
    made = Cast("float16").apply(weights(w, double, steps, mask)).tensors
    assert [t.spec.dtype.name for t in made] == ["float16", "float16", "int64", "bool"]
    assert made[2] is steps
    assert made[3] is mask


def test_what_has_the_dtype_is_the_same_object_and_counts_as_touched() -> None:
    x = tensor(np.array([1], np.float16))
    for given in (stream(x), weights(x)):
        (made,) = Cast("float16").apply(given).tensors
        assert made is x


def test_optimizer_state_keeps_its_dtype_and_is_noted() -> None:
    names = ["state_dict.w", "optimizer_states.0.state.0.exp_avg", "optimizer_states.0.state.0.exp_avg_sq"]
    tensors = [tensor(np.array([1], np.float32), name) for name in names]
    states = [{"state": {0: {"exp_avg": Ref(names[1]), "exp_avg_sq": Ref(names[2])}}}]
    tree = {"state_dict": {"w": Ref(names[0])}, "optimizer_states": states}
    made = Cast("half").apply(weights(*tensors, tree=tree))
    assert [t.spec.dtype.name for t in made.tensors] == ["float16", "float32", "float32"]
    (note,) = made.notes
    assert "optimizer" in note
    assert f"{names[1]} and 1 more" in note
    plain = Cast("half").apply(weights(*tensors))  # names in a flat file are just names
    assert [t.spec.dtype.name for t in plain.tensors] == ["float16"] * 3


def test_a_cast_that_touches_nothing_is_an_error_naming_the_dtypes() -> None:
    given = weights(tensor(np.array([1], np.int64), "a"), tensor(np.array([True]), "b"))
    with pytest.raises(TconvError, match="touches no tensor: the dtypes here are bool, int64"):
        Cast("half").apply(given)
    with pytest.raises(TconvError, match="there is no tensor"):
        Cast("half").apply(stream())


def test_complex_to_real_is_refused_by_name_and_complex_weights_stay() -> None:
    z, w = tensor(np.array([1 + 2j], np.complex64), "z"), tensor(np.array([1], np.float32), "w")
    with pytest.raises(TconvError, match=r"^memory: z: cast\(float16\): .*imaginary"):
        Cast("half").apply(stream(z, w))
    made = Cast("half").apply(weights(z, w))  # torch.nn.Module.half does the same
    assert [t.spec.dtype.name for t in made.tensors] == ["complex64", "float16"]
    assert made.notes == ("cast(float16): complex weights stay as they are (z)",)
    for given in (weights(z, w), stream(z, w)):
        made = Cast("complex128").apply(given)
        assert [t.spec.dtype.name for t in made.tensors] == ["complex128", "complex128"]


def test_float_weights_do_not_become_integers() -> None:
    given = weights(tensor(np.array([0.3], np.float32), "w"), tensor(np.array([1], np.int64), "n"))
    for target in ("int8", "uint8", "int64", "bool"):
        with pytest.raises(TconvError, match=r"w: .*float weights would be little else than 0"):
            Cast(target).apply(given)


@pytest.mark.parametrize("known", [(0, 1), (-1, 1), (-0.5, 0.25)])
def test_values_within_one_do_not_become_integers(known: tuple[float, float]) -> None:
    with pytest.raises(TconvError, match=r"scale\(uint8\)"):
        Cast("uint8").apply(stream(tensor(np.array([0.3], np.float32), known=known)))


@pytest.mark.parametrize(
    "target", ["int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_what_is_recommended_exists(target: str) -> None:
    given = stream(tensor(np.array([0, 0.25, 1], np.float32), known=(0, 1)))
    with pytest.raises(TconvError) as caught:
        Cast(target).apply(given)
    recommended = caught.value.remedy.partition(" ")[0] if "|" not in caught.value.remedy else None
    steps = steps_from_text([recommended or caught.value.remedy.partition(" maps")[0]])
    for step in steps:
        given = step.apply(given)
    assert given.tensors[0].spec.dtype.name == target


@pytest.mark.parametrize(
    ("keep", "policy", "text"),
    [
        (("b=float8_e4m3fn",), "inf", r"keep='b=float8_e4m3fn': float8_e4m3fn has no inf to overflow to; choose sat"),
        (("a", "*.x=int8"), "inf", r"keep='\*\.x=int8': int8 has no inf"),
        (("b=float4_e2m1fn",), "inf", "float4_e2m1fn has no inf"),
    ],
)
def test_an_exception_that_cannot_follow_the_policy_fails_at_construction(
    keep: tuple[str, ...], policy: str, text: str
) -> None:
    with pytest.raises(UsageError, match=text):
        Cast("float16", policy, keep)
    assert Cast("float16", "saturate", keep).keep == keep


def test_masks_and_wider_ranges_become_integers() -> None:
    mask = tensor(np.array([True, False]), known=(0, 1))
    (made,) = Cast("uint8").apply(stream(mask)).tensors
    assert evaluate(made)[0].tolist() == [1, 0]
    (made,) = Cast("uint8").apply(stream(tensor(np.array([200.7], np.float32), known=(0, 255)))).tensors
    assert evaluate(made)[0].tolist() == [200]
    (made,) = Cast("bool").apply(stream(tensor(np.array([0, 0.3], np.float32), known=(0, 1)))).tensors
    assert evaluate(made)[0].tolist() == [False, True]


def fields() -> Stream:
    return stream(
        tensor(np.array([0.5], np.float64), "x"),
        tensor(np.array([7], np.int64), "label"),
        tensor(np.array([9], np.uint8), "position"),
        tensor(np.array([True]), "mask"),
    )


def test_integer_fields_beside_floating_ones_are_refused_by_name() -> None:
    with pytest.raises(TconvError) as caught:
        Cast("float32").apply(fields())
    listed, remedy = str(caught.value).splitlines()
    assert "cast(float32): it would change integer fields" in listed
    assert listed.endswith(": label (int64), position (uint8), mask (bool)")
    assert "--fields '*'" in remedy


def test_labels_are_labels_beside_other_integers_too() -> None:
    """MNIST as an .npz: bytes for the pictures, bytes for the digits."""
    images, digits = tensor(np.array([[7]], np.uint8), "x_train"), tensor(np.array([7], np.uint8), "y_train")
    with pytest.raises(TconvError, match=r"x_train \(uint8\), y_train \(uint8\)"):
        Cast("float32").apply(stream(images, digits))
    pictures = [tensor(np.zeros((2, 2, 3), np.uint8), name, axes="HWC") for name in ("a.png", "b.png")]
    made = Cast("float32").apply(stream(*pictures))
    assert [t.spec.dtype.name for t in made.tensors] == ["float32", "float32"]


def test_a_field_that_an_earlier_step_made_floats_is_still_meant() -> None:
    given = stream(tensor(np.array([255], np.uint8), "x", known=(0, 255)), tensor(np.array([7], np.int64), "y"))
    given = replace(given, extra=replace(given.extra, fields="x"))
    made = Cast("half").apply(Normalize(mean=0.5, std=0.5).apply(Scale().apply(given)))
    assert [t.spec.dtype.name for t in made.tensors] == ["float16", "int64"]


def test_a_pattern_that_means_no_field_is_refused() -> None:
    given = fields()
    given = replace(given, extra=replace(given.extra, fields="lable"))
    with pytest.raises(TconvError, match=r"--fields 'lable' matches none of the integer fields label, position, mask"):
        Cast("float32").apply(given)


@pytest.mark.parametrize(
    ("glob", "dtypes"),
    [
        ("*", ["float32", "float32", "float32", "float32"]),
        ("pos*", ["float32", "int64", "float32", "bool"]),
        ("", ["float32", "int64", "uint8", "bool"]),
    ],
)
def test_fields_says_which_integers_become_floats(glob: str, dtypes: list[str]) -> None:
    given = fields()
    made = Cast("float32").apply(replace(given, extra=replace(given.extra, fields=glob)))
    assert [t.spec.dtype.name for t in made.tensors] == dtypes


@pytest.mark.parametrize(
    ("target", "glob", "dtypes"),
    [
        ("int32", None, ["int32", "int32", "int32", "int32"]),
        ("int32", "", ["int32", "int64", "uint8", "bool"]),
        ("int32", "pos*", ["int32", "int64", "int32", "bool"]),
        ("bool", "", ["bool", "int64", "uint8", "bool"]),
        ("bool", "label", ["bool", "bool", "uint8", "bool"]),
        ("bool", "*", ["bool", "bool", "bool", "bool"]),
        ("complex64", "", ["complex64", "int64", "uint8", "bool"]),
    ],
)
def test_fields_says_it_for_every_target(target: str, glob: str | None, dtypes: list[str]) -> None:
    given = fields()
    made = Cast(target).apply(replace(given, extra=replace(given.extra, fields=glob)))
    assert [t.spec.dtype.name for t in made.tensors] == dtypes


def test_labels_do_not_become_true_without_asking() -> None:
    with pytest.raises(TconvError, match=r"integer fields, .*: label \(int64\), position \(uint8\)\n.*--fields '\*'"):
        Cast("bool").apply(fields())


def test_nobody_is_asked_about_what_stays() -> None:
    made = Cast("float32", keep=("label", "pos*", "mask")).apply(fields())
    assert [t.spec.dtype.name for t in made.tensors] == ["float32", "int64", "uint8", "bool"]
    with pytest.raises(TconvError, match=r"integer fields, .*: position \(uint8\), mask \(bool\)\n"):
        Cast("float32", keep=("label",)).apply(fields())
    given = fields()
    given = replace(given, tensors=given.tensors[1:], extra=replace(given.extra, fields=""))
    with pytest.raises(TconvError, match=r"touches no tensor: .*; --fields '\*' means integer fields too"):
        Cast("int32").apply(given)


def test_files_of_different_kinds_are_not_fields_of_one() -> None:
    a, b = tensor(np.array([0.5], np.float32), "a.tif"), tensor(np.array([5], np.uint8), "b.png")
    source = ArraySource(np.array([5], np.uint8), path=a.source.path / "b.png")
    made = Cast("half").apply(stream(a, Tensor(b.spec, source)))
    assert [t.spec.dtype.name for t in made.tensors] == ["float16", "float16"]


def test_all_refusals_are_told_together() -> None:
    given = stream(*(tensor(np.array([1j], np.complex64), name) for name in "ab"))
    with pytest.raises(TconvError) as caught:
        Cast("half").apply(given)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("dtype", "policy", "text"),
    [
        ("floot16", "error", "floot16.*float16"),
        ("float16", "wrap", "wrap.*saturate"),
        ("float8_e4m3fn", "inf", r"float8_e4m3fn has no inf"),
        ("uint8", "inf", "uint8 has no inf"),
    ],
)
def test_bad_parameters_fail_at_construction(dtype: str, policy: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        Cast(dtype, policy)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Cast("torch.half"), "cast(float16)"),
        (Cast("bf16", "saturate"), "cast(bfloat16, on_overflow=saturate)"),
    ],
)
def test_the_text_parses_back(step: Cast, text: str) -> None:
    assert str(step) == text
    assert steps_from_text([text]) == [step]


def test_a_bound_that_the_dtype_lacks_stays_one() -> None:
    white = tensor(np.array([[[32768]]], np.uint16), "x.png", axes="HWC", known=(0, 65535))
    half, wide, scale = steps_from_text(["cast(float16) | cast(float32) | scale"])
    made = half.apply(stream(white))
    assert made.tensors[0].spec.range == (0, 65535)
    values, _ = evaluate(scale.apply(wide.apply(made)).tensors[0])
    assert values.tolist() == [[[float(np.float32(32768 / 65535))]]]  # with 65504 for white it would be 0.50024
