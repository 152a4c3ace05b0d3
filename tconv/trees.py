"""The containers of a checkpoint, with references where tensors stood: copied with changes, never changed."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tconv.errors import TconvError
from tconv.tensor import Ref


def with_items(container: Any, items: Mapping[Any, Any]) -> Any:
    """A dict of the same type, with what it carries beside its items, and other items."""
    copied = copy.copy(container)  # dict.copy would forget the attributes of a subclass
    copied.clear()
    copied.update(items)
    return copied


def renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """The same tree with its references renamed."""
    if isinstance(tree, Ref):
        return Ref(names.get(tree.name, tree.name))
    if isinstance(tree, dict):
        return with_items(tree, {k: renamed(v, names) for k, v in tree.items()})
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
    items: dict[Any, Any] = {}
    for key, value in tree.items():
        if not isinstance(value, Ref):
            items[key] = with_siblings(value, added)
            continue
        items[key] = value
        for name in added.get(value.name, ()):
            new = f"{key}{name.removeprefix(value.name)}"
            if new in tree:
                raise TconvError(
                    f"there is a {new!r} beside it already", remedy="leave it as it is (--keep)", tensor=value.name
                )
            items[new] = Ref(name)
    return with_items(tree, items)


def without(tree: Any, names: Collection[str]) -> Any:
    """The same tree without the references of those names."""
    if isinstance(tree, dict):
        kept = {k: v for k, v in tree.items() if not (isinstance(v, Ref) and v.name in names)}
        return with_items(tree, {k: without(v, names) for k, v in kept.items()})
    if type(tree) in (list, tuple):
        return type(tree)(without(v, names) for v in tree if not (isinstance(v, Ref) and v.name in names))
    return tree
