"""TorchScript archives: the parameters and buffers of a program, as its state dict; none of its code is ever run.

The values are in the same pickle of objects that a checkpoint has. Which of an object's tensors are parameters and
which are buffers, only the code says, in the first lines of each class; these are looked for as text::

    class Linear(Module):
      __parameters__ = ["weight", "bias", ]
      __buffers__ = []
      weight : Tensor
      bias : Tensor

Source: torch/csrc/jit/serialization (pickler.cpp, python_print.cpp, import_source.cpp) and torch/jit/_script.py.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.torch import globals as checkpoints
from tconv.formats.torch.archive import MAX_DEFLATED, Archive
from tconv.formats.torch.objects import Blank, Foreign, Maker, Record, StorageType, StoredTensor, damaged

_PREFIX = "__torch__."
_DEEPEST = 100  # modules in modules
_MOST = 3_000_000  # attributes of modules; those of a shared one count once for each of its names
_LISTED = 5
_NAME = re.compile(r'"([^"]*)"')
_TENSOR = re.compile(r'  (?:(\w+) :|__annotations__\["([^"]*)"\] =) Tensor')


def _first(value: object, kind: object = None) -> object:
    """A list or a dict, of which torch notes the type beside it."""
    if not isinstance(value, list | dict):
        raise TypeError(f"a {type(value).__name__} where a container belongs")
    return value


_TAGS = ("restore_type_tag", "build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")
_STORAGES = {  # those that torch.save writes as bytes, and TorchScript by a class of their own
    "UInt16Storage": "uint16",
    "UInt32Storage": "uint32",
    "UInt64Storage": "uint64",
    "Float8_e4m3fnStorage": "float8_e4m3fn",
    "Float8_e5m2Storage": "float8_e5m2",
    "Float8_e4m3fnuzStorage": "float8_e4m3fnuz",
    "Float8_e5m2fnuzStorage": "float8_e5m2fnuz",
}
_GLOBALS: dict[str, Any] = {
    **{f"torch.jit._pickle.{tag}": Maker(f"torch.jit._pickle.{tag}", _first) for tag in _TAGS},
    **{f"torch.{n}": StorageType(f"torch.{n}", DTYPES[d], DTYPES[d].itemsize) for n, d in _STORAGES.items()},
}


def find_global(module: str, name: str) -> Any:
    """What stands for ``module.name``: a class of the program itself becomes a record, whatever it is."""
    path = f"{module}.{name}"
    if path.startswith(_PREFIX):
        return Blank(path, lambda *args: Record(path, args or None))
    return _GLOBALS.get(path) or checkpoints.find_global(module, name)


def state_dict(value: Any, archive: Archive) -> tuple[OrderedDict[str, Any], str]:
    """What ``state_dict()`` of the program gives, in its order, and one sentence on what is left out.

    Raises ``TconvError`` for what is no module, and for a frozen program: its weights are nameless constants.
    """
    walk = _Walk(_Code(archive).module)
    walk.visit(value)
    if not walk.found and archive.has("constants/0"):
        raise TconvError(
            "a frozen TorchScript archive: its weights have become constants of its code, and have no names",
            remedy="save the program as it was before torch.jit.freeze",
        )
    more = f", as are its other tensors: {_listed(walk.others)}" if walk.others else ""
    return walk.found, f"a TorchScript archive: read as its state dict, its code is left out{more}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


@dataclass
class _Module:
    """What the code says of a class of modules: the names of its parameters, buffers and plain tensors."""

    parameters: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)

    def is_state(self, name: str) -> bool:
        """Whether it is in the state dict: a buffer that may be None is not, which is what torch does too."""
        return name in self.parameters or (name in self.buffers and name in self.tensors)


class _Code:
    """The classes of a program, found in its code when they are asked for."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._files: dict[str, dict[str, _Module]] = {}
        self._size = 0

    def module(self, path: str) -> _Module | None:
        """The class of that path, or None if it is none of modules."""
        file, _, name = path.rpartition(".")
        if file not in self._files:
            self._files[file] = dict(_modules(self._source(f"code/{file.replace('.', '/')}.py")))
        return self._files[file].get(name)

    def _source(self, name: str) -> str:
        data = self._archive.content(name)
        self._size += len(data)
        if self._size > MAX_DEFLATED:
            raise TconvError(f"its code unpacks to more than {MAX_DEFLATED:,} bytes")
        return data.decode("utf-8", "replace")


def _modules(source: str) -> Iterator[tuple[str, _Module]]:
    """The classes of modules in a file of code, each with its name."""
    module = _Module()
    for line in source.split("\n"):
        if line.startswith("class "):
            module = _Module()
            if line.endswith("(Module):"):
                yield line[6:-9], module
        elif line.startswith("  __parameters__ = ["):
            module.parameters.update(_NAME.findall(line))
        elif line.startswith("  __buffers__ = ["):
            module.buffers.update(_NAME.findall(line))
        elif found := _TENSOR.fullmatch(line):
            module.tensors.add(found[1] or found[2])


class _Walk:
    """Goes through modules in modules as ``state_dict`` does: parameters, buffers, then what lies deeper."""

    def __init__(self, module: Callable[[str], _Module | None]) -> None:
        self.found: OrderedDict[str, StoredTensor | Foreign] = OrderedDict()
        self.others: list[str] = []
        self._module = module
        self._left = _MOST

    def visit(self, value: Any, keys: tuple[str, ...] = ()) -> None:
        kind = self._module(value.path) if isinstance(value, Record) else None
        if kind is None or type(value.state) is not dict:
            raise damaged("a TorchScript archive of what is no module")
        state: dict[str, Any] = value.state
        self._count(1 + len(state))
        if len(keys) > _DEEPEST or not all(type(name) is str for name in state):
            raise damaged("its modules are nested without end, or have attributes without a name")
        for wanted in (kind.parameters, kind.buffers):
            for name, item in state.items():
                if name in wanted and kind.is_state(name) and isinstance(item, StoredTensor | Foreign):
                    self._add(".".join((*keys, name)), item)
        for name, item in state.items():
            if isinstance(item, Record) and self._module(item.path):
                self.visit(item, (*keys, name))
            elif not kind.is_state(name) and self._holds_tensor(item):
                self.others.append(".".join((*keys, name)))

    def _add(self, name: str, item: StoredTensor | Foreign) -> None:
        if name in self.found:
            raise TconvError("two tensors of the program have this name", tensor=name)
        # Who asks a module for its state dict gets tensors, not parameters.
        self.found[name] = replace(item, requires_grad=False) if isinstance(item, StoredTensor) else item

    def _count(self, items: int) -> None:
        self._left -= items
        if self._left < 0:
            raise damaged("it holds the same modules over and over")

    def _holds_tensor(self, value: Any) -> bool:
        """Whether a tensor is anywhere in it."""
        pending, seen = [value], set[int]()
        while pending:
            part = pending.pop()
            if isinstance(part, StoredTensor | Foreign):
                return True
            if isinstance(part, dict | list | tuple | Record) and id(part) not in seen:
                seen.add(id(part))
                inner = (part.state,) if isinstance(part, Record) else part
                self._count(len(inner))
                pending.extend(inner.values() if isinstance(inner, dict) else inner)
        return False
