"""Which weights belong to normalization layers, whose statistics half precision would spoil."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tconv.tensor import Spec

# The layer that a tensor is of: norm1, LayerNorm, input_layernorm, batch_normalization_3, q_norm, rms; bn2, ln_f,
# final_ln, gn … But neither normal_head nor normed.
_LAYER = re.compile(r"norm(?!ed|al(?!ization))|rms|(^|_)(bn|ln|gn)(_?\d+)?($|_)", re.IGNORECASE)
_STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance")


def normalization(specs: Iterable[Spec]) -> set[str]:
    """The names of weights, biases and running statistics of normalization layers.

    They are of at most one dimension, and known by the name of their layer, by running statistics beside them, or by a
    ``weight`` of one dimension: those of other layers have two at least.
    """
    flat = [spec for spec in specs if len(spec.shape) <= 1]
    signs = (*_STATISTICS, "weight")
    layers = {_layer(spec.name) for spec in flat if _leaf(spec.name) in signs and spec.shape}
    return {spec.name for spec in flat if (layer := _layer(spec.name)) in layers or _is_norm(layer)}


def _is_norm(layer: str) -> bool:
    """Whether the layer is called so, or is one in a list (``norms.0``) that is."""
    own = _leaf(layer)
    return bool(_LAYER.search(_leaf(_layer(layer)) if own.isdigit() else own))


def _leaf(name: str) -> str:
    return re.split(r"[./]", name.removesuffix(":0"))[-1]


def _layer(name: str) -> str:
    """All of the name before its last part."""
    return name.removesuffix(":0")[: -len(_leaf(name)) - 1]
