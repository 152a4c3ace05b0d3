"""Small models for tests, made without training: ONNX graphs by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8}


def convolution(path: Path, shape: Sequence[int | str | None], dtype: str = "float32", seed: int = 0) -> None:
    """image (NCHW of three channels, its size fixed) to ten logits: a convolution, ReLU, a mean over space, a layer."""
    rng = np.random.default_rng(seed)
    kind = _KINDS[dtype]
    names = {
        "conv.weight": rng.standard_normal((8, 3, 3, 3)) / 5,
        "fc.weight": rng.standard_normal((10, 8)),
        "fc.bias": rng.standard_normal(10),
    }
    numbers = "float32" if dtype == "uint8" else dtype
    given = "floats" if dtype == "uint8" else "image"
    nodes = [
        helper.make_node("Conv", [given, "conv.weight"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], transB=1),
    ]
    if dtype == "uint8":
        nodes.insert(0, helper.make_node("Cast", ["image"], ["floats"], to=TensorProto.FLOAT))
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", kind, shape)],
        [helper.make_tensor_value_info("logits", _KINDS[numbers], [shape[0], 10])],
        [numpy_helper.from_array(x.astype(numbers), name) for name, x in names.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def addition(path: Path) -> None:
    """A model of two inputs."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "ab"]
    output = helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "net", inputs, [output])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
