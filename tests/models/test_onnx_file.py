"""ONNX files as they come: values in files beside them, old operators, quantized already, and what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tconv.models.onnx as module
from tconv.errors import TconvError
from tconv.models.onnx import OnnxRoute
from tconv.models.route import How
from tconv.models.samples import Batches
from tests.models.networks import convolution
from tests.models.test_onnx import samples


@pytest.fixture
def model(tmp_path: Path) -> Path:
    convolution(tmp_path / "net.onnx", ["N", 3, 16, 16])
    return tmp_path / "net.onnx"


def quantized(path: Path, how: How | None = None) -> bytes:
    """What comes of it; nothing else is left in its folder."""
    there = set(path.parent.iterdir())
    out = path.with_name("out.onnx")
    OnnxRoute(path, 1).quantize(Batches(samples(20), 4, 2), how or How(), out)
    made = out.read_bytes()
    out.unlink()
    assert set(path.parent.iterdir()) == there
    return made


def apart(model: Path) -> Path:
    """The same with its values in another file."""
    path = model.with_name("apart.onnx")
    onnx.save(onnx.load(model), path, save_as_external_data=True, location="apart.data", size_threshold=0)
    return path


def test_values_may_be_in_another_file(model: Path) -> None:
    path = apart(model)
    route = OnnxRoute(path, 1)
    assert route.files == [path, path.with_name("apart.data")]
    assert quantized(path) == quantized(model)
    assert OnnxRoute(model, 1).files == [model]


def test_a_model_too_large_for_one_file_comes_out_as_one(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = onnx.load_from_string(quantized(model))
    monkeypatch.setattr(module, "LARGE", 100)
    for path in (model, apart(model)):
        made = onnx.load_from_string(quantized(path))
        assert [node.op_type for node in made.graph.node] == [node.op_type for node in small.graph.node]
        assert {t.name: t.raw_data for t in made.graph.initializer} == {
            t.name: t.raw_data for t in small.graph.initializer
        }


@pytest.mark.parametrize("version", [7, 9, 10, 11, 12])
def test_old_operators_become_those_that_have_scales_by_channel(model: Path, version: int) -> None:
    old = onnx.load(model)
    old.opset_import[0].version = version
    path = model.with_name("old.onnx")
    onnx.save(old, path)
    route = OnnxRoute(path, 1)
    (note,) = route.advice()
    assert note == f"its operators, of version {version}, become those of 13, with scales by channel"
    made = onnx.load_from_string(quantized(path))
    assert made.opset_import[0].version >= 13
    out = model.with_name("made.onnx")
    onnx.save(made, out)
    x = np.stack([t.source.read(0, t.spec.size).reshape(3, 16, 16) for t in samples(8, seed=1)])
    before, after = route.run(x)["logits"], route.reopened(out)(x)["logits"]
    assert np.square(before).sum() / np.square(before - after).sum() > 1000
    assert onnx.load_from_string(quantized(path, How(per_channel=False))).graph.node


def test_new_operators_are_left_alone(model: Path) -> None:
    assert not OnnxRoute(model, 1).advice()


def test_operators_that_cannot_be_converted(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("No Adapter From Version $9 for Foo")

    monkeypatch.setattr(onnx.version_converter, "convert_version", refuse)
    old = onnx.load(model)
    old.opset_import[0].version = 9
    onnx.save(old, model)
    with pytest.raises(TconvError, match=r"No Adapter From Version .* for Foo; export it again with opset 13 or newer"):
        quantized(model)


@pytest.mark.parametrize("per_channel", [True, False])
def test_what_is_quantized_already_is_refused_before_anything_is_read(model: Path, per_channel: bool) -> None:
    path = model.with_name("again.onnx")
    path.write_bytes(quantized(model, How(per_channel=per_channel)))
    with pytest.raises(TconvError, match=r"again\.onnx: is quantized already: it has a node"):
        OnnxRoute(path, 1)


def test_branches_are_looked_into(tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])
    inner = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["r"]),
    ]
    branch = helper.make_graph(inner, "a", [], [helper.make_tensor_value_info("r", TensorProto.FLOAT, None)])
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["i"])],
        "b",
        [],
        [helper.make_tensor_value_info("i", TensorProto.FLOAT, None)],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    scale = helper.make_tensor("s", TensorProto.FLOAT, [], [1])
    values = [helper.make_tensor("c", TensorProto.BOOL, [], [True]), scale]
    graph = helper.make_graph([node], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "if.onnx")
    with pytest.raises(TconvError, match="is quantized already: it has a node QuantizeLinear"):
        OnnxRoute(tmp_path / "if.onnx", 1)


def test_a_file_that_is_missing_or_elsewhere_is_told(model: Path) -> None:
    path = apart(model)
    path.with_name("apart.data").unlink()
    with pytest.raises(TconvError, match=r"apart\.onnx: is no model that onnxruntime runs: .*External data path"):
        OnnxRoute(path, 1)


def test_no_file_that_a_user_does_not_know_is_named(model: Path) -> None:
    broken = model.with_name("staged.onnx")
    broken.write_bytes(b"broken")
    with pytest.raises(TconvError, match=r"net\.onnx: what onnxruntime made of it does not run") as caught:
        OnnxRoute(model, 1).reopened(broken)
    assert "staged" not in str(caught.value)
