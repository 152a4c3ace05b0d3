"""tconv's mark in a file's metadata: that its tensors are data, what their axes are, in which range they lie.

It is one string of JSON under the key ``tconv``::

    {"kind": "data", "axes": "HWC", "range": [0, 255], "channels": "BGR"}

``axes``, ``range`` and ``channels`` (there where they are BGR or CMYK) hold for all tensors, or are maps from the
tensors' names where they differ; so does ``alpha``, which is true where the last channel is opacity. ``labels`` are
the names of tensors that are labels, of which none of it is said; ``texts`` are the keys of the metadata that hold a
list of texts, in JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tconv.formats import order
from tconv.tensor import Extra, Range, Spec

KEY = "tconv"
_ALPHA: Mapping[str, Any] = {"alpha": True}
FRAMEWORK = "format"  # where the safetensors library notes for which framework weights were written


@dataclass(frozen=True, slots=True)
class Marked:
    """What a file holds, once its mark is read: ``metadata`` is without it."""

    kind: Literal["weights", "data"]
    specs: list[Spec]
    metadata: dict[str, str]
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def put_on(extra: Extra, specs: Sequence[Spec]) -> dict[str, str]:
    """The metadata to write: of data with the mark, of weights with their framework. Pictures in BGR are data, whatever
    they came in, and so are inks.
    """
    metadata = {key: value for key, value in extra.metadata.items() if key != KEY}
    if extra.kind == "weights" and not any(map(order.word, specs)):
        return metadata if FRAMEWORK in metadata else metadata | {FRAMEWORK: "pt"}
    labels = [spec.name for spec in specs if spec.attrs.get("label")]
    others = [spec for spec in specs if not spec.attrs.get("label")]
    axes = {spec.name: spec.axes for spec in others}
    ranges = {spec.name: _finite(spec.range) for spec in others}
    orders = {spec.name: order.word(spec) for spec in others}
    alphas = {spec.name: spec.attrs.get("alpha") for spec in others}
    fields = {"kind": "data", "axes": _shared(axes), "range": _shared(ranges), "channels": _shared(orders)}
    fields |= {"alpha": _shared(alphas), "labels": labels or None, "texts": list(extra.texts) or None}
    text = json.dumps({k: v for k, v in fields.items() if v is not None}, ensure_ascii=False)
    return metadata | {name: json.dumps(texts) for name, texts in extra.texts.items()} | {KEY: text}


def take_off(metadata: Mapping[str, str], specs: Sequence[Spec]) -> tuple[Marked, list[str]]:
    """What the mark says, and what the user should hear: a mark that makes no sense is ignored, and told."""
    plain = {key: value for key, value in metadata.items() if key != KEY}
    weights = Marked("weights", list(specs), dict(plain))
    if KEY not in metadata:
        return weights, []
    try:
        found = json.loads(metadata[KEY])
        if found["kind"] != "data":
            raise ValueError
        axes, ranges, orders, alphas = map(found.get, ("axes", "range", "channels", "alpha"))
        labels = set(_listed(found.get("labels", [])))
        texts = {name: _listed(json.loads(plain.pop(name))) for name in _listed(found.get("texts", []))}
        marked = [
            replace(
                spec,
                axes=_axes(_of(axes, spec.name), spec),
                range=_range(_of(ranges, spec.name)),
                attrs=_ALPHA if _of(alphas, spec.name) is True else order.attrs(_of(orders, spec.name)),
            )
            if spec.name not in labels
            else replace(spec, attrs={"label": True})
            for spec in specs
        ]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return weights, ["its mark of data is broken, so its tensors are taken for weights"]
    return Marked("data", marked, plain, texts), []


def _listed(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError
    return tuple(value)


def _finite(value: Range | None) -> list[float] | None:
    return list(value) if value and all(map(math.isfinite, value)) else None


def _shared(values: Mapping[str, Any]) -> Any:
    """The one value of all, or what each has."""
    first = next(iter(values.values()), None)
    return first if all(v == first for v in values.values()) else {k: v for k, v in values.items() if v is not None}


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else value


def _axes(value: Any, spec: Spec) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) != len(spec.shape)):
        raise ValueError
    return value


def _range(value: Any) -> Range | None:
    if value is None:
        return None
    low, high = value
    if not all(type(v) in (int, float) and math.isfinite(v) for v in value) or not low < high:
        raise ValueError
    return low, high
