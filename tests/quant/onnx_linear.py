"""ONNX's QuantizeLinear and DequantizeLinear as onnxruntime computes them, for tests to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from tconv.ops import Array

TYPES = {
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
}


def linear(x: Array, scale: Array, zero: Array | None, dtype: str, axis: int) -> tuple[Array, Array]:
    """What float32 ``x`` is on the grid (as float32), and what that becomes again.

    ``scale`` and ``zero`` (any integers) have one axis, or none if they are for all of ``x``.
    """
    kind = TYPES[dtype]
    shape = list(scale.shape)
    zeros = np.zeros(scale.size) if zero is None else zero.reshape(-1)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], axis=axis),
        helper.make_node("Cast", ["q"], ["number"], to=TensorProto.FLOAT),
    ]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("x", "scale")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("number", "y")]
    whole = kind not in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2)
    constant = helper.make_tensor("zero", kind, shape, zeros.astype(np.int64 if whole else np.float64).tolist())
    graph = helper.make_graph(nodes, "linear", inputs, outputs, [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    number, back = session.run(None, {"x": x, "scale": scale})
    return number, back
