"""What tconv does where a checkpoint calls a constructor or a function: makes plain data, or refuses the arguments."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from tconv.formats.torch import numpy_values as tn
from tconv.formats.torch.objects import Device, Layout, Maker, Named, Size
from tconv.formats.torch.rebuild import (
    rebuild_from_type,
    rebuild_parameter,
    rebuild_tensor,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
)

_LARGEST_KEY = 1000  # values in a key: hashing a tuple of tuples of … takes time and stack without end
_SCALARS = (str, int, float, bool, type(None), bytes, complex, Named, Device, np.generic)


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

MAKERS: dict[str, Callable[..., Any]] = {
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
    MAKERS[f"numpy.{_core}.multiarray._reconstruct"] = tn.reconstruct
    MAKERS[f"numpy.{_core}.multiarray.scalar"] = tn.scalar
    MAKERS[f"numpy.{_core}.numeric._frombuffer"] = tn.from_buffer
