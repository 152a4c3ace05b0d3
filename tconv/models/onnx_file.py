"""What an ONNX file says of itself: of which files it consists, its operators, whether it is quantized already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from tconv.errors import TconvError
from tconv.models.route import theirs

BY_CHANNEL = 13  # the first set of operators in which scales differ by channel
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QLinear")


def described(path: Path) -> onnx.ModelProto:
    """The graph of the model at ``path``, without what is in other files. Raises ``TconvError``."""
    try:
        return onnx.load(path, load_external_data=False)
    except (OSError, MemoryError):
        raise
    except Exception as problem:  # of protobuf's kinds
        raise theirs("is no ONNX model", problem, path) from problem


def refuse_quantized(model: onnx.ModelProto, path: Path) -> None:
    """Refuse a model with integer operators, of which a quantizer would make nonsense."""
    for node in _nodes(model.graph):
        if node.op_type.startswith(_QUANTIZED):
            raise TconvError(
                f"is quantized already: it has a node {node.op_type}",
                remedy="take the float model that it was made of",
                file=path,
            )


def operators(model: onnx.ModelProto) -> int:
    """The version of ONNX's own set of operators."""
    return max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=BY_CHANNEL)


def files(model: onnx.ModelProto, path: Path) -> list[Path]:
    """All files that the model consists of."""
    named = {
        entry.value
        for tensor in _tensors(model.graph)
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path, *(path.parent / name for name in sorted(named))]


def whole(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model at ``path`` with all of its values, and with operators of which scales differ by channel."""
    try:
        full = onnx.load(path) if len(files(model, path)) > 1 else model
        return onnx.version_converter.convert_version(full, BY_CHANNEL) if operators(full) < BY_CHANNEL else full
    except (OSError, MemoryError):
        raise
    except Exception as problem:  # of the checker's and the converter's kinds
        found = theirs("onnx cannot read it, or not convert its old operators", problem, path)
        found.remedy = f"export it again with opset {BY_CHANNEL} or newer"
        raise found from problem


def _nodes(graph: onnx.GraphProto) -> Iterator[Any]:
    """All nodes, those of branches and loops too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _tensors(graph: onnx.GraphProto) -> Iterator[Any]:
    """All tensors that the file holds."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)
