"""Makes tiny.onnx, an image classifier as other tools export it, for the examples. It needs onnx.

python examples/make_model.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def main(folder: Path) -> None:
    """``image`` (any number, 3, 32, 32) to ``logits`` (…, 10): a convolution, ReLU, means over space, a linear layer.

    Nobody has trained it: its weights are chance, and always the same.
    """
    rng = np.random.RandomState(0)  # whose numbers are the same in every version of NumPy
    weights = {
        "conv.weight": rng.uniform(-0.5, 0.5, (16, 3, 3, 3)),
        "conv.bias": rng.uniform(-0.1, 0.1, 16),
        "fc.weight": rng.uniform(-1, 1, (10, 16)),
        "fc.bias": rng.uniform(-1, 1, 10),
    }
    nodes = [
        helper.make_node("Conv", ["image", "conv.weight", "conv.bias"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(x.astype(np.float32), name) for name, x in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, str(folder / "tiny.onnx"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
