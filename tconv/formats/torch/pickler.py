"""Writes pickles of protocol 2, as torch.save does, of plain values and of calls that torch.load will make."""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tconv.errors import TconvError
from tconv.formats.torch.objects import Device, Layout, Named, Size
from tconv.tensor import Ref

_BATCH = 1000  # items between two marks, as Python's own pickler has it
_PYTHON2_NAMES = {
    "builtins.range": "builtins.xrange",
    "builtins.str": "builtins.unicode",
    "builtins.int": "builtins.long",
}


@dataclass(frozen=True)
class Call:
    """``path(*args)``, then ``state`` set on the result and ``items`` in it."""

    path: str
    args: tuple[Any, ...] = ()
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Identity:
    """What torch calls a persistent id: it stands for a storage."""

    value: tuple[Any, ...]


class Pickler:
    """``tensor`` says what is written where the tensor of a name stood."""

    def __init__(self, tensor: Callable[[str], Any]) -> None:
        self._tensor = tensor
        self._out = bytearray()
        self._memo: dict[tuple[str, str], int] = {}

    def dump(self, value: Any) -> bytes:
        """Raises ``TconvError`` for what a checkpoint cannot hold."""
        self._out += pickle.PROTO + b"\2"
        self._write(value)
        self._out += pickle.STOP
        return bytes(self._out)

    def _write(self, value: Any) -> None:
        write = _WRITERS.get(type(value))
        if write is not None:
            write(self, value)
        elif isinstance(value, np.ndarray | np.generic | np.dtype):
            self._write(_numpy(value))
        else:
            raise TconvError(f"a checkpoint cannot hold a {type(value).__name__}")

    def _none(self, value: None) -> None:
        self._out += pickle.NONE

    def _bool(self, value: bool) -> None:
        self._out += pickle.NEWTRUE if value else pickle.NEWFALSE

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self._out += pickle.BININT1 + struct.pack("<B", value)
        elif -(2**31) <= value < 2**31:
            self._out += pickle.BININT + struct.pack("<i", value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) > 255:
                raise TconvError(f"a checkpoint cannot hold an integer of {len(data)} bytes")
            self._out += pickle.LONG1 + bytes([len(data)]) + data

    def _float(self, value: float) -> None:
        self._out += pickle.BINFLOAT + struct.pack(">d", value)

    def _str(self, value: str) -> None:
        def text() -> None:
            data = value.encode("utf-8", "surrogatepass")
            self._out += pickle.BINUNICODE + struct.pack("<I", len(data)) + data

        self._once(("text", value), text)

    def _named(self, value: Named) -> None:
        def path() -> None:
            module, _, name = _PYTHON2_NAMES.get(value.path, value.path).rpartition(".")
            module = "__builtin__" if module == "builtins" else module
            self._out += pickle.GLOBAL + f"{module}\n{name}\n".encode()

        self._once(("global", value.path), path)

    def _once(self, what: tuple[str, str], write: Callable[[], None]) -> None:
        """Write it the first time, refer to it afterwards."""
        at = self._memo.get(what)
        if at is not None:
            self._out += pickle.BINGET + bytes([at]) if at < 256 else pickle.LONG_BINGET + struct.pack("<I", at)
            return
        write()
        at = self._memo[what] = len(self._memo)
        self._out += pickle.BINPUT + bytes([at]) if at < 256 else pickle.LONG_BINPUT + struct.pack("<I", at)

    def _tuple(self, value: tuple[Any, ...]) -> None:
        if not value:
            self._out += pickle.EMPTY_TUPLE
            return
        self._out += pickle.MARK
        for item in value:
            self._write(item)
        self._out += pickle.TUPLE

    def _list(self, value: Iterable[Any]) -> None:
        self._out += pickle.EMPTY_LIST
        self._batches([(item,) for item in value], pickle.APPENDS)

    def _dict(self, value: dict[Any, Any]) -> None:
        self._out += pickle.EMPTY_DICT
        self._batches(list(value.items()), pickle.SETITEMS)

    def _batches(self, entries: list[tuple[Any, ...]], opcode: bytes) -> None:
        for start in range(0, len(entries), _BATCH):
            self._out += pickle.MARK
            for entry in entries[start : start + _BATCH]:
                for item in entry:
                    self._write(item)
            self._out += opcode

    def _call(self, call: Call) -> None:
        self._named(Named(call.path))
        self._tuple(call.args)
        self._out += pickle.REDUCE
        self._batches(list(call.items.items()), pickle.SETITEMS)
        if call.state is not None:
            self._write(call.state)
            self._out += pickle.BUILD

    def _identity(self, identity: Identity) -> None:
        self._tuple(identity.value)
        self._out += pickle.BINPERSID

    def _ref(self, ref: Ref) -> None:
        self._write(self._tensor(ref.name))


def _bytes(value: bytes) -> Call:
    return Call("_codecs.encode", (value.decode("latin1"), "latin1"))


def _ordered_dict(value: OrderedDict[Any, Any]) -> Call:
    return Call("collections.OrderedDict", state=dict(vars(value)) or None, items=value)


def _default_dict(value: defaultdict[Any, Any]) -> Call:
    factory: Any = value.default_factory
    named = None if factory is None else Named(f"{factory.__module__}.{factory.__qualname__}")
    return Call("collections.defaultdict", (named,), items=value)


def _numpy(value: Any) -> Call:
    """As NumPy itself has it pickled, under the names that the installed NumPy has for its functions."""
    make, args, *state = value.__reduce__()
    return Call(_path(make), tuple(_argument(a) for a in args), _argument(state[0]) if state else None)


def _path(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}"


def _argument(value: Any) -> Any:
    if isinstance(value, type):
        return Named(_path(value))
    return tuple(_argument(v) for v in value) if isinstance(value, tuple) else value


def _as(make: Callable[[Any], Any]) -> Callable[[Pickler, Any], None]:
    return lambda pickler, value: pickler._write(make(value))


_WRITERS: dict[type, Callable[[Pickler, Any], None]] = {
    type(None): Pickler._none,
    bool: Pickler._bool,
    int: Pickler._int,
    float: Pickler._float,
    str: Pickler._str,
    tuple: Pickler._tuple,
    list: Pickler._list,
    dict: Pickler._dict,
    Named: Pickler._named,
    Call: Pickler._call,
    Identity: Pickler._identity,
    Ref: Pickler._ref,
    bytes: _as(_bytes),
    bytearray: _as(lambda v: Call("builtins.bytearray", (bytes(v),))),
    complex: _as(lambda v: Call("builtins.complex", (v.real, v.imag))),
    set: _as(lambda v: Call("builtins.set", (list(v),))),
    frozenset: _as(lambda v: Call("builtins.frozenset", (list(v),))),
    slice: _as(lambda v: Call("builtins.slice", (v.start, v.stop, v.step))),
    range: _as(lambda v: Call("builtins.range", (v.start, v.stop, v.step))),
    OrderedDict: _as(_ordered_dict),
    defaultdict: _as(_default_dict),
    Counter: _as(lambda v: Call("collections.Counter", (dict(v),))),
    Size: _as(lambda v: Call("torch.Size", (tuple(v),))),
    Device: _as(lambda v: Call("torch.device", (v.kind,) if v.index is None else (v.kind, v.index))),
    Layout: _as(lambda v: Call("torch.serialization._get_layout", (v.path,))),
}
