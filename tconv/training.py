"""Which part of a checkpoint is the state of its training, and not the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tconv.tensor import Ref
from tconv.trees import attributes

# The keys that training loops, Lightning and accelerate use: optimizer, optimizer_states, optim_state_dict …
_KEYS = re.compile(
    r"optim(izer)?s?(_states?(_dict)?)?|(lr_)?sched(uler)?s?(_states?(_dict)?)?|(grad_)?scaler(_state(_dict)?)?"
    r"|callbacks|loops",
    re.IGNORECASE,
)


def training_keys(tree: Any) -> list[Any]:
    """The top-level keys of ``tree`` under which such state is; a tensor of that name is the model's."""
    if not isinstance(tree, Mapping):
        return []
    return [k for k, v in tree.items() if _KEYS.fullmatch(str(k)) and isinstance(v, (Mapping, list, tuple))]


def training_state(tree: Any) -> set[str]:
    """The names of the tensors of such state."""
    return {name for key in training_keys(tree) for name in refs(tree[key])}


def refs(tree: Any) -> list[str]:
    """The names of all tensors in ``tree``, in order."""
    if isinstance(tree, Ref):
        return [tree.name]
    if isinstance(tree, Mapping):
        return [name for value in (*tree.values(), *attributes(tree).values()) for name in refs(value)]
    if isinstance(tree, (list, tuple)):
        return [name for value in tree for name in refs(value)]
    return []


def inside(tree: Any) -> dict[Any, Any]:
    """What a dict holds by key: its items, and those of its attributes that hold tensors."""
    return {**tree, **{k: v for k, v in attributes(tree).items() if k not in tree and refs(v)}}
