"""The allow-list: every global that a checkpoint may name, and the function of tconv's own that stands for it.

Nothing here is looked up by a name from a file except in ``GLOBALS``; what is not in it is refused by its full name.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tconv.errors import TconvError
from tconv.formats.torch import numpy_values as tn
from tconv.formats.torch.objects import (
    STORAGE_DTYPES,
    TORCH_DTYPES,
    UNTYPED,
    Device,
    Layout,
    Maker,
    Named,
    Size,
    StorageType,
    damaged,
    unsupported,
)
from tconv.formats.torch.rebuild import (
    rebuild_from_type,
    rebuild_parameter,
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
)

_LARGEST_KEY = 1000  # values in a key: hashing a tuple of tuples of … takes time and stack without end
_LONGEST_PATH = 2000


def find_global(module: str, name: str) -> Any:
    """What stands for ``module.name``. Raises ``TconvError`` with that name unless it is in the table."""
    module = _PYTHON2_MODULES.get(module, module)
    path = f"{module}.{name}"
    path = _OLD_PATHS.get(path, path)
    if len(path) > _LONGEST_PATH:
        raise damaged("its pickle names a global with more letters than any has")
    if path in GLOBALS:
        return GLOBALS[path]
    if path in _NOT_PLAIN:
        raise unsupported(f"{_NOT_PLAIN[path]} ({path})")
    raise TconvError(
        f"its pickle names {path}, which is not allowed: a pickle can execute any code, so tconv never imports or "
        "calls what a checkpoint names",
        remedy="where you trust it, load it with PyTorch and save only its tensors: torch.save(model.state_dict(), …)",
    )


def is_key(value: object) -> bool:
    """Whether a dict or a set may be asked for it: hashable, and safely so."""
    pending, count = [value], 0
    while pending:
        part = pending.pop()
        count += 1
        if isinstance(part, tuple | frozenset):
            if count + len(pending) + len(part) > _LARGEST_KEY:
                return False
            pending.extend(part)
        elif not isinstance(part, _SCALARS):
            return False
    return True


def build(target: object, state: Any) -> None:
    """Pickle's BUILD: the rest of an object that was made without it."""
    if isinstance(target, OrderedDict):
        _set_attributes(target, state)
    elif isinstance(target, tn.Dtype | tn.Array):
        target.build(state)
    else:
        raise damaged(f"its pickle sets the state of a {type(target).__name__}")


def _set_attributes(target: OrderedDict[Any, Any], state: Any) -> None:
    """The attributes of a state dict: ``_metadata``, the versions of its modules."""
    if not isinstance(state, dict):
        raise damaged(f"its pickle gives a dict a {type(state).__name__} for attributes")
    for name in state:
        if type(name) is not str or hasattr(OrderedDict, name):
            raise damaged(f"its pickle overwrites the attribute {name!r} of a dict")
    vars(target).update(state)


_SCALARS = (str, int, float, bool, type(None), bytes, complex, Named, Device, np.generic)


def _only(*types: type) -> Callable[[object], Any]:
    """A check of an argument's exact type: what the real constructor makes of others is none of a checkpoint's."""

    def check(value: object) -> Any:
        if type(value) not in types:
            raise TypeError(f"a {type(value).__name__} where a {types[0].__name__} belongs")
        return value

    return check


_sequence = _only(list, tuple)
_text = _only(str)
_int = _only(int)


def _pairs(value: object = ()) -> list[tuple[Any, Any]]:
    pairs = [tuple(_sequence(pair)) for pair in _sequence(value)]
    if any(len(pair) != 2 or not is_key(pair[0]) for pair in pairs):
        raise TypeError("no pairs of key and value")
    return pairs


def _keys(value: object = ()) -> Any:
    if not all(map(is_key, _sequence(value))):
        raise TypeError("elements that cannot be hashed")
    return value


def _encode(text: object, encoding: object = "utf-8") -> bytes:
    """How protocol 2 writes bytes."""
    if encoding not in ("latin1", "utf-8", "ascii"):
        raise ValueError("an encoding that bytes are not written in")
    return bytes(_text(text).encode(encoding))


def _bytearray(value: object = b"", *encoding: object) -> bytearray:
    return bytearray(_encode(value, *encoding) if encoding else _only(bytes)(value))


