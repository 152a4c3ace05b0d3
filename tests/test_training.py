"""Which part of a checkpoint is its training's: by whole keys, and only where there is a container."""

from __future__ import annotations

import pytest

from tconv.tensor import Ref
from tconv.training import refs, training_keys, training_state


@pytest.mark.parametrize(
    "key",
    [
        "optimizer", "optimizers", "optimizer_state", "optimizer_states", "optimizer_state_dict", "optim",
        "lr_scheduler", "lr_schedulers", "scheduler", "scheduler_state_dict", "lr_sched", "scaler", "grad_scaler",
        "callbacks", "loops",
    ],
)  # fmt: skip
def test_the_keys_of_training_loops(key: str) -> None:
    assert training_keys({key: {"a": Ref(f"{key}.a")}, "model": {}}) == [key]


@pytest.mark.parametrize("key", ["amplifier", "optimizer_embed", "model", "loops_conv", "callbacks2", "state_dict"])
def test_a_model_that_is_called_alike_is_a_model(key: str) -> None:
    assert training_keys({key: {"w": Ref(f"{key}.w")}}) == []


def test_a_tensor_of_that_name_is_a_weight() -> None:
    assert training_keys({"optimizer": Ref("optimizer"), "optim": [Ref("optim.0")]}) == ["optim"]


def test_names_at_any_depth() -> None:
    tree = {"optimizer": {"state": {0: {"exp_avg": Ref("optimizer.state.0.exp_avg")}}, "lr": 0.1}, "w": Ref("w")}
    assert training_state(tree) == {"optimizer.state.0.exp_avg"}
    assert refs(tree) == ["optimizer.state.0.exp_avg", "w"]
    assert training_state(None) == set()
