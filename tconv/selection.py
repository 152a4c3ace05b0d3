"""Which tensors of what was read go on: the model of a checkpoint, patterns on names, wrappers' prefixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tconv.errors import NotTensor, TconvError
from tconv.formats import order
from tconv.patterns import matches
from tconv.tensor import Ref, Stream, Tensor
from tconv.training import inside, refs, training_keys
from tconv.trees import attributes, renamed, with_items


class NothingLeft(TconvError):  # noqa: N818  # a refusal by kind: where other files have something left, it is none
    """The patterns leave no tensor of a file."""


MODEL_KEYS = ("state_dict", "model_state_dict", "model")


def only_model(stream: Stream) -> Stream:
    """The model's tensors of a checkpoint, named from where they start, for a target that holds no structure.

    They are those under ``state_dict`` (or ``model``), else all but the optimizer's and its like. A note says what
    was left out.
    """
    tree = stream.extra.tree
    if not isinstance(tree, Mapping):
        return replace(stream, extra=replace(stream.extra, tree=None))
    held = inside(tree)
    if order.said_in(tree):  # which is said of each tensor too
        del held[order.NAME]
    for key in MODEL_KEYS:
        if isinstance(tree.get(key), Mapping) and refs(tree[key]):
            kept = {ref: ref.removeprefix(f"{key}.") for ref in refs(tree[key])}
            others = _others(stream, f"{key}.")
            return _keep(replace(stream, others=others), kept, [k for k in held if k != key])
    training = training_keys(tree)
    others = tuple(o for o in stream.others if o.tensor.partition(".")[0] not in map(str, training))
    unread = {o.tensor.partition(".")[0] for o in others}
    left = [k for k, v in held.items() if (not refs(v) and str(k) not in unread) or k in training]
    kept = {ref: ref for k, v in held.items() if k not in left for ref in refs(v)}
    return _keep(replace(stream, others=others), kept, left)


def select(stream: Stream, path: str) -> Stream:
    """What lies under the keys of ``path``, and the places of lists, joined by dots, named from there."""
    tree, rest = stream.extra.tree, path
    while rest:
        inside = _inside(tree)
        keys = [key for key in inside if rest == key or rest.startswith(f"{key}.")]
        if not keys:
            level = path.removesuffix(rest).rstrip(".") or "the top level"
            there = first_few(inside) if inside else "no keys"
            raise TconvError(f"there is no {path!r} in it", remedy=f"{level} has {there}")
        key = max(keys, key=len)  # one may have dots of its own
        tree, rest = inside[key], rest[len(key) + 1 :]
    found = refs(tree)
    if not found:
        raise TconvError(f"there is no tensor under {path!r}")
    names = {ref: ref.removeprefix(f"{path}.") for ref in found}
    return _keep(replace(stream, others=_others(stream, f"{path}.")), names, [], tree=renamed(tree, names))


def _inside(tree: Any) -> dict[str, Any]:
    """What a container holds, by key or by place."""
    if isinstance(tree, Mapping):
        return {str(key): value for key, value in inside(tree).items()}
    return {str(n): value for n, value in enumerate(tree)} if isinstance(tree, list | tuple) else {}


def _others(stream: Stream, under: str) -> tuple[NotTensor, ...]:
    """What is no tensor and has a name that begins so, named from there."""
    return tuple(
        NotTensor(o.reason, remedy=o.remedy, file=o.file, tensor=o.tensor[len(under) :], step=o.step)
        for o in stream.others
        if o.tensor.startswith(under)
    )


def _keep(stream: Stream, names: Mapping[str, str], left: Sequence[Any], tree: Any = None) -> Stream:
    tensors = []
    for tensor in stream.tensors:
        new = names.get(tensor.spec.name)
        if new is not None:
            alias = tensor.spec.alias_of
            spec = replace(tensor.spec, name=new, alias_of=names.get(alias) if alias else None)
            tensors.append(replace(tensor, spec=spec))
    note = [f"left out, as the target holds tensors only: {', '.join(map(str, left))}"] if left else []
    extra = replace(stream.extra, tree=tree)
    return replace(stream, tensors=tuple(tensors), extra=extra, notes=(*stream.notes, *note))


def matching(stream: Stream, only: Sequence[str], skip: Sequence[str]) -> Stream:
    """Tensors whose name matches a pattern of ``only`` (if any is given) and none of ``skip``.

    Patterns are globs in which ``*`` crosses dots and slashes.
    """
    if not only and not skip:
        return stream
    tensors = [t for t in stream.tensors if (not only or matches(t.spec.name, only)) and not matches(t.spec.name, skip)]
    if not tensors:
        given = " and ".join(option for option, patterns in (("--only", only), ("--skip", skip)) if patterns)
        raise NothingLeft(
            f"no tensor is left by {given}", remedy=f"names here are {first_few(t.spec.name for t in stream.tensors)}"
        )
    kept = {t.spec.name for t in tensors}
    others = tuple(o for o in stream.others if (not only or matches(o.tensor, only)) and not matches(o.tensor, skip))
    texts = {
        name: text
        for name, text in stream.extra.texts.items()
        if (not only or matches(name, only)) and not matches(name, skip)
    }
    # An alias whose base was dropped stands on its own from now on.
    tensors = [t if t.spec.alias_of in kept else replace(t, spec=replace(t.spec, alias_of=None)) for t in tensors]
    return replace(stream, tensors=tuple(tensors), others=others, extra=replace(stream.extra, texts=texts))


def unmatched(names: Iterable[str], skip: Sequence[str]) -> list[str]:
    """A note for each pattern of ``skip`` that none of all ``names`` matches."""
    names = list(names)
    left = [p for p in skip if not any(matches(name, [p]) for name in names)]
    return [f"--skip {p!r} matches no name; names here are {first_few(names)}" for p in left]


def refuse_unmatched(option: str, names: Sequence[str], patterns: Sequence[str]) -> None:
    """Refuse a pattern that matches none of all ``names``: what it should have protected would be converted."""
    for pattern in patterns:
        if not any(matches(name, [pattern]) for name in names):
            near = [name for name in names if pattern.strip("*") in name]
            hint = (
                f"a pattern is for the whole name: '*{pattern.strip('*')}*'"
                if near
                else f"names here are {first_few(names)}"
            )
            raise TconvError(f"{option} {pattern!r} matches no name", remedy=hint)


def first_few(names: Iterable[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def strip_prefixes(stream: Stream, prefixes: Sequence[str]) -> Stream:
    """Names without their leading prefixes, in any order and as often as they lead; ``module.`` in the middle stays.

    In a nested container it is the keys of each dict that lose them.
    """
    if not prefixes:
        return stream
    names: dict[str, str] = {}

    def strip(key: str) -> str:
        while lead := next((p for p in prefixes if p and key.startswith(p) and key != p), ""):
            key = key[len(lead) :]
        if key.startswith("."):
            raise TconvError(
                f"a name would become {key!r}", remedy="a prefix ends with its dot: module.", step="--strip-prefix"
            )
        return key

    def walk(tree: Any, path: tuple[str, ...]) -> Any:
        if isinstance(tree, Ref):
            names[tree.name] = ".".join(path)
            return Ref(names[tree.name])
        if isinstance(tree, dict):
            new = {strip(k) if isinstance(k, str) and refs(v) else k: v for k, v in tree.items()}
            if len(new) < len(tree):
                twice = [k for k, n in Counter(strip(k) for k in tree if isinstance(k, str)).items() if n > 1]
                raise TconvError(f"two keys of one container would become {twice[0]!r}", step="--strip-prefix")
            beside = {k: walk(v, (*path, k)) for k, v in attributes(tree).items()}
            return with_items(tree, {k: walk(v, (*path, str(k))) for k, v in new.items()}, beside)
        if type(tree) in (list, tuple):
            return type(tree)(walk(v, (*path, str(n))) for n, v in enumerate(tree))
        return tree

    tree = stream.extra.tree
    if tree is None or isinstance(tree, Ref):
        names = {t.spec.name: strip(t.spec.name) for t in stream.tensors}
    else:
        tree = walk(tree, ())
    _refuse_collisions(names)
    unchanged = all(old == new for old, new in names.items())
    note = (f"no name starts with {' or '.join(prefixes)}; names here are {first_few(names)}",) if unchanged else ()
    kept = _keep(stream, names, [], tree)
    return replace(kept, notes=(*kept.notes, *note))


def _refuse_collisions(names: Mapping[str, str]) -> None:
    seen: dict[str, str] = {}
    for old, new in names.items():
        if new in seen:
            raise TconvError(f"would get the same name as {seen[new]!r}: {new!r}", tensor=old, step="--strip-prefix")
        seen[new] = old


def refuse_doubles(stream: Stream) -> None:
    """Refuse two tensors of one name, saying which files they come from."""
    seen: dict[str, Tensor] = {}
    for tensor in stream.tensors:
        other = seen.setdefault(tensor.spec.name, tensor)
        if other is not tensor:
            raise TconvError(
                f"two tensors have that name, from {other.source.path} and {tensor.source.path}",
                remedy="rename a file, or give the folder that holds both, so that names start from there",
                tensor=tensor.spec.name,
            )
