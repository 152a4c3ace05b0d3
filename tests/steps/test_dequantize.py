"""dequantize: the inverse of quantize for every dtype, axis and group; what others' files may hold; what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
import torch

from tconv.errors import TconvError, UsageError
from tconv.evaluate import evaluate
from tconv.pipeline import steps_from_text
from tconv.quant import noted
from tconv.quant.grid import TARGETS
from tconv.steps.dequantize import Dequant
from tconv.steps.quantize import Quant
from tconv.tensor import Ref, Stream, Tensor
from tests.memory import tensor
from tests.quant.fitted import settled, values, weights
from tests.quant.onnx_linear import TYPES, linear

if TYPE_CHECKING:
    from tconv.ops import Array


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def written(made: Stream) -> Stream:
    """As it is read again: values, names, metadata, tree; nothing else."""
    found = values(made)
    tensors = []
    for t in made.tensors:
        read = tensor(found[t.spec.name], t.spec.name)
        tensors.append(Tensor(replace(read.spec, alias_of=t.spec.alias_of), read.source))
    return made.with_tensors(tensors)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("how", [{}, {"axis": None}, {"axis": 1}, {"axis": -1}, {"group": 32}])
def test_what_comes_back_is_no_farther_than_half_a_step(name: str, how: dict[str, int | None]) -> None:
    if name == "nf4" and "axis" in how:
        how = {}
    x = random(4, 6, 64)
    first = settled(Quant(name, **how), weights(tensor(x, "w"), tensor(random(3), "b")))  # type: ignore[arg-type]  # as the test says
    made = settled(Dequant(), written(first))
    assert [(t.spec.name, t.spec.dtype.name, t.spec.shape) for t in made.tensors] == [
        ("w", "float32", (4, 6, 64)), ("b", "float32", (3,)),
    ]  # fmt: skip
    assert noted.KEY not in made.extra.metadata
    back, scale = values(made)["w"], values(first)["w.scale"]
    if name == "nf4" or "group" in how:
        wide = np.repeat(scale.reshape(4, -1), x.size // scale.size, axis=1).reshape(x.shape)
    elif "axis" in how and how["axis"] is not None:
        wide = np.moveaxis(np.broadcast_to(scale, (*np.delete(x.shape, how["axis"]), scale.size)), -1, how["axis"])
    else:
        wide = np.broadcast_to(scale.reshape(-1, 1, 1), x.shape)
    steps = {"nf4": 0.152, "float8_e4m3fn": 16, "float8_e5m2": 4096, "float4_e2m1fn": 1}.get(name, 0.5)
    if name.startswith(("uint", "int")):
        steps += 0.5 * name.startswith("uint") + 0.01  # a zero point is rounded, too
    assert (np.abs(back - x) <= steps * wide * (1 + 1e-6)).all()


@pytest.mark.parametrize("name", sorted(TYPES))
def test_integers_and_float8_come_back_as_onnxruntime_has_them(name: str) -> None:
    x = random(5, 12)
    first = settled(Quant(name), weights(tensor(x, "w")))
    found = values(first)
    zero = found["w.zero_point"].astype(np.int64) if "w.zero_point" in found else None
    _, want = linear(x, found["w.scale"], zero, name, 0)
    np.testing.assert_array_equal(values(settled(Dequant(), written(first)))["w"], want)


@pytest.mark.parametrize(("name", "kind"), [("float16", torch.float16), ("bfloat16", torch.bfloat16)])
def test_half_is_rounded_once(name: str, kind: torch.dtype) -> None:
    first = written(settled(Quant("int8"), weights(tensor(random(5, 12), "w"))))
    found = values(first)
    want = torch.from_numpy(found["w"]).float() * torch.from_numpy(found["w.scale"])[:, None]
    made = values(settled(Dequant(name), first))["w"]
    assert made.dtype.name == name
    assert made.astype(np.float32).tolist() == want.to(kind).float().tolist()


@pytest.mark.parametrize(
    ("name", "q", "scale", "want"),
    [
        # Products that float32 rounds to the middle between two numbers of the target, on whose other side they are.
        ("float16", 127, "0x1.a3a74ep-7", "0x1.a04p+0"),  # 0x1.a05fff64p+0: below the middle of …04 and …08
        ("float16", -77, "0x1.3fb036p-7", "-0x1.80cp-1"),  # -0x1.80a000f8p-1: beyond that of …08 and …0c
        ("bfloat16", 127, "0x1.254a96p-6", "0x1.24p+1"),  # 0x1.230000d4p+1
        ("bfloat16", 113, "0x1.29e958p-6", "0x1.06p+1"),  # 0x1.06ffffb0p+1
    ],
)
def test_products_near_the_middle_are_rounded_once(name: str, q: int, scale: str, want: str) -> None:
    given = plain(np.full((2, 3), q, np.int8), np.array(float.fromhex(scale), np.float32))
    assert {float(x).hex() for x in values(settled(Dequant(name), given))["w"].reshape(-1)} == {
        float.fromhex(want).hex()
    }


def test_what_float32_does_not_hold_is_refused_or_clamped() -> None:
    given = plain(np.array([[127, 1], [-128, 0]], np.int8), np.array(3e38, np.float32))
    made = settled(Dequant(), given).tensors[0]
    _, account = evaluate(made)
    ((key, lost),) = account.refused()
    assert (lost.overflow, key.step) == (2, "dequantize")
    op: Any = made.ops[0]
    clamped, _ = evaluate(replace(made, ops=(replace(op, on_overflow="saturate"),)))
    top = float(np.finfo(np.float32).max)
    assert clamped.tolist() == [[top, float(np.float32(3e38))], [-top, 0]]


def test_in_one_chain_with_quantize() -> None:
    x = random(4, 8)
    made = weights(tensor(x, "w"))
    for step in (Quant("int8"), Dequant()):
        made = settled(step, made)
    apart = settled(Dequant(), written(settled(Quant("int8"), weights(tensor(x, "w")))))
    np.testing.assert_array_equal(values(made)["w"], values(apart)["w"])
    assert [t.spec.name for t in made.tensors] == ["w"]


def test_trees_and_aliases_are_as_before() -> None:
    base = tensor(random(4, 8), "m.w")
    tied = Tensor(replace(base.spec, name="m.v", alias_of="m.w"), base.source)
    tree = {"m": {"w": Ref("m.w"), "v": Ref("m.v")}, "epoch": 3}
    made = settled(Dequant(), written(settled(Quant("uint8"), weights(base, tied, tree=tree))))
    assert made.extra.tree == tree
    assert [(t.spec.name, t.spec.alias_of) for t in made.tensors] == [("m.w", None), ("m.v", "m.w")]


def plain(w: Array, scale: Array, zero: Array | None = None) -> Stream:
    """As others write it, without a word on how."""
    beside = [tensor(scale, "w.scale")] + ([] if zero is None else [tensor(zero, "w.zero_point")])
    return weights(tensor(w, "w"), *beside)


def test_without_metadata_the_only_axis_that_fits_is_taken() -> None:
    q = np.array([[2, 4, 6], [8, 10, 12]], np.int8)
    along_0 = plain(q, np.array([0.5, 2], np.float32))
    assert values(settled(Dequant(), along_0))["w"].tolist() == [[1, 2, 3], [16, 20, 24]]
    along_1 = plain(q, np.array([1, 0.5, 0.25], np.float16))
    assert values(settled(Dequant(), along_1))["w"].tolist() == [[2, 2, 1.5], [8, 5, 3]]
    for all_of_it in (np.array(0.5, np.float32), np.array([0.5], np.float64)):
        assert values(settled(Dequant(), plain(q, all_of_it)))["w"].tolist() == [[1, 2, 3], [4, 5, 6]]
    groups = plain(np.array([[2, 4, 6, 8]], np.int8), np.array([[1, 0.5]], np.float32))
    assert values(settled(Dequant(), groups))["w"].tolist() == [[2, 4, 3, 4]]
    affine = plain(q, np.array([0.5, 2], np.float32), np.array([2, 8], np.int8))
    assert values(settled(Dequant(), affine))["w"].tolist() == [[0, 1, 2], [0, 4, 8]]


def test_where_several_axes_fit_one_must_be_said() -> None:
    square = plain(np.ones((2, 2), np.int8), np.array([1, 2], np.float32))
    with pytest.raises(TconvError, match=r"w: .*2 scales fit any of the axes \[0, 1\] of \(2, 2\); say which"):
        settled(Dequant(), square)
    assert values(settled(Dequant(axis=1), square))["w"].tolist() == [[1, 2], [1, 2]]
    assert values(settled(Dequant(axis=-2), square))["w"].tolist() == [[1, 1], [2, 2]]
    told = replace(square.extra, metadata={noted.KEY: json.dumps({"w": {"to": "int8", "axis": 1}})})
    assert values(settled(Dequant(), replace(square, extra=told)))["w"].tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("shape", "scale", "words"),
    [
        ((2, 3), np.ones(4, np.float32), r"4 scales fit no axis of \(2, 3\)"),
        ((2, 4), np.ones((2, 3), np.float32), r"\(2, 3\) scales do not divide the rows of \(2, 4\) into groups"),
        ((2, 4), np.ones((4, 2), np.float32), r"\(4, 2\) scales do not divide the rows of \(2, 4\) into groups"),
        ((2, 4), np.ones((2, 0), np.float32), r"\(2, 0\) scales do not divide"),
        ((2, 2), np.ones((1, 1, 1), np.float32), r"1 scales fit no axis|scales fit"),
        ((2, 3), np.ones(2, np.int32), "its scale is int32, not a float"),
    ],
)
def test_scales_that_do_not_fit(shape: tuple[int, ...], scale: Array, words: str) -> None:
    with pytest.raises(TconvError, match=words):
        settled(Dequant(), plain(np.ones(shape, np.int8), scale))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
def test_a_scale_that_is_none_is_refused_by_name(value: float) -> None:
    with pytest.raises(TconvError, match=r"w\.scale: a scale is a number above 0"):
        settled(Dequant(), plain(np.ones((2, 3), np.int8), np.array([1, value], np.float32)))


@pytest.mark.parametrize("value", [1e39, 1e-60])
def test_a_scale_is_one_that_float32_holds(value: float) -> None:
    with pytest.raises(TconvError, match=r"w\.scale: a scale is a number above 0 that float32 holds"):
        settled(Dequant(), plain(np.ones((2, 3), np.int8), np.array([1, value])))


@pytest.mark.parametrize(
    ("scale", "want"),
    [
        (np.array([[0.5], [2]]), [[1, 2], [12, 16]]),
        (np.array([[1, 0.5]]), [[2, 2], [6, 4]]),
        (np.array([[0.5]]), [[1, 2], [3, 4]]),
    ],
)
def test_scales_may_keep_the_axes_of_the_tensor(scale: Array, want: list[list[float]]) -> None:
    q = np.array([[2, 4], [6, 8]], np.int8)  # a square, which the shape of the scales makes clear
    assert values(settled(Dequant(), plain(q, scale.astype(np.float32))))["w"].tolist() == want


@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 1, 1), (2, 2, 1)])
def test_scales_of_other_axes_than_the_tensor_has_fit_none(shape: tuple[int, ...]) -> None:
    with pytest.raises(TconvError, match=rf"{np.prod(shape)} scales fit no axis of \(2, 3\)"):
        settled(Dequant(), plain(np.ones((2, 3), np.int8), np.ones(shape, np.float32)))


@pytest.mark.parametrize(
    ("dtype", "zeros", "words"),
    [
        (np.int8, np.array([0, 128], np.int32), "zero points of int8 are from -128 to 127"),
        (np.int8, np.array([200, 0], np.uint8), "zero points of int8 are from -128 to 127"),
        (np.uint8, np.array([-1, 0], np.int8), "zero points of uint8 are from 0 to 255"),
        (np.uint8, np.array([0, 2**63], np.uint64), "zero points of uint8 are from 0 to 255"),
        (ml_dtypes.uint4, np.array([0, 16], np.uint8), "zero points of uint4 are from 0 to 15"),
        (ml_dtypes.float8_e4m3fn, np.array([0, 1], np.int8), "zero points of float8_e4m3fn are 0, and here are others"),
        (np.int8, np.array([0.5, 0], np.float32), "its zero points are float32, not integers"),
        (np.int8, np.array([True, False]), "its zero points are bool, not integers"),
    ],
)
def test_zero_points_are_numbers_of_the_dtype(dtype: type, zeros: Array, words: str) -> None:
    with pytest.raises(TconvError, match=words):
        settled(Dequant(), plain(np.ones((2, 3), dtype), np.ones(2, np.float32), zeros))


def test_zero_points_of_another_dtype_may_be_in_the_range_all_the_same() -> None:
    given = plain(np.array([[1], [2]], np.int8), np.ones(2, np.float32), np.array([-128, 127], np.int64))
    assert values(settled(Dequant(), given))["w"].tolist() == [[129], [-125]]


@pytest.mark.parametrize(
    ("told", "zero", "words"),
    [
        ({"to": "uint8"}, False, "it is int8, and uint8 by the metadata"),
        ({"to": "nf4"}, False, "it is int8, and nf4 by the metadata"),
        ({"to": "int8", "scheme": "affine"}, False, "its zero points are not there, of which the metadata"),
        ({"to": "int8", "scheme": "symmetric"}, True, "it has zero points, and none by the metadata"),
        ({"axis": 1}, False, r"2 scales do not fit axis 1 of \(2, 4\) \(the metadata"),
        ({"axis": 7}, False, r"2 scales do not fit axis 7 of \(2, 4\) \(the metadata"),
        ({"axis": -3}, False, "do not fit axis -3"),
    ],
)
def test_metadata_that_are_not_true_are_refused(told: object, zero: bool, words: str) -> None:
    given = plain(np.ones((2, 4), np.int8), np.ones(2, np.float32), np.ones(2, np.int8) if zero else None)
    given = replace(given, extra=replace(given.extra, metadata={noted.KEY: json.dumps({"w": told})}))
    with pytest.raises(TconvError, match=words):
        settled(Dequant(), given)


def test_groups_are_those_of_the_metadata() -> None:
    given = plain(np.ones((2, 4), np.int8), np.ones((2, 2), np.float32))
    given = replace(given, extra=replace(given.extra, metadata={noted.KEY: json.dumps({"w": {"group": 4}})}))
    with pytest.raises(TconvError, match="its groups are of 2, and of 4 by the metadata"):
        settled(Dequant(), given)


def test_what_the_metadata_tell_of_must_have_its_scales() -> None:
    made = written(settled(Quant("int8"), weights(tensor(random(4, 8), "a"), tensor(random(4, 8), "b"))))
    part = made.with_tensors([t for t in made.tensors if t.spec.name != "a.scale"])
    with pytest.raises(TconvError, match=r"a: .*it is quantized, as the metadata .* say, and there is no"):
        settled(Dequant(), part)
    gone = made.with_tensors([t for t in made.tensors if not t.spec.name.startswith("a")])
    assert list(values(settled(Dequant(), gone))) == ["b"]  # what is not there at all is not missed


@pytest.mark.parametrize("axis", [2, -3, 1])
def test_an_axis_along_which_no_scales_are(axis: int) -> None:
    with pytest.raises(TconvError, match=rf"2 scales do not fit axis {axis} of \(2, 3\)"):
        settled(Dequant(axis=axis), plain(np.ones((2, 3), np.int8), np.ones(2, np.float32)))


def test_zero_points_come_in_the_shape_of_the_scales() -> None:
    with pytest.raises(TconvError, match=r"\(2,\) scales and \(3,\) zero points do not go together"):
        settled(Dequant(), plain(np.ones((2, 3), np.int8), np.ones(2, np.float32), np.ones(3, np.int8)))


def test_what_is_no_dtype_of_quantized_values() -> None:
    with pytest.raises(TconvError, match="float32 is no dtype of quantized values"):
        settled(Dequant(), plain(np.ones((2, 3), np.float32), np.ones(2, np.float32)))
    with pytest.raises(TconvError, match="nothing in it is quantized"):
        settled(Dequant(), weights(tensor(random(2), "w")))


def test_uint4_of_which_nothing_is_told_may_be_nf4() -> None:
    first = settled(Quant("nf4"), weights(tensor(random(2, 64), "w")))
    silent = replace(written(first), extra=replace(first.extra, metadata={}))
    with pytest.raises(TconvError, match="may be nf4, and the file does not say so"):
        settled(Dequant(), silent)
    with_zeros = plain(np.ones((2, 3), ml_dtypes.uint4), np.ones(2, np.float32), np.ones(2, ml_dtypes.uint4))
    assert values(settled(Dequant(), with_zeros))["w"].tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("broken", ["{", "[]", '"w"', "[" * 100_000])
def test_metadata_that_make_no_sense(broken: str) -> None:
    given = plain(np.ones((2, 3), np.int8), np.ones(2, np.float32))
    given = replace(given, extra=replace(given.extra, metadata={noted.KEY: broken}))
    with pytest.raises(TconvError, match=r"metadata 'tconv\.quantized' are broken"):
        settled(Dequant(), given)


@pytest.mark.parametrize("told", [None, 3, {}, {"axis": "x"}, {"axis": True}, {"to": 5, "axis": [0]}])
def test_metadata_that_say_nothing_of_use_are_passed_over(told: object) -> None:
    given = plain(np.ones((2, 3), np.int8), np.array([1, 2], np.float32))
    given = replace(given, extra=replace(given.extra, metadata={noted.KEY: json.dumps({"w": told})}))
    assert values(settled(Dequant(), given))["w"].tolist() == [[1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("group", [None, 4])
def test_there_may_be_nothing_in_a_tensor(group: int | None) -> None:
    given = weights(tensor(np.empty((0, 8), np.float32), "a"), tensor(np.empty((3, 0), np.float32), "b"))
    made = settled(Dequant(), written(settled(Quant("uint8", group=group), given)))
    assert {name: x.shape for name, x in values(made).items()} == {"a": (0, 8), "b": (3, 0)}


@pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "uint8"])
def test_there_is_no_dequantizing_to_less(dtype: str) -> None:
    with pytest.raises(UsageError, match=f"no dequantizing to {dtype}"):
        Dequant(dtype)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Dequant(), "dequantize"),
        (Dequant("half"), "dequantize(float16)"),
        (Dequant("bf16", 1), "dequantize(bfloat16, axis=1)"),
    ],
)
def test_the_text_parses_back(step: Dequant, text: str) -> None:
    assert str(step) == text
    assert steps_from_text([text]) == [step]