def _default_dict(factory: object = None) -> defaultdict[Any, Any]:
    if factory is None:
        return defaultdict(None)
    if not isinstance(factory, Maker) or factory.path not in _FACTORIES:
        raise TypeError("a default factory that is no plain type")
    return defaultdict(_FACTORIES[factory.path])


def _device(kind: object, index: object = None) -> Device:
    name, _, number = str(_text(kind)).partition(":")
    if number and index is None:
        index = int(number)
    return Device(name, None if index is None else _int(index))


def _layout(path: object) -> Layout:
    return Layout(_text(path))


def _size(values: object = ()) -> Size:
    return Size(_int(v) for v in _sequence(values))


def _slice(*args: object) -> slice:
    return slice(*(None if a is None else _int(a) for a in args))


def _range(*args: object) -> range:
    return range(*(_int(a) for a in args))


def _marker(*args: object) -> Any:
    raise TypeError("called, where it is only to be named")


_FACTORIES: dict[str, type] = {
    **{f"builtins.{t.__name__}": t for t in (list, dict, set, tuple, int, float, str, bool)},
    "collections.OrderedDict": OrderedDict,
}

_MAKERS: dict[str, Callable[..., Any]] = {
    "_codecs.encode": _encode,
    "builtins.bool": _marker,
    "builtins.bytearray": _bytearray,
    "builtins.bytes": lambda: b"",
    "builtins.complex": lambda real, imag: complex(_only(float, int)(real), _only(float, int)(imag)),
    "builtins.dict": lambda value=(): dict(_pairs(value)),
    "builtins.float": _marker,
    "builtins.frozenset": lambda value=(): frozenset(_keys(value)),
    "builtins.int": _marker,
    "builtins.list": lambda value=(): list(_sequence(value)),
    "builtins.range": _range,
    "builtins.set": lambda value=(): set(_keys(value)),
    "builtins.slice": _slice,
    "builtins.str": _marker,
    "builtins.tuple": lambda value=(): tuple(_sequence(value)),
    "collections.Counter": lambda value=None: Counter(_only(dict)({} if value is None else value)),
    "collections.OrderedDict": lambda value=(): OrderedDict(_pairs(value)),
    "collections.defaultdict": _default_dict,
    "numpy.dtype": tn.dtype,
    "numpy.ndarray": _marker,
    "torch.Size": _size,
    "torch.Tensor": _marker,
    "torch.device": _device,
    "torch.nn.parameter.Parameter": _marker,
    "torch.serialization._get_layout": _layout,
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
    "torch._tensor._rebuild_from_type": rebuild_from_type,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
}
for _core in ("core", "_core"):  # before and since NumPy 2
    _MAKERS[f"numpy.{_core}.multiarray._reconstruct"] = tn.reconstruct
    _MAKERS[f"numpy.{_core}.multiarray.scalar"] = tn.scalar
    _MAKERS[f"numpy.{_core}.numeric._frombuffer"] = tn.from_buffer

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


_QSCHEMES = [f"torch.per_{unit}_{kind}" for unit in ("tensor", "channel") for kind in ("affine", "symmetric")]

GLOBALS: dict[str, Any] = {
    **{path: Maker(path, make) for path, make in _MAKERS.items()},
    **{path: Named(path) for path in (*(f"torch.{name}" for name in TORCH_DTYPES), *_QSCHEMES)},
    **_storage_types(),
}

_PYTHON2_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"}
_OLD_PATHS = {
    "builtins.xrange": "builtins.range",
    "builtins.unicode": "builtins.str",
    "builtins.long": "builtins.int",
    "torch.storage._UntypedStorage": UNTYPED,
    "torch.UntypedStorage": UNTYPED,
}

_NOT_PLAIN: dict[str, str] = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor",
    "torch._utils._rebuild_qtensor": "a quantized tensor",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch.nested._internal.nested_tensor._rebuild_njt": "a nested tensor",
    "torch._utils._rebuild_meta_tensor_no_storage": "a tensor on the meta device, which has no values",
    "torch._utils._rebuild_wrapper_subclass": "a tensor of a subclass without storage",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor of a device without storage",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "a tensor of a device without storage",
    "torch._utils._rebuild_xla_tensor": "a tensor of a device without storage",
    "torch.distributed.tensor.DTensor": "a tensor spread over several devices",
}
