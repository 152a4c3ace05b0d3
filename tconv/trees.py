"""The containers of a checkpoint, with references where tensors stood: copied with changes, never changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tconv.errors import TconvError
from tconv.tensor import Ref


def attributes(container: Any) -> Mapping[str, Any]:
    """What a container carries beside its items, as ordered dicts can: ``_metadata`` mostly, but tensors too."""
    found: Mapping[str, Any] = getattr(container, "__dict__", {})
    return found


def with_items(container: Any, items: Mapping[Any, Any], beside: Mapping[str, Any]) -> Any:
    """A dict of the same type, with other items and attributes."""
    copied = copy.copy(container)  # which keeps what a subclass is made with
    copied.clear()
    copied.update(items)
    if beside or attributes(copied):
        copied.__dict__.clear()
        copied.__dict__.update(beside)
    return copied


def _changed(container: Any, change: Callable[[Mapping[Any, Any]], Mapping[Any, Any]]) -> Any:
    """The same with its items changed, and its attributes alike."""
    return with_items(container, change(container), change(attributes(container)))


def renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """The same tree with its references renamed."""
    if isinstance(tree, Ref):
        return Ref(names.get(tree.name, tree.name))
    if isinstance(tree, dict):
        return _changed(tree, lambda items: {k: renamed(v, names) for k, v in items.items()})
    if type(tree) in (list, tuple):
        return type(tree)(renamed(v, names) for v in tree)
    return tree


def with_siblings(tree: Any, added: Mapping[str, Sequence[str]]) -> Any:
    """The same tree with new tensors right after those of the names in ``added``, whose names theirs begin with."""
    if isinstance(tree, Ref):
        return {name: Ref(name) for name in (tree.name, *added.get(tree.name, ()))} if tree.name in added else tree
    if type(tree) in (list, tuple):
        for value in tree:
            if isinstance(value, Ref) and value.name in added:
                raise TconvError(
                    "it stands in a list, in which nothing can stand beside it",
                    remedy="write .safetensors, or leave it as it is",
                    tensor=value.name,
                )
        return type(tree)(with_siblings(v, added) for v in tree)
    if not isinstance(tree, dict):
        return tree
    return _changed(tree, lambda items: _items_with_siblings(items, added))


def _items_with_siblings(given: Mapping[Any, Any], added: Mapping[str, Sequence[str]]) -> dict[Any, Any]:
    items: dict[Any, Any] = {}
    for key, value in given.items():
        if not isinstance(value, Ref):
            items[key] = with_siblings(value, added)
            continue
        items[key] = value
        for name in added.get(value.name, ()):
            new = f"{key}{name.removeprefix(value.name)}"
            if new in given:
                raise TconvError(
                    f"there is a {new!r} beside it already", remedy="leave it as it is (--keep)", tensor=value.name
                )
            items[new] = Ref(name)
    return items


def without(tree: Any, names: Collection[str]) -> Any:
    """The same tree without the references of those names."""
    if isinstance(tree, dict):
        return _changed(tree, lambda items: {k: without(v, names) for k, v in items.items() if not _is(v, names)})
    if type(tree) in (list, tuple):
        return type(tree)(without(v, names) for v in tree if not _is(v, names))
    return tree


def _is(value: Any, names: Collection[str]) -> bool:
    return isinstance(value, Ref) and value.name in names
