"""Pipelines: steps of every spelling, and arrays in memory through them, as files go through them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tconv
from tconv.pipeline import steps_from_text

torch = pytest.importorskip("torch", reason="it takes PyTorch's tensors through steps")

CHAIN = "resize(8x6) | scale | normalize(imagenet) | permute(CHW)"
PIXELS = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)


def test_arrays_go_to_a_device_and_come_back_to_where_they_were() -> None:
    there = tconv.Pipeline("device(torch) | scale | normalize(imagenet) | cast(float16)")
    want = tconv.Pipeline("scale | normalize(imagenet) | cast(float16)")(PIXELS, axes="HWC")
    np.testing.assert_array_equal(there(PIXELS, axes="HWC"), want)
    made = there({"a": torch.from_numpy(PIXELS), "b": torch.from_numpy(PIXELS[:7])}, axes="HWC")
    assert [(type(x), x.device.type, x.dtype) for x in made.values()] == [(torch.Tensor, "cpu", torch.float16)] * 2
    np.testing.assert_array_equal(made["b"].numpy(), want[:7])


@pytest.mark.parametrize(
    "steps",
    [CHAIN, CHAIN.split(" | "), steps_from_text([CHAIN]), tconv.Pipeline(CHAIN), [tconv.Pipeline(CHAIN)]],
)
def test_steps_may_be_said_in_many_ways(steps: Any) -> None:
    made = tconv.Pipeline(steps)
    assert made.steps == tuple(steps_from_text([CHAIN]))
    assert str(made) == CHAIN
    assert made == tconv.Pipeline(CHAIN)


def test_pipelines_from_yaml_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nsteps:\n  - scale\n  - cast: float16\n")
    for made in (tconv.Pipeline.from_yaml(path), tconv.Pipeline.from_yaml(str(path)), tconv.Pipeline(path)):
        assert str(made) == "scale | cast(float16)"
    assert str(tconv.Pipeline.from_yaml("imagenet")).startswith("resize(224x224) | scale")
    with pytest.raises(tconv.UsageError, match="there is no pipeline 'imagnet'; did you mean imagenet"):
        tconv.Pipeline.from_yaml("imagnet")
    assert str(tconv.Pipeline("scale") | "cast(half)") == "scale | cast(float16)"


def test_an_array_becomes_what_its_file_becomes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", PIXELS)
    tconv.convert(tmp_path / "x.npy", tmp_path / "y.npy", CHAIN, input_layout="HWC")
    made = tconv.Pipeline(CHAIN)(PIXELS, axes="HWC")
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, np.load(tmp_path / "y.npy"))


@pytest.mark.parametrize("library", ["numpy", "torch", "tensorflow", "jax"])
def test_what_goes_in_is_what_comes_out(library: str) -> None:
    pytest.importorskip(library, reason="it takes its arrays through steps")
    x = {"torch": tconv.to_torch, "tensorflow": tconv.to_tensorflow}.get(library, np.asarray)(PIXELS)
    if library == "jax":
        x = pytest.importorskip("jax").numpy.asarray(PIXELS)
    made = tconv.Pipeline(CHAIN)(x, axes="hwc")
    assert tconv.inspect(made).kind == library
    np.testing.assert_array_equal(tconv.to_numpy(made), tconv.Pipeline(CHAIN)(PIXELS, axes="HWC"))
    np.testing.assert_array_equal(tconv.to_numpy(x), PIXELS)


def test_bfloat16_goes_through_as_bits() -> None:
    x = torch.tensor([0.5, 1.5, 3.0], dtype=torch.bfloat16)
    made = tconv.Pipeline("clamp(0, 1)")(x)
    assert made.dtype == torch.bfloat16
    assert made.tolist() == [0.5, 1.0, 1.0]
    assert tconv.Pipeline("cast(bf16)")([1.0, 2.0]).dtype == ml_dtypes.bfloat16


def test_a_state_dict_is_cast_as_a_checkpoint_is() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    state = model.state_dict()
    made = tconv.Pipeline("cast(float16, policy=amp)")(state, weights=True)
    assert list(made) == list(state)
    assert made["0.weight"].dtype == torch.float16
    assert made["0.weight"].equal(state["0.weight"].half())
    assert made["1.running_mean"] is state["1.running_mean"]
    assert made["1.num_batches_tracked"] is state["1.num_batches_tracked"]


def test_integer_fields_are_asked_about() -> None:
    fields = {"image": np.ones((2, 2), np.float64), "label": np.array([1, 2])}
    with pytest.raises(tconv.TconvError, match=r"integer fields, which may be labels: label \(int64\)"):
        tconv.Pipeline("cast(float32)")(fields)
    made = tconv.Pipeline("cast(float32)")(fields, fields="")
    assert made["image"].dtype == np.float32
    assert made["label"] is fields["label"]


def test_ranges_are_stated_and_known() -> None:
    x = np.array([0.0, 127.5, 255.0])
    with pytest.raises(tconv.TconvError, match="range"):
        tconv.Pipeline("scale")(x)
    assert tconv.Pipeline("scale")(x, range=(0, 255)).tolist() == [0, 0.5, 1]
    assert tconv.Pipeline("scale")(np.array([0, 65535], np.uint16)).tolist() == [0, 1]


def test_values_outside_of_a_stated_range_are_told(caplog: pytest.LogCaptureFixture) -> None:
    tconv.Pipeline("scale")(np.array([0.0, 300.0]), range=(0, 255))
    assert any("1 of 2 values lie outside the stated range [0, 255]" in text for text in caplog.messages)


def test_nothing_to_do_gives_the_same_object() -> None:
    x = np.ones(3, np.float32)
    assert tconv.Pipeline("cast(float32)")(x) is x
    assert tconv.Pipeline(None)(x) is x
    assert tconv.Pipeline("cast(float32)")(x, range=(0, 1)) is x
    assert tconv.Pipeline("device(torch) | cast(float32) | device(cpu)")(x) is x


def test_what_does_not_fit_says_which_array_and_which_step() -> None:
    with pytest.raises(tconv.TconvError, match=r"^memory: w: cast\(float16\): 1 of 1 values overflow float16"):
        tconv.Pipeline("cast(float16)")({"v": np.ones(1), "w": np.array([70000.0])})
    with pytest.raises(tconv.TconvError, match=r"axes='HWC' names 3 axes, and the shape is \(3,\)"):
        tconv.Pipeline("scale")(np.ones(3), axes="HWC")
    with pytest.raises(tconv.TconvError, match=r"w: .*device meta has no values"):
        tconv.Pipeline("scale")({"w": torch.empty(2, device="meta")})
    with pytest.raises(tconv.TconvError, match="there is no array"):
        tconv.Pipeline("scale")({})


def test_a_mapping_is_stacked() -> None:
    made = tconv.Pipeline("stack(into=both)")({"a": np.ones(2), "b": np.zeros(2)})
    assert {name: array.tolist() for name, array in made.items()} == {"both": [[1, 1], [0, 0]]}
    assert tconv.Pipeline("stack")(torch.ones(2)).shape == (1, 2)


def test_variables_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text('version: 1\nsteps: ["resize(${size:224})", "clamp(0, ${high:1})"]\n')
    made = tconv.Pipeline.from_yaml(path, {"size": 96, "high": 0.5})
    assert made.steps == tconv.Pipeline("resize(96) | clamp(0, 0.5)").steps
    with pytest.raises(tconv.UsageError, match=r"the variable 'size' is \[96\]; give a text or a number"):
        tconv.Pipeline.from_yaml(path, {"size": [96]})  # type: ignore[dict-item]  # that it is none is the point


def test_a_pipeline_that_is_taken_for_steps_is_pointed_at() -> None:
    with pytest.raises(tconv.UsageError, match=r'there is no step .clip.*Pipeline\.from_yaml\("clip"\)'):
        tconv.convert("photos", "z.npy", "clip")
    with pytest.raises(tconv.UsageError, match=r"from_yaml\('mine\.yaml'\)"):
        tconv.Pipeline("mine.yaml")


def test_what_is_a_step_here_and_an_option_there_is_pointed_at() -> None:
    options: dict[str, Any] = {"resize": "64x64", "normalize": True}
    with pytest.raises(tconv.UsageError, match=r"'resize' is no option but a step; for example steps='resize\("):
        tconv.convert("photos", "z.npy", **options)


def test_axes_are_asked_for_as_the_argument_is_called() -> None:
    with pytest.raises(tconv.TconvError, match='axes="HWC"') as refused:
        tconv.Pipeline("resize(2x2)")(PIXELS)
    assert "--input-layout" not in str(refused.value)


def test_pipelines_are_values() -> None:
    made = tconv.Pipeline.from_yaml("mnist")
    assert hash(made) == hash(tconv.Pipeline.from_yaml("mnist"))
    assert {made: 1}[pickle.loads(pickle.dumps(made))] == 1
    assert str("scale" | tconv.Pipeline("cast(half)")) == "scale | cast(float16)"


@pytest.mark.parametrize("path", [None, 3, b"imagenet"])
def test_what_names_no_pipeline(path: Any) -> None:
    with pytest.raises(tconv.UsageError, match=r"a pipeline is .*; give a path as text"):
        tconv.Pipeline.from_yaml(path)


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({3: 1}, "it has no variable '3'"),
        (["size"], r"variables are \['size'\]; give a dict"),
        ("size=3", "variables are 'size=3'"),
        ({"size": None}, "the variable 'size' is None"),
    ],
)
def test_what_are_no_variables(variables: Any, says: str) -> None:
    with pytest.raises(tconv.UsageError, match=says):
        tconv.Pipeline.from_yaml("imagenet", variables)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"axes": 3}, "axes is 3; for example"),
        ({"axes": "HH"}, "axes 'HH' is no list of axes"),
        ({"range": "0,1"}, "range is '0,1'; give"),
        ({"range": (1, 0)}, r"range is \(1, 0\); give"),
        ({"fields": 3}, "fields is 3; give a glob"),
    ],
)
def test_arguments_that_mean_nothing(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(tconv.UsageError, match=says):
        tconv.Pipeline("cast(half)")(np.ones((2, 2)), **arguments)


def test_bytes_are_no_steps() -> None:
    with pytest.raises(tconv.UsageError, match="b'scale' are no steps"):
        tconv.Pipeline(b"scale")  # type: ignore[arg-type]  # the wrong type is the point


def test_names_need_not_be_texts() -> None:
    x = np.ones(2)
    made = tconv.Pipeline('match("1": cast(half), "*": [])')({1: x, "b": x})
    assert list(made) == [1, "b"]
    assert made[1].dtype == np.float16
    assert made["b"] is x
    with pytest.raises(tconv.TconvError, match="memory: 1: scale: nobody knows the range"):
        tconv.Pipeline("scale")({1: x})
    with pytest.raises(tconv.TconvError, match="two of the keys are the same text"):
        tconv.Pipeline("scale")({1: x, "1": x})


def test_a_rule_for_nothing_is_refused() -> None:
    with pytest.raises(tconv.TconvError, match=r"match 'c\*' matches no name; names here are a, b"):
        tconv.Pipeline('match("c*": cast(half))')({"a": np.ones(1), "b": np.ones(1)})


def test_a_scalar_stays_one() -> None:
    made = tconv.Pipeline("cast(half)")(np.float32(0.1))
    assert type(made) is np.float16
    assert made == np.float16(0.1)
