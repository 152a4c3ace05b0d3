"""The allow-list: every global that a checkpoint may name, and the function of tconv's own that stands for it.

Nothing here is looked up by a name from a file except in ``GLOBALS``; what is not in it is refused by its full name.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from tconv.errors import TconvError
from tconv.formats.torch import numpy_values as tn
from tconv.formats.torch.constructors import MAKERS
from tconv.formats.torch.objects import (
    STORAGE_DTYPES,
    TORCH_DTYPES,
    UNTYPED,
    Blank,
    FilePath,
    Foreign,
    Maker,
    Named,
    Record,
    StorageType,
    damaged,
)

_LONGEST_PATH = 2000


def find_global(module: str, name: str) -> Any:
    """What stands for ``module.name``. Raises ``TconvError`` with that name unless it is in the table."""
    module = _OTHER_MODULES.get(module, module)
    path = f"{module}.{name}"
    path = _OLD_PATHS.get(path, path)
    if len(path) > _LONGEST_PATH:
        raise damaged("its pickle names a global with more letters than any has")
    if path in GLOBALS:
        return GLOBALS[path]
    raise TconvError(
        f"its pickle names {path}, which is not allowed: a pickle can execute any code, so tconv never imports or "
        "calls what a checkpoint names",
        remedy="where you trust it, load it with PyTorch and save only its tensors: torch.save(model.state_dict(), …)",
    )


def build(target: object, state: Any) -> None:
    """Pickle's BUILD: the rest of an object that was made without it."""
    if isinstance(target, OrderedDict):
        _set_attributes(target, state)
    elif isinstance(target, tn.Dtype | tn.Array):
        target.build(state)
    elif isinstance(target, Record):
        target.state = state
    elif not isinstance(target, Foreign):
        raise damaged(f"its pickle sets the state of a {type(target).__name__}")


def _set_attributes(target: OrderedDict[Any, Any], state: Any) -> None:
    """The attributes of a state dict: ``_metadata``, the versions of its modules."""
    if not isinstance(state, dict):
        raise damaged(f"its pickle gives a dict a {type(state).__name__} for attributes")
    for name in state:
        if type(name) is not str or hasattr(OrderedDict, name):
            raise damaged(f"its pickle overwrites the attribute {name!r} of a dict")
    vars(target).update(state)


_QUANTIZED = {"QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4, "QUInt4x2Storage": 1, "QUInt2x4Storage": 1}


def _storage_types() -> dict[str, StorageType]:
    found = {UNTYPED: StorageType(UNTYPED, None, 1)}
    for package in ("torch", "torch.cuda"):
        for name, dtype in STORAGE_DTYPES.items():
            path = f"{package}.{name}"
            found[path] = StorageType(path, dtype, dtype.itemsize)
        for name, itemsize in _QUANTIZED.items():
            found[f"{package}.{name}"] = StorageType(f"{package}.{name}", None, itemsize)
    return found


class _Unread(NamedTuple):
    """What a function of torch makes that is no plain tensor, and what to do about it."""

    what: str
    remedy: str


_SPARSE = _Unread("a sparse tensor", "save it dense: .to_dense()")
_NESTED = _Unread("a nested tensor", "save its parts: .unbind()")
_DEVICE = _Unread("a tensor of a device without storage", "save it from the CPU: .cpu()")
_UNREAD: dict[str, _Unread] = {
    "torch._utils._rebuild_sparse_tensor": _SPARSE,
    "torch._utils._rebuild_sparse_csr_tensor": _SPARSE,
    "torch._utils._rebuild_qtensor": _Unread("a quantized tensor", "save it dequantized: .dequantize()"),
    "torch._utils._rebuild_nested_tensor": _NESTED,
    "torch._utils._rebuild_meta_tensor_no_storage": _Unread(
        "a tensor on the meta device, which has no values", "save the model after its weights are loaded"
    ),
    "torch._utils._rebuild_wrapper_subclass": _Unread(
        "a tensor of a subclass without storage", "save it as a plain tensor with PyTorch"
    ),
    "torch._utils._rebuild_device_tensor_from_numpy": _DEVICE,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _DEVICE,
    "torch._utils._rebuild_xla_tensor": _DEVICE,
    "torch.nn.parameter.UninitializedParameter": _Unread(
        "a parameter without a shape yet", "run the model once before it is saved"
    ),
}


def _foreign(path: str) -> Maker:
    made = Foreign(*_UNREAD[path])
    return Maker(path, lambda *_: made)


def _blank(path: str) -> Blank:
    return Blank(path, lambda *args: Record(path, args or None))


def _file_path(path: str) -> Maker:
    return Maker(path, lambda *parts: FilePath.of(path, parts))


_QSCHEMES = (
    *(f"torch.per_{unit}_{kind}" for unit in ("tensor", "channel") for kind in ("affine", "symmetric")),
    "torch.per_channel_affine_float_qparams",
)
_TENSOR_TYPES = [  # classes of tensors as they were named before there were dtypes
    f"torch.{place}{name.removesuffix('Storage')}Tensor"
    for place in ("", "cuda.", "sparse.", "cuda.sparse.")
    for name in STORAGE_DTYPES
]
_RECORDS = ("argparse.Namespace", "types.SimpleNamespace")
_FILE_PATHS = [f"pathlib.{kind}" for kind in FilePath.KINDS]

GLOBALS: dict[str, Any] = {
    **{path: Maker(path, make) for path, make in MAKERS.items()},
    **{path: Named(path) for path in (*(f"torch.{name}" for name in TORCH_DTYPES), *_QSCHEMES, *_TENSOR_TYPES)},
    **{path: _foreign(path) for path in _UNREAD},
    **{path: _blank(path) for path in _RECORDS},
    **{path: _file_path(path) for path in _FILE_PATHS},
    **_storage_types(),
}

_OTHER_MODULES = {
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "torch.tensor": "torch._tensor",
    "pathlib._local": "pathlib",  # of Python 3.13
}
_OLD_PATHS = {
    "builtins.xrange": "builtins.range",
    "builtins.unicode": "builtins.str",
    "builtins.long": "builtins.int",
    "torch.storage._UntypedStorage": UNTYPED,
    "torch.UntypedStorage": UNTYPED,
}
