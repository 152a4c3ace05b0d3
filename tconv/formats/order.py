"""What the channels of pictures are where that is not RGB, grey or with alpha: BGR, or the inks of CMYK.

Formats that have no word for it get a text beside the arrays, ``channels``: NumPy's archives as an array of one text,
PyTorch's checkpoints as a text. It is of all pictures in the file; where there are others too, or an array has that
name, it is told that the file does not say it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tconv.tensor import NO_ATTRS, Spec, Tensor

NAME = "channels"
ATTRS: Mapping[str, Mapping[str, Any]] = {"BGR": {"channels": "BGR"}, "CMYK": {"inks": True}}
_COUNTS = {"BGR": 3, "CMYK": 4}


def word(spec: Spec) -> str | None:
    """``BGR`` or ``CMYK``."""
    if spec.attrs.get("inks"):
        return "CMYK"
    return spec.attrs.get("channels")


def attrs(said: str | None) -> Mapping[str, Any]:
    """Those of a spec of which that word is said. Raises ``ValueError`` for another word."""
    if said is None:
        return NO_ATTRS
    if said not in ATTRS:
        raise ValueError(said)
    return ATTRS[said]


def common(specs: Sequence[Spec], taken: Collection[str]) -> str | None:
    """The word for all pictures among ``specs``, to be written beside them; None if there is none, if it is not that of
    all, or if its place is ``taken``.
    """
    words = {word(spec) for spec in specs if word(spec) or spec.axis("C") is not None}
    free = NAME not in taken and all(spec.name != NAME for spec in specs)
    return words.pop() if free and len(words) == 1 else None


def untold(specs: Sequence[Spec]) -> tuple[str, ...]:
    """What a file leaves out that does not say it."""
    named = [f"{spec.name} are {said}" for spec in specs if (said := word(spec))]
    more = f" and of {len(named) - 1} more" if len(named) > 1 else ""
    return (f"that the channels of {named[0]}{more}",) if named else ()


def said_in(tree: Any) -> str | None:
    """The word that the containers of a file say at their top level."""
    said = tree.get(NAME) if isinstance(tree, Mapping) else None
    return said if isinstance(said, str) and said in ATTRS else None


def known(tensors: Sequence[Tensor], said: str) -> tuple[Tensor, ...]:
    """Those of a file that says this of its pictures: of all but labels, and of what has no axis of so many."""

    def marked(spec: Spec) -> Spec:
        none = spec.attrs.get("label") or _COUNTS[said] not in spec.shape
        return spec if none else replace(spec, attrs={**spec.attrs, **ATTRS[said]})

    return tuple(replace(tensor, spec=marked(tensor.spec)) for tensor in tensors)
