"""Which weights belong to normalization layers, whose statistics half precision would spoil."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tconv.tensor import Spec

# The layer that a tensor is of: norm1, LayerNorm, input_layernorm, batch_normalization_3, q_norm; bn2, ln_f, gn … But
# neither normal_head nor normed.
_LAYER = re.compile(r"norm(?!al(?!iz)|ed)|^(bn|ln|gn)(_?\d+|_[a-z]+)?$", re.IGNORECASE)
_STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance")


def normalization(specs: Iterable[Spec]) -> set[str]:
    """The names of weights, biases and running statistics of normalization layers.

    They are of at most one dimension, and known by the name of their layer or by running statistics beside them.
    """
    flat = [spec for spec in specs if len(spec.shape) <= 1]
    layers = {_layer(spec.name) for spec in flat if _leaf(spec.name) in _STATISTICS}
    return {spec.name for spec in flat if (layer := _layer(spec.name)) in layers or _LAYER.search(_leaf(layer))}


def _leaf(name: str) -> str:
    return re.split(r"[./]", name)[-1]


def _layer(name: str) -> str:
    """All of the name before its last part."""
    return name[: -len(_leaf(name)) - 1]
