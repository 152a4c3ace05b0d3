"""Which tensors of a checkpoint share a storage: found when it is read, and kept when it is written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tconv.formats.raw import c_strides
from tconv.formats.torch.objects import StoredTensor
from tconv.formats.torch.storage import in_c_order
from tconv.tensor import Spec

if TYPE_CHECKING:
    from tconv.dtypes import DType


class View(NamedTuple):
    """A tensor as a view of the values that tensor ``base`` writes, in elements of them."""

    base: int
    offset: int
    stride: tuple[int, ...]


class _Place(NamedTuple):
    """Where the elements of a tensor lay when it was read. ``storage`` is unique across all files, and to the dtype
    that it was read as, whose elements ``offset`` and ``stride`` count; ``chain`` to what is done to them since.
    """

    storage: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    chain: int = 0


_Shared: TypeAlias = "tuple[str, int, DType]"  # what tensors have in common that may share a storage


class _Cover(NamedTuple):
    at: int
    place: _Place


def identity(tensor: StoredTensor) -> tuple[Any, ...]:
    """Equal for tensors whose values are the very same bytes, read in the same way."""
    storage = tensor.storage
    return (
        *(storage.key, storage.first, tensor.offset, tensor.shape, tensor.stride),
        *(tensor.dtype, tensor.conj, tensor.neg),
    )


def shared_places(path: Path, tensors: Mapping[str, StoredTensor]) -> dict[str, dict[str, Any]]:
    """By name, the attribute "place" of the tensors that share their storage: what ``share`` needs to see again."""
    users = Counter(t.storage.key for t in tensors.values())
    places = {}
    for name, t in tensors.items():
        if users[t.storage.key] > 1 and not (t.conj or t.neg):
            offset = t.storage.first + t.offset
            places[name] = _Place(f"{path}:{t.storage.key}:{t.dtype}", offset, t.shape, t.stride)._asdict()
    return places


def share(specs: Sequence[Spec]) -> list[View]:
    """For each tensor, the one that writes its values.

    An alias is a view of the first tensor of its kind that has its dtype and shape. A tensor that was read as a part
    of what another one covers from end to end becomes a part of it again, if both still have the same dtype and their
    old shapes, and the same was done to both. All others are views of themselves.
    """
    bases = _bases(specs)
    covers = _covers(specs, bases)
    views = []
    for base, spec in zip(bases, specs, strict=True):
        view, place = View(base, 0, c_strides(spec.shape)), _place(spec)
        cover = covers.get((place.storage, place.chain, spec.dtype)) if place else None
        if place and cover and place != cover.place and _within(place, cover.place):
            view = View(cover.at, place.offset - cover.place.offset, place.stride)
        views.append(view)
    return views


def _bases(specs: Sequence[Spec]) -> list[int]:
    """For each tensor the one that it is an alias of, or itself."""
    found: dict[Any, int] = {}
    for i in sorted(range(len(specs)), key=lambda i: specs[i].alias_of is not None):
        found.setdefault(_kind(specs[i]), i)
    return [i if spec.alias_of is None else found[_kind(spec)] for i, spec in enumerate(specs)]


def _kind(spec: Spec) -> tuple[Any, ...]:
    """Equal for an alias and what it is one of: by where they lay if that is known, as names may have changed."""
    known = spec.attrs.get("place")
    return (_Place(**known) if known else spec.alias_of or spec.name, spec.dtype, spec.shape)


def _covers(specs: Sequence[Spec], bases: Sequence[int]) -> dict[_Shared, _Cover]:
    """For each old storage, dtype and chain the largest tensor that lay in it without gaps, the first of them."""
    found: dict[_Shared, _Cover] = {}
    for i, spec in enumerate(specs):
        place = _place(spec)
        if place is None or bases[i] != i or not in_c_order(place.shape, place.stride):
            continue
        shared = (place.storage, place.chain, spec.dtype)
        known = found.get(shared)
        if known is None or math.prod(place.shape) > math.prod(known.place.shape):
            found[shared] = _Cover(i, place)
    return found


def _place(spec: Spec) -> _Place | None:
    """Where it lay, unless its shape has changed since."""
    known = spec.attrs.get("place")
    if known is None or known["shape"] != spec.shape:
        return None
    return _Place(**known)


def _within(part: _Place, whole: _Place) -> bool:
    last = part.offset + sum((n - 1) * s for n, s in zip(part.shape, part.stride, strict=True))
    return 0 not in part.shape and whole.offset <= part.offset and last < whole.offset + math.prod(whole.shape)
