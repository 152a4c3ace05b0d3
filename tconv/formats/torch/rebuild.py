"""How torch.save describes a tensor: the arguments of its ``_rebuild_*`` functions, checked and kept as they are.

Each gives a ``Foreign`` for a sound tensor of a kind that tconv cannot read, and raises ``TconvError`` for a broken
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tconv.dtypes import DTYPES, DType
from tconv.formats.raw import checked_bytes
from tconv.formats.torch.objects import UNTYPED, Foreign, Maker, Named, Storage, StoredTensor, damaged

_LIMIT = 1 << 63  # of every count, as torch has them in 64 bits


def rebuild_tensor(storage: object, offset: object, shape: object, stride: object) -> StoredTensor | Foreign:
    """A view of a storage, whose class gives the dtype."""
    if not isinstance(storage, Storage):
        raise damaged("a tensor in it has no storage")
    dtype = storage.type.dtype
    if dtype is None:
        if storage.type.path == UNTYPED:  # as torch has it
            dtype = DTYPES["uint8"]
        else:
            return Foreign(f"a quantized tensor ({storage.type.path})", "save it dequantized: .dequantize()")
    return _tensor(storage, dtype, offset, shape, stride)


def rebuild_tensor_v2(
    storage: object,
    offset: object,
    shape: object,
    stride: object,
    requires_grad: object,
    hooks: object,
    metadata: object = None,
) -> StoredTensor | Foreign:
    """``hooks`` were functions of a running program; torch.save writes none."""
    plain = rebuild_tensor(storage, offset, shape, stride)
    if isinstance(plain, Foreign):
        return plain
    return _with_metadata(replace(plain, requires_grad=_flag(requires_grad)), metadata)


def rebuild_tensor_v3(
    storage: object,
    offset: object,
    shape: object,
    stride: object,
    requires_grad: object,
    hooks: object,
    dtype: object,
    metadata: object = None,
) -> StoredTensor | Foreign:
    """A view of bytes with a dtype of its own; ``offset`` and ``stride`` count elements of that."""
    if not isinstance(dtype, Named):
        raise damaged(f"a tensor in it has a {type(dtype).__name__} for a dtype")
    known = DTYPES.get(dtype.path.removeprefix("torch."))
    if known is None:
        return Foreign(f"a tensor of dtype {dtype}", "save it in another dtype")
    if not isinstance(storage, Storage) or storage.type.path != UNTYPED:
        raise damaged("a tensor in it has a dtype beside its storage's")
    plain = _tensor(storage, known, offset, shape, stride)
    return _with_metadata(replace(plain, requires_grad=_flag(requires_grad)), metadata)


def rebuild_parameter(
    data: object, requires_grad: object, hooks: object, state: object = None
) -> StoredTensor | Foreign:
    """A torch.nn.Parameter; ``state`` are attributes that somebody gave it."""
    if isinstance(data, Foreign):
        return data
    if not isinstance(data, StoredTensor):
        raise damaged("a parameter in it is no tensor")
    return replace(data, parameter=True, requires_grad=_flag(requires_grad), state=_attributes(state))


def rebuild_from_type(rebuild: object, kind: object, args: object, state: object) -> StoredTensor | Foreign:
    """A tensor with attributes; those of a class that is not torch's own have been refused by its name."""
    plain = isinstance(kind, Maker) and kind.path == "torch.Tensor" and isinstance(args, tuple)
    if not plain or not isinstance(rebuild, Maker) or not rebuild.path.startswith("torch._utils._rebuild_"):
        raise damaged("a tensor in it is described in a way that torch.save never does")
    tensor = rebuild(*args)  # type: ignore[misc]  # args is a tuple, as ``plain`` says
    if isinstance(tensor, Foreign):
        return tensor
    if not isinstance(tensor, StoredTensor):
        raise damaged("a tensor in it is described by something else")
    return replace(tensor, state=_attributes(state))


def _tensor(storage: Storage, dtype: DType, offset: object, shape: object, stride: object) -> StoredTensor:
    sizes, steps = _counts(shape, "shape"), _counts(stride, "stride")
    if len(sizes) != len(steps):
        raise damaged(f"a tensor in it has {len(sizes)} axes and {len(steps)} strides")
    checked_bytes(sizes, dtype)
    return StoredTensor(storage, dtype, _count(offset, "offset"), sizes, steps)


def _with_metadata(tensor: StoredTensor, metadata: object) -> StoredTensor | Foreign:
    """``metadata``: whether the values are still to be conjugated (complex only) or negated."""
    if metadata is None:
        return tensor
    if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
        return Foreign("a tensor with marks that are not known")
    conj, neg = _flag(metadata.get("conj", False)), _flag(metadata.get("neg", False))
    if (conj and tensor.dtype.kind != "complex") or (neg and tensor.dtype.kind == "bool"):
        raise damaged(f"a {tensor.dtype} tensor in it is marked to be conjugated or negated")
    return replace(tensor, conj=conj, neg=neg)


def _attributes(state: object) -> Mapping[str, Any] | None:
    """``state`` is a dict, or a pair of it and of the slots of a subclass."""
    if isinstance(state, tuple) and len(state) == 2 and not state[1]:
        state = state[0]
    if not state:
        return None
    if not isinstance(state, dict) or not all(type(name) is str for name in state):
        raise damaged("the attributes of a tensor in it are none")
    return state


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise damaged(f"a tensor in it has a {type(value).__name__} where a bool belongs")
    return value


def _count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise damaged(f"a tensor in it has an impossible {what}")
    return value


def _counts(values: object, what: str) -> tuple[int, ...]:
    if not isinstance(values, tuple | list):
        raise damaged(f"a tensor in it has an impossible {what}")
    return tuple(_count(v, what) for v in values)
