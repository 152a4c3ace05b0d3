"""Normalization layers by the names that real models use, and by running statistics beside them."""

from __future__ import annotations

import pytest

from tconv.dtypes import DTYPES
from tconv.steps.norms import normalization
from tconv.tensor import Spec


def spec(name: str, *shape: int) -> Spec:
    return Spec(name, DTYPES["float32"], shape)


@pytest.mark.parametrize(
    "name",
    [
        "bn1.weight",  # torchvision
        "layer1.0.bn2.running_var",
        "encoder.layers.encoder_layer_0.ln_1.weight",
        "transformer.h.0.ln_f.bias",  # GPT-2
        "visual.ln_pre.weight",  # CLIP
        "bert.encoder.layer.0.output.LayerNorm.weight",
        "model.layers.0.input_layernorm.weight",  # Llama
        "model.layers.0.self_attn.q_norm.weight",  # Qwen 3
        "model.norm.weight",
        "blocks.0.norm1.bias",  # timm
        "decoder.final_layer_norm.weight",
        "down.0.block.1.norm2.weight",
        "batch_normalization_3/gamma",  # Keras
        "state_dict.encoder.group_norm.weight",
        "module.gn1.weight",
        "model.rms.weight",
        "attention_rms.weight",
        "final_ln.bias",
        "norms.0.bias",
        "decoder.blocks.0.cross_attn_ln.bias",
        "conv2d_bn1.bias",
        "batch_normalization/moving_mean:0",
        "blocks.1.instnorm.bias",
    ],
)
def test_layers_known_by_name(name: str) -> None:
    assert normalization([spec(name, 8)]) == {name}


@pytest.mark.parametrize(
    "name",
    [
        "fc.bias",
        "in_proj.bias",
        "normal_head.bias",
        "normed.bias",
        "norm1.linear.bias",
        "blnk.bias",
        "bn1",
        "0.bias",
        "denormalize_head.bias",
    ],
)  # fmt: skip
def test_layers_that_are_none(name: str) -> None:
    assert normalization([spec(name, 8)]) == set()


def test_a_matrix_is_no_normalization() -> None:
    assert normalization([spec("norm1.weight", 8, 8), spec("norm2.weight", 8)]) == {"norm2.weight"}


def test_a_weight_of_one_dimension_is_that_of_a_normalization() -> None:
    """As in an nn.Sequential, whose layers have numbers for names."""
    names = ["1.weight", "1.bias"]
    others = [spec("0.weight", 8, 8), spec("0.bias", 8), spec("2.weight", 8, 8), spec("scale.bias", 8)]
    assert normalization([*others, *(spec(name, 8) for name in names)]) == set(names)


def test_layers_known_by_running_statistics_beside_them() -> None:
    names = ["features.1.weight", "features.1.bias", "features.1.running_mean", "features.1.running_var"]
    others = [spec("features.0.weight", 8, 3, 3, 3), spec("features.0.bias", 8)]
    assert normalization([*others, *(spec(name, 8) for name in names)]) == set(names)
