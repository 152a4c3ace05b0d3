"""Which files of a folder belong to a checkpoint: its index, its shards, and weights of whatever library."""

from __future__ import annotations

from pathlib import Path

from tconv import registry
from tconv.errors import TconvError

# Weights in forms that tconv does not read: beside converted ones they would be those of another model.
_FOREIGN_WEIGHTS = (".gguf", ".ggml", ".h5", ".keras", ".msgpack", ".onnx", ".ot", ".pb", ".tflite")


def is_index(path: Path) -> bool:
    """Whether it is the index of a sharded checkpoint, by its name."""
    return path.name.lower().endswith(registry.FORMATS["index"].suffixes)


def shards_of(index: Path) -> set[Path]:
    """The files that are part of the checkpoint of that index."""
    try:
        return {index.with_name(name) for name in registry.load("tconv.formats.shards:files")(index)}
    except TconvError:  # which its reader tells
        return set()


def holds_weights(path: Path) -> bool:
    """Whether it is called like weights of any library, read by tconv or not."""
    row = registry.by_suffix(path)
    return (row is not None and row.group == "weights") or path.suffix.lower() in _FOREIGN_WEIGHTS
