"""quantize: which tensors, which numbers beside them, onnxruntime's values bit for bit, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from tconv import twins
from tconv.dtypes import dtype
from tconv.errors import TconvError, UsageError
from tconv.pipeline import steps_from_text
from tconv.quant import noted
from tconv.steps.quantize import Quant
from tconv.tensor import Extra, Ref, Stream, Tensor
from tests.memory import stream, tensor
from tests.quant.fitted import settled, values, weights
from tests.quant.onnx_linear import linear

if TYPE_CHECKING:
    from tconv.ops import Array


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int4", "uint4", "float8_e4m3fn", "float8_e5m2"])
def test_weights_are_quantized_by_channel_as_onnxruntime_does_it(name: str) -> None:
    x = random(5, 3, 4)
    made = values(settled(Quant(name), weights(tensor(x, "w"))))
    scale, zero = made["w.scale"], made.get("w.zero_point")
    assert (scale.shape, scale.dtype.name) == ((5,), "float32")
    assert (zero is not None) == name.startswith("u")
    want, _ = linear(x, scale, None if zero is None else zero.astype(np.int64), name, 0)
    np.testing.assert_array_equal(made["w"].astype(np.float32), want)


def test_scales_by_hand() -> None:
    x = np.array([[127, -254], [0, 0], [-1, 0.5]], np.float32)
    made = values(settled(Quant("int8"), weights(tensor(x, "w"))))
    assert made["w.scale"].tolist() == [2, 1, float(np.float32(1) / np.float32(127))]
    assert made["w"].tolist() == [[64, -127], [0, 0], [-127, 64]]  # 63.5 to the even 64
    made = values(settled(Quant("uint8", axis=None), weights(tensor(x, "w"))))
    assert made["w.scale"].tolist() == float(np.float32(381 / 255))
    assert made["w.zero_point"].tolist() == 170


@pytest.mark.parametrize("source", ["float64", "float16", "bfloat16", "float8_e4m3fn"])
def test_every_float_is_taken_to_float32_first(source: str) -> None:
    x = random(4, 6).astype(dtype(source).numpy)
    made = values(settled(Quant("int8"), weights(tensor(x, "w"))))
    want, _ = linear(x.astype(np.float32), made["w.scale"], None, "int8", 0)
    np.testing.assert_array_equal(made["w"].astype(np.float32), want)
    top = np.abs(x.astype(np.float64)).max(axis=1)
    np.testing.assert_array_equal(made["w.scale"], (top / 127).astype(np.float32))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, None])
@pytest.mark.parametrize("scheme", ["symmetric", "affine"])
def test_numbers_are_along_the_axis_that_is_given(axis: int | None, scheme: str) -> None:
    x = random(2, 3, 4)
    made = values(settled(Quant("int8", scheme=scheme, axis=axis), weights(tensor(x, "w"))))
    assert made["w.scale"].shape == (() if axis is None else (x.shape[axis],))
    zero = made.get("w.zero_point")
    want, _ = linear(x, made["w.scale"], zero, "int8", axis or 0)
    np.testing.assert_array_equal(made["w"].astype(np.float32), want)


def test_groups_are_of_neighbours_in_a_row() -> None:
    x = random(3, 2, 8)
    made = values(settled(Quant("int4", group=4), weights(tensor(x, "w"))))
    assert made["w.scale"].shape == (3, 4)
    flat = x.reshape(12, 4)
    np.testing.assert_array_equal(made["w.scale"].reshape(-1), (np.abs(flat).max(axis=1) / 7).astype(np.float32))
    want, _ = linear(flat, made["w.scale"].reshape(-1), None, "int4", 0)
    np.testing.assert_array_equal(made["w"].astype(np.float32).reshape(12, 4), want)
    with pytest.raises(TconvError, match=r"w: .*rows of 16 elements are not made of groups of 5"):
        settled(Quant("int4", group=5), weights(tensor(x, "w")))


def test_nf4_has_groups_of_64() -> None:
    x = random(2, 128)
    made = values(settled(Quant("nf4"), weights(tensor(x, "w"))))
    assert (made["w"].dtype.name, made["w.scale"].shape) == ("uint4", (2, 2))
    np.testing.assert_array_equal(made["w.scale"], np.abs(x.reshape(2, 2, 64)).max(axis=2))


def test_of_weights_vectors_and_integers_stay() -> None:
    given = weights(
        tensor(random(2, 2), "w"),
        tensor(random(2), "b"),
        tensor(np.array(3.0, np.float32), "s"),
        tensor(np.array([[1]], np.int64), "n"),
    )
    made = settled(Quant("int8"), given)
    assert [t.spec.name for t in made.tensors] == ["w", "w.scale", "b", "s", "n"]
    assert [t.spec.dtype.name for t in made.tensors] == ["int8", "float32", "float32", "float32", "int64"]
    made = settled(Quant("int8", axis=0), given)  # an axis by number is meant for vectors too
    assert [t.spec.name for t in made.tensors] == ["w", "w.scale", "b", "b.scale", "s", "n"]


def test_what_is_kept_and_what_is_optimizer_state() -> None:
    names = ["state_dict.w", "state_dict.head.w", "optimizer_states.0.state.0.exp_avg"]
    states = [{"state": {0: {"exp_avg": Ref(names[2])}}}]
    tree = {"state_dict": {"w": Ref(names[0]), "head.w": Ref(names[1])}, "optimizer_states": states}
    given = weights(*(tensor(random(2, 2), name) for name in names), tree=tree)
    made = settled(Quant("int8", keep=("*.head.*",)), given)
    assert [t.spec.name for t in made.tensors] == [names[0], f"{names[0]}.scale", *names[1:]]
    assert any("optimizer" in note for note in made.notes)
    assert list(made.extra.tree["state_dict"]) == ["w", "w.scale", "head.w"]
    with pytest.raises(TconvError, match="touches no tensor"):
        settled(Quant("int8", keep=("*",)), given)


def test_the_tree_gets_the_numbers_right_after_the_tensor() -> None:
    tree = {"a": {0: Ref("a.0"), 1: Ref("a.1")}, "note": "kept"}
    given = weights(tensor(random(2, 2), "a.0"), tensor(random(2), "a.1"), tree=tree)
    made = settled(Quant("uint8"), given)
    assert made.extra.tree == {
        "a": {0: Ref("a.0"), "0.scale": Ref("a.0.scale"), "0.zero_point": Ref("a.0.zero_point"), 1: Ref("a.1")},
        "note": "kept",
    }
    in_a_list = weights(tensor(random(2, 2), "0"), tree=[Ref("0")])
    with pytest.raises(TconvError, match="stands in a list"):
        settled(Quant("int8"), in_a_list)


def test_aliases_stay_aliases_and_so_do_their_numbers() -> None:
    base = tensor(random(2, 2), "w")
    tied = Tensor(replace(base.spec, name="v", alias_of="w"), base.source)
    made = twins.settled(settled(Quant("uint8"), weights(base, tied)))
    assert {t.spec.name: t.spec.alias_of for t in made.tensors} == {
        "w": None, "w.scale": None, "w.zero_point": None,
        "v": "w", "v.scale": "w.scale", "v.zero_point": "w.zero_point",
    }  # fmt: skip
    found = values(made)
    for suffix in ("", ".scale", ".zero_point"):
        np.testing.assert_array_equal(found[f"v{suffix}"], found[f"w{suffix}"])


def test_the_metadata_tell_how() -> None:
    given = weights(tensor(random(2, 4), "w"), tensor(random(2, 4), "v"))
    given = replace(given, extra=replace(given.extra, metadata={"a": "b"}))
    made = settled(Quant("int4", group=2, keep=("v",)), given)
    assert made.extra.metadata["a"] == "b"
    how = {"to": "int4", "scheme": "symmetric", "axis": None, "group": 2}
    assert json.loads(made.extra.metadata[noted.KEY]) == {"w": how}


def test_what_is_quantized_already_is_let_alone() -> None:
    first = settled(Quant("float8_e4m3fn", keep=("v",)), weights(tensor(random(2, 4), "w"), tensor(random(2, 4), "v")))
    bare = first.with_tensors([tensor(values(first)[t.spec.name], t.spec.name) for t in first.tensors])
    again = settled(Quant("int8"), bare)
    assert {t.spec.name: t.spec.dtype.name for t in again.tensors} == {
        "w": "float8_e4m3fn", "w.scale": "float32", "v": "int8", "v.scale": "float32",
    }  # fmt: skip
    assert "what is quantized stays as it is (w and 1 more)" in again.notes[0]
    with pytest.raises(TconvError, match="quantized already: --step dequantize"):
        settled(Quant("int8"), bare.with_tensors(bare.tensors[:2]))


@pytest.mark.parametrize("group", [None, 4])
def test_there_may_be_nothing_in_a_tensor(group: int | None) -> None:
    given = weights(tensor(np.empty((0, 8), np.float32), "a"), tensor(np.empty((3, 0), np.float32), "b"))
    for calibrate in ("minmax", "mse"):
        made = values(settled(Quant("uint8", group=group, calibrate=calibrate, min_sqnr=20), given))
        assert (made["a"].shape, made["b"].shape) == ((0, 8), (3, 0))
        assert made["a.scale"].size == 0
        assert made["b.scale"].size == (0 if group else 3)


@pytest.mark.parametrize("name", ["int8", "uint8", "int4", "float8_e4m3fn"])
def test_a_channel_of_zeros_has_scale_1_and_stays_0(name: str) -> None:
    x = random(3, 4)
    x[1] = 0
    made = values(settled(Quant(name), weights(tensor(x, "w"))))
    assert made["w.scale"][1] == 1
    zero = made["w.zero_point"][1] if "w.zero_point" in made else 0
    assert (made["w"][1].astype(np.float32) == np.float32(zero)).all()


def test_affine_ranges_hold_0_so_that_it_is_exact() -> None:
    x = np.array([[5, 6, 7, 0], [-5, -6, -7, 0]], np.float32)
    made = values(settled(Quant("uint8"), weights(tensor(x, "w"))))
    assert made["w.zero_point"].tolist() == [0, 255]
    assert made["w"][:, 3].tolist() == [0, 255]
    assert made["w.scale"].tolist() == [float(np.float32(7 / 255))] * 2


def test_what_is_not_finite_is_refused_by_name() -> None:
    bad = random(2, 3)
    bad[0, 1] = np.nan
    worse = random(2, 3)
    worse[1] = [np.inf, -np.inf, 0]
    with pytest.raises(TconvError) as caught:
        settled(Quant("int8"), weights(tensor(bad, "a"), tensor(random(2, 2), "b"), tensor(worse, "c")))
    first, second = str(caught.value).splitlines()
    assert first.startswith("memory: a: 1 NaN of 6 values")
    assert second.startswith("memory: c: 2 inf of 6 values")
    settled(Quant("int8", keep=("a", "c")), weights(tensor(bad, "a"), tensor(random(2, 2), "b"), tensor(worse, "c")))


def test_what_float32_does_not_hold_has_no_scale() -> None:
    with pytest.raises(TconvError, match=r"big: .*beyond ±3.4e\+38, the range of float32"):
        settled(Quant("int8"), weights(tensor(np.array([[1e300, 1]]), "big")))
    x = np.array([[1e-300, -1e-300]])  # and what it takes for 0 becomes 0
    assert values(settled(Quant("int8"), weights(tensor(x, "tiny"))))["tiny"].tolist() == [[0, 0]]


def test_tensors_that_fall_short_become_float16() -> None:
    coarse = random(4, 64)
    coarse[:, 0] = 20
    given = weights(tensor(random(4, 64), "good"), tensor(coarse, "coarse"), tensor(random(4), "b"))
    made = settled(Quant("int4", min_sqnr=0), given)
    assert [t.spec.name for t in made.tensors] == ["good", "good.scale", "coarse", "coarse.scale", "b"]
    found = values(made)
    back = found["coarse"].astype(np.float32) * found["coarse.scale"][:, None]
    noise = np.square(back.astype(np.float64) - coarse).sum()
    sqnr = float(10 * np.log10(np.square(coarse, dtype=np.float64).sum() / noise))
    kept = settled(Quant("int4", min_sqnr=sqnr - 0.01), given)
    assert [t.spec.name for t in kept.tensors] == [t.spec.name for t in made.tensors]
    short = settled(Quant("int4", min_sqnr=sqnr + 0.01), given)
    assert {t.spec.name: t.spec.dtype.name for t in short.tensors} == {
        "good": "int4", "good.scale": "float32", "coarse": "float16", "b": "float32",
    }  # fmt: skip
    (note,) = short.notes
    assert note.endswith(f": coarse becomes float16: {sqnr:.1f} dB")
    np.testing.assert_array_equal(values(short)["coarse"], coarse.astype(np.float16))


def test_what_falls_short_may_become_another_float() -> None:
    x = random(4, 64)
    short = settled(Quant("int4", min_sqnr=99, otherwise="bf16"), weights(tensor(x, "w")))
    assert [t.spec.dtype.name for t in short.tensors] == ["bfloat16"]
    np.testing.assert_array_equal(values(short)["w"], x.astype(ml_dtypes.bfloat16))
    (note,) = short.notes
    assert ": w becomes bfloat16: " in note


@pytest.mark.parametrize("factor", [1e-9, 1e6])
def test_what_falls_short_stays_where_the_other_float_is_no_better(factor: float) -> None:
    """float16 has fewer digits of 1e-9 than int4 with a scale, and no room for a million."""
    x = random(4, 64) * np.float32(factor)
    short = settled(Quant("int4", min_sqnr=99), weights(tensor(x, "w"), tensor(random(4, 64), "v")))
    assert [(t.spec.name, t.spec.dtype.name) for t in short.tensors] == [("w", "float32"), ("v", "float16")]
    assert [": w stays as it is: " in short.notes[0], ": v becomes float16: " in short.notes[1]] == [True, True]
    np.testing.assert_array_equal(values(short)["w"], x)
    half = settled(Quant("int4", min_sqnr=99), weights(tensor(random(4, 64).astype(np.float16), "h")))
    assert [t.spec.dtype.name for t in half.tensors] == ["float16"]
    assert ": h stays as it is: " in half.notes[0]


def test_an_axis_is_one_of_every_tensor_but_vectors() -> None:
    given = weights(tensor(random(4, 6), "w"), tensor(random(4), "b"), tensor(np.array(1.5, np.float32), "s"))
    for axis in (-2, 0):
        made = settled(Quant("int8", axis=axis), given)
        names = ["w", "w.scale", "b", "b.scale", "s"] if axis == 0 else ["w", "w.scale", "b", "s"]
        assert [t.spec.name for t in made.tensors] == names
    for axis in (2, -3):
        with pytest.raises(TconvError, match=rf"w: .*no axis {axis}: its shape is \(4, 6\)"):
            settled(Quant("int8", axis=axis), given)


def test_pictures_share_one_scale() -> None:
    pictures = [tensor(random(2, 2, 3, seed=n) * 10**n, f"{n}.png", axes="HWC") for n in range(3)]
    made = values(settled(Quant("int8"), stream(*pictures)))
    scales = {made[f"{n}.png.scale"].item() for n in range(3)}
    top = max(np.abs(random(2, 2, 3, seed=n) * np.float32(10**n)).max() for n in range(3))
    assert scales == {float(np.float32(top) / np.float32(127))}


def test_pictures_share_one_scale_for_each_channel() -> None:
    pictures = [tensor(random(2, 2 + n, 3, seed=n) * 10**n, f"{n}.png", axes="HWC") for n in range(3)]
    made = values(settled(Quant("int8", axis=-1), stream(*pictures)))
    every = np.concatenate([random(2, 2 + n, 3, seed=n).reshape(-1, 3) * np.float32(10**n) for n in range(3)])
    for n in range(3):
        np.testing.assert_array_equal(made[f"{n}.png.scale"], np.abs(every).max(axis=0) / np.float32(127))
    grey = tensor(random(2, 2, 1), "g.png", axes="HWC")
    with pytest.raises(TconvError, match=r"g\.png: .*1 channels, and 0\.png has 3: they cannot share scales"):
        settled(Quant("int8", axis=-1), stream(*pictures, grey))


@pytest.mark.parametrize("how", [{"axis": 0}, {"group": 3}])
def test_scales_of_rows_and_groups_are_those_of_each_picture(how: dict[str, int]) -> None:
    pictures = [tensor(random(2 + n, 2, 3, seed=n), f"{n}.png", axes="HWC") for n in range(2)]
    made = values(settled(Quant("int8", **how), stream(*pictures)))  # type: ignore[arg-type]  # as the test says
    for n, given in enumerate(pictures):
        (alone,) = [values(settled(Quant("int8", **how), stream(given)))]  # type: ignore[arg-type]  # as above
        np.testing.assert_array_equal(made[f"{n}.png.scale"], alone[f"{n}.png.scale"])


def test_few_pictures_to_calibrate_on_are_told() -> None:
    pictures = [tensor(random(2, 2, 3, seed=n), f"{n}.png", axes="HWC") for n in range(3)]
    made = settled(Quant("uint8", calibrate="percentile"), stream(*pictures))
    assert made.notes == ("calibrated on 3 samples: ranges may be those of chance; 100 to 500 are usual",)
    batch = tensor(random(100, 2, 2, 3), "batch", axes="NHWC")
    assert settled(Quant("uint8", calibrate="percentile"), stream(batch)).notes == ()


def test_data_has_one_scale_and_integers_are_no_floats() -> None:
    x = random(3, 4)
    made = values(settled(Quant("int8"), stream(tensor(x, "x"))))
    assert made["x.scale"].shape == ()
    with pytest.raises(TconvError, match=r"x: .*int32 values are not quantized"):
        settled(Quant("int8"), stream(tensor(np.array([1], np.int32), "x")))


@pytest.mark.parametrize("percentile", [50.0, 99.0, 99.99])
def test_percentiles_are_numpys(percentile: float) -> None:
    x = random(40, 50)
    made = values(
        settled(Quant("int8", axis=None, calibrate="percentile", percentile=percentile), weights(tensor(x, "w")))
    )
    tail = (100 - percentile) / 2
    low, high = np.percentile(x.astype(np.float64), [tail, 100 - tail])
    np.testing.assert_allclose(made["w.scale"], max(-low, high) / 127, rtol=1e-6)
    assert int(np.abs(made["w"].astype(int)).max()) == 127  # what is cut off is clamped


@pytest.mark.parametrize(
    ("axis", "words"), [(3, r"no axis 3: its shape is \(2, 2\)"), (-3, r"no axis -3: its shape is \(2, 2\)")]
)
def test_an_axis_that_there_is_not(axis: int, words: str) -> None:
    with pytest.raises(TconvError, match=words):
        settled(Quant("int8", axis=axis), stream(tensor(random(2, 2), "x")))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"dtype": "int32"}, "no quantization to int32"),
        ({"dtype": "uint8", "scheme": "symmetric"}, "no symmetric scheme"),
        ({"dtype": "int8", "calibrate": "kl"}, "no calibration 'kl'"),
        ({"dtype": "int8", "calibrate": "percentile", "percentile": 0.0}, "percentile is 0"),
        ({"dtype": "int8", "percentile": 99.0}, "percentile is for calibrate=percentile, not minmax"),
        ({"dtype": "int8", "calibrate": "mse", "percentile": 99.0}, "percentile is for calibrate=percentile, not mse"),
        ({"dtype": "int8", "otherwise": "bf16"}, "otherwise is for what falls short of min_sqnr"),
        ({"dtype": "int8", "min_sqnr": 30.0, "otherwise": "int16"}, "otherwise is int16"),
        ({"dtype": "int8", "min_sqnr": 30.0, "otherwise": "e4m3"}, "otherwise is float8_e4m3fn"),
        ({"dtype": "int8", "axis": "rows"}, "axis takes a whole number or None"),
        ({"dtype": "int8", "group": 0}, "group is 0"),
        ({"dtype": "int8", "group": 4, "axis": 0}, "exclude each other"),
        ({"dtype": "nf4", "axis": None}, "nf4 has a scale for each group"),
    ],
)
def test_bad_parameters_fail_at_construction(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Quant(**parameters)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Quant("i8"), "quantize(int8)"),
        (Quant("uint8", axis=None, calibrate="entropy"), "quantize(uint8, axis=None, calibrate=entropy)"),
        (Quant("int4", group=128, min_sqnr=20.0), "quantize(int4, group=128, min_sqnr=20)"),
        (Quant("fp8", keep=("head.*", "it's")), "quantize(float8_e4m3fn, keep=['head.*', \"it's\"])"),
        (Quant("int8", scheme="affine", axis=-1), "quantize(int8, scheme=affine, axis=-1)"),
        (Quant("i8", calibrate="percentile", percentile=99.5), "quantize(int8, calibrate=percentile, percentile=99.5)"),
        (Quant("int8", min_sqnr=30.0, otherwise="bf16"), "quantize(int8, min_sqnr=30, otherwise=bfloat16)"),
    ],
)  # fmt: skip
def test_the_text_parses_back(step: Quant, text: str) -> None:
    assert str(step) == text
    (parsed,) = steps_from_text([text])
    assert parsed == step


def test_before_a_scan_the_shapes_are_known() -> None:
    given = Stream((tensor(random(2, 6), "w"),), Extra("weights"))
    made = Quant("uint4", group=3).apply(given)
    assert [(t.spec.name, t.spec.dtype.name, t.spec.shape) for t in made.tensors] == [
        ("w", "uint4", (2, 6)), ("w.scale", "float32", (2, 2)), ("w.zero_point", "uint4", (2, 2)),
    ]  # fmt: skip


def test_what_a_file_without_metadata_has_quantized_is_let_alone_too() -> None:
    made = settled(Quant("float8_e4m3fn"), weights(tensor(random(4, 8), "w"), tensor(random(4), "b")))
    plain = weights(*(tensor(x, name) for name, x in values(made).items()))  # as of a .pt, which has no metadata
    (half,) = steps_from_text(["cast(half)"])
    kinds = {t.spec.name: t.spec.dtype.name for t in half.apply(plain).tensors}
    assert kinds == {"w": "float8_e4m3fn", "w.scale": "float32", "b": "float16"}


def test_a_cast_after_it_may_find_nothing_to_do() -> None:
    made = settled(Quant("int8"), weights(tensor(random(4, 8), "w")))
    (half,) = steps_from_text(["cast(half)"])
    assert half.apply(made).notes == ("cast(float16): nothing is left for it to do",)


@pytest.mark.parametrize("there", ["w.scale", "w.zero_point"])
def test_names_that_are_taken_are_refused(there: str) -> None:
    given = weights(tensor(random(4, 8), "w"), tensor(random(2), there))
    with pytest.raises(TconvError, match=f"there is a tensor {there} already"):
        settled(Quant("uint8"), given)
    tree = {"w": Ref("w"), there: 0.5}
    held = replace(weights(tensor(random(4, 8), "w")), extra=Extra("weights", tree=tree))
    with pytest.raises(TconvError, match=f"there is a '{there}' beside it already"):
        settled(Quant("uint8"), held)
