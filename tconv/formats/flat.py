"""What the formats share that hold named arrays and nothing else: what they refuse, and what they leave out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tconv.errors import TconvError, raise_all
from tconv.tensor import Extra, Ref, Spec
from tconv.training import inside


def check_dtypes(specs: Sequence[Spec], nameable: Collection[str], suffix: str) -> None:
    """Refuse, all at once, the tensors whose dtype the format has no name for."""
    bad = [spec for spec in specs if spec.dtype.name not in nameable]
    problems = [TconvError(f"{suffix} cannot name the dtype {s.dtype}", tensor=s.name) for s in bad]
    remedies = list(dict.fromkeys(_remedy(s, suffix) for s in bad))
    if len(problems) == 1:
        problems[0].remedy = remedies[0]
    raise_all(problems, remedy="" if len(problems) < 2 else "; ".join(remedies))


def _remedy(spec: Spec, suffix: str) -> str:
    dtype = spec.dtype
    if "quantized" in spec.attrs:
        return "write .safetensors, or quantize to int8"
    if dtype.is_integer:
        return f"--to {'int8' if dtype.kind == 'int' else 'uint8'} converts {dtype} exactly"
    if dtype.kind == "complex":
        return f"write .npz or .pt, or round {dtype} with --to complex64"
    exact = f"--to float32 converts {dtype} exactly"
    return exact if dtype.bits < 8 or suffix == ".safetensors" else f"{exact}, or write .safetensors"


def check_names(specs: Sequence[Spec]) -> None:
    """Refuse two tensors of one name, and names that are no Unicode text."""
    seen = set[str]()
    problems = []
    for name in (spec.name for spec in specs):
        if name in seen:
            problems.append(TconvError("there are two tensors of this name", tensor=name))
        if not name.isascii() and not _encodes(name):
            wrong = TconvError("the name is not valid Unicode text", tensor=name, remedy="rename it, or --skip it")
            problems.append(wrong.at(by_itself=True))
        seen.add(name)
    raise_all(problems)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def left_out(extra: Extra, *, metadata: bool = False, texts: bool = True) -> tuple[str, ...]:
    """What is lost of ``extra``: the places in its tree that hold no tensor, and its metadata unless they are written,
    and its lists of texts unless these are.
    """
    plain = (*_without_tensors(extra.tree, ""), *(() if texts else extra.texts))
    return plain if metadata else plain + tuple(f"metadata {key!r}" for key in extra.metadata)


def _without_tensors(tree: Any, place: str) -> Iterator[str]:
    """The shallowest places below which there is no tensor, as keys joined by dots."""
    if not _has_tensor(tree):
        if place:
            yield place
        return
    for key, value in _items(tree):
        yield from _without_tensors(value, f"{place}.{key}" if place else str(key))


def _has_tensor(tree: Any) -> bool:
    return isinstance(tree, Ref) or any(_has_tensor(value) for _, value in _items(tree))


def _items(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, Mapping):
        yield from inside(tree).items()
    elif isinstance(tree, (list, tuple)):
        yield from enumerate(tree)
