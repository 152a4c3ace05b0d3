"""What a file tells of its quantized tensors: under ``KEY`` of its metadata, JSON by the names of the tensors.

``{"w": {"to": "int8", "scheme": "symmetric", "axis": 0, "group": null}}``; beside ``w`` stand ``w.scale`` and, with the
affine scheme, ``w.zero_point``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.quant.op import Quantize
    from tconv.tensor import Stream

KEY = "tconv.quantized"
BESIDE = (".scale", ".zero_point")


def told(metadata: Mapping[str, str]) -> dict[str, Any]:
    """What ``metadata`` say of each tensor. ``TconvError`` for what makes no sense."""
    try:
        found = json.loads(metadata.get(KEY, "{}"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TconvError(f"its metadata {KEY!r} are broken", remedy="write the file again")
    return found


def noting(metadata: Mapping[str, str], said: Mapping[str, Any]) -> dict[str, str]:
    """The same metadata saying just that, or nothing if there is nothing to say."""
    rest = {key: value for key, value in metadata.items() if key != KEY}
    return {**rest, KEY: json.dumps(said, ensure_ascii=False)} if said else rest


def described(op: Quantize) -> dict[str, Any]:
    """How a tensor was quantized, as it is told."""
    return {"to": op.grid.name, "scheme": op.grid.scheme, "axis": op.axis, "group": op.group}


def is_untrue(how: Any, perm: Sequence[int]) -> bool:
    """Whether what is told of a tensor is no longer so when its axes are in the order ``perm``."""
    axis, group = (how.get("axis"), how.get("group")) if isinstance(how, dict) else (None, None)
    if group is not None:
        return list(perm) != sorted(perm)
    rank = len(perm)
    return type(axis) is int and -rank <= axis < rank and perm[axis] != axis % rank


def settled(stream: Stream) -> set[str]:
    """The names of tensors that are quantized, and of the numbers beside them: as the metadata say, and, since not all
    formats have metadata, of weights that are integers or floats of 8 bits and have a scale.
    """
    names = set(told(stream.extra.metadata))
    if stream.extra.kind == "weights":
        there = {t.spec.name: t.spec.dtype for t in stream.tensors}
        names |= {n for n, kind in there.items() if f"{n}.scale" in there and (kind.is_integer or kind.bits <= 8)}
    return {f"{name}{suffix}" for name in names for suffix in ("", *BESIDE)}
