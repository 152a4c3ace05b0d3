"""Between a checkpoint's nested containers and a stream's named tensors: one name a path, and back."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tconv.errors import NotTensor, TconvError
from tconv.formats import order
from tconv.formats.torch import numpy_values as tn
from tconv.formats.torch.objects import (
    Device,
    FilePath,
    Foreign,
    Layout,
    Maker,
    Named,
    Record,
    Size,
    Storage,
    StorageType,
    StoredTensor,
    damaged,
    unsupported,
)
from tconv.tensor import Ref

_DEEPEST = 100  # containers in containers
_SLACK = 1 << 20  # values visited besides one for each byte of the pickle: what is shared is visited more than once
_PLAIN = (
    *(str, int, float, bool, type(None), complex, bytes, bytearray, set, frozenset, slice, range),
    *(Size, Device, Layout, Named, np.generic),
)
_GONE = object()
_LISTED = 5  # names in a note


class Flat(NamedTuple):
    """The tensors by name, in order, and the containers with a ``Ref`` in the place of each.

    ``others``: what stands there and cannot be read, each with its name, and a ``Ref`` of it in the tree too.
    ``notes``: what became plainer than it was.
    """

    tensors: dict[str, StoredTensor]
    tree: Any
    others: tuple[NotTensor, ...]
    notes: tuple[str, ...]


def flatten(value: Any, bare_name: str, size: int) -> Flat:
    """Name every tensor in ``value`` by its keys, joined by dots; a bare tensor is named ``bare_name``.

    ``size`` is that of the pickle, in bytes: it limits how often what is shared is unfolded. Raises ``TconvError``
    for containers that hold themselves or are nested too deep, and for two tensors of one name.
    """
    walk = _Flattening(size + _SLACK)
    tree = walk.visit(value, () if isinstance(value, dict | list | tuple | Record) else (bare_name,))
    return Flat(walk.tensors, tree, tuple(walk.others), tuple(walk.notes()))


class _Flattening:
    def __init__(self, limit: int) -> None:
        self.tensors: dict[str, StoredTensor] = {}
        self.others: list[NotTensor] = []
        self._arrays = 0
        self._plainer: dict[str, list[str]] = {}  # what was made of what, and the names
        self._left = limit
        self._keys: dict[str, tuple[Any, ...]] = {}
        self._open: set[int] = set()  # the containers around the one that is visited

    def notes(self) -> Iterator[str]:
        if self._arrays:
            yield f"its NumPy arrays ({self._arrays}) are kept as they are"
        for what, names in self._plainer.items():
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"{what}: {', '.join(names[:_LISTED])}{more}"

    def visit(self, value: Any, keys: tuple[Any, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise damaged("it holds the same containers over and over")
        if isinstance(value, StoredTensor):
            return self._tensor(value, keys)
        if type(value) in _PLAIN:
            return value
        if isinstance(value, dict | list | tuple):
            return self._container(value, keys)
        if isinstance(value, Record):
            return self._record(value, keys)
        return self._plain(value, keys)

    def _named(self, keys: tuple[Any, ...]) -> str:
        name = ".".join(map(str, keys))
        if name in self._keys:
            one, other = _path_text(self._keys[name]), _path_text(keys)
            raise TconvError(
                f"two tensors would have this name: {one} and {other}",
                remedy="rename one of the keys where it was saved",
                tensor=name,
            )
        self._keys[name] = keys
        return name

    def _tensor(self, value: StoredTensor, keys: tuple[Any, ...]) -> Ref:
        name = self._named(keys)
        self.tensors[name] = value
        if value.state:
            count = len(self._keys)
            self.tensors[name] = replace(value, state=self.visit(dict(value.state), (*keys, "state")))
            if len(self._keys) > count:
                raise unsupported("a tensor whose attributes are tensors").at(tensor=name)
        return Ref(name)

    def _foreign(self, value: Foreign, keys: tuple[Any, ...]) -> Ref:
        name = self._named(keys)
        refusal = value.refusal()
        refusal.tensor = name
        self.others.append(refusal)
        return Ref(name)

    def _container(self, value: Any, keys: tuple[Any, ...]) -> Any:
        if id(value) in self._open:
            raise damaged(f"the container at {_path_text(keys)} holds itself")
        if len(keys) >= _DEEPEST:
            raise damaged(f"its containers are nested more than {_DEEPEST} deep")
        self._open.add(id(value))
        made = rebuilt(value, lambda key, item: self.visit(item, (*keys, key)))
        self._open.discard(id(value))
        return made

    def _record(self, value: Record, keys: tuple[Any, ...]) -> Any:
        state = {} if value.state is None else value.state
        if type(state) is not dict or not all(type(name) is str for name in state):
            raise damaged(f"the attributes of a {value.path} in it are none")
        self._note(f"{value.path} is read as a dict", keys)
        return self._container(state, keys)

    def _note(self, what: str, keys: tuple[Any, ...]) -> None:
        self._plainer.setdefault(what, []).append(".".join(map(str, keys)) or "the top")

    def _plain(self, value: Any, keys: tuple[Any, ...]) -> Any:
        if isinstance(value, tn.Array | tn.Dtype):
            value = value.array if isinstance(value, tn.Array) else value.known
            self._arrays += isinstance(value, np.ndarray)
        if isinstance(value, Foreign):
            return self._foreign(value, keys)
        if isinstance(value, FilePath):
            self._note(f"{value.path} is read as text", keys)
            return value.text
        if isinstance(value, np.ndarray | np.generic | np.dtype):
            return value
        if isinstance(value, Maker | StorageType):
            return Named(value.path)
        if isinstance(value, Storage):
            return self._foreign(Foreign("a bare storage", "save a tensor of it"), keys)
        raise damaged(f"it holds a {type(value).__name__}")


def rebuilt(value: Any, visit: Callable[[Any, Any], Any]) -> Any:
    """A container of the same kind with ``visit(key, item)`` in the place of each item, or without it where that is
    ``_GONE``. The attributes of an ordered dict (``_metadata``) are items of it too. In a list what comes after keeps
    its place, and so its name: None stands for what is gone before it.
    """
    if isinstance(value, dict):
        made = _empty_like(value)
        for key, item in value.items():
            if (new := visit(key, item)) is not _GONE:
                made[key] = new
        for name, item in getattr(value, "__dict__", {}).items():
            if (new := visit(name, item)) is not _GONE:
                setattr(made, name, new)
        return made
    items = [visit(n, item) for n, item in enumerate(value)]
    while items and items[-1] is _GONE:
        items.pop()
    items = [None if item is _GONE else item for item in items]
    return items if isinstance(value, list) else tuple(items)


def _empty_like(value: dict[Any, Any]) -> dict[Any, Any]:
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory)
    for kind in (OrderedDict, Counter):
        if isinstance(value, kind):
            return kind()
    return {}


def _path_text(keys: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in keys) or "the top"


def fit(tree: Any, names: Mapping[str, object]) -> Any:
    """``tree`` with the tensors that are not among ``names`` taken out, and those that it does not hold put in.

    What is put in goes to the top level, by its name; where that is no dict, the result is a plain dict of all.
    """
    held: set[str] = set()

    def visit(key: Any, value: Any) -> Any:
        if isinstance(value, Ref):
            if value.name not in names:
                return _GONE
            held.add(value.name)
            return value
        return rebuilt(value, visit) if isinstance(value, dict | list | tuple) and type(value) is not Size else value

    fitted = visit(None, tree)
    missing = [name for name in names if name not in held]
    if fitted is None or fitted is _GONE or (missing and not isinstance(fitted, dict)):
        return {name: Ref(name) for name in names}
    for name in missing:
        if name in fitted:
            raise TconvError("the checkpoint holds something else by this name already", tensor=name)
        fitted[name] = Ref(name)
    return fitted


def with_texts(tree: Any, texts: Mapping[str, Sequence[str]]) -> Any:
    """``tree`` with lists of texts at its top level, each under its name; a bare tensor becomes an item of a dict."""
    if not texts:
        return tree
    made = tree if isinstance(tree, dict) else {tree.name: tree} if isinstance(tree, Ref) else None
    taken = next((name for name in texts if made is None or name in made), None)
    if made is None or taken is not None:
        raise TconvError("the checkpoint has no place for this list of texts", tensor=taken or "")
    made.update({name: list(listed) for name, listed in texts.items()})
    return made


def with_order(tree: Any, said: str | None) -> Any:
    """``tree`` saying at its top level what ``formats.order`` has to say; a bare tensor becomes an item of a dict."""
    if not isinstance(tree, dict):
        return tree if said is None else {tree.name: tree, order.NAME: said}
    if said is not None:
        tree[order.NAME] = said
    elif order.said_in(tree):  # it was of tensors that are there no more, or are no longer alone
        del tree[order.NAME]
    return tree
