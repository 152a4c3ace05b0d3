"""Tied tensors in a file that holds each tensor once: its metadata say which other names one has.

The layout is that of ``safetensors.torch.save_model``, which ``load_model`` reads: one string for each name that has no
bytes of its own, ``{"lm_head.weight": "embed.weight"}``. Of shards huggingface_hub writes the same into the index.
Both do so too for what was a part of another tensor, which nothing in the file tells from the whole of it: so who reads
says what it has read.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tconv.formats import mark, packed
from tconv.quant import noted
from tconv.tensor import Spec, Tensor

TIED = "tied"  # the attribute of a tensor that has no bytes of its own in its file
OWN_KEYS = frozenset((mark.FRAMEWORK, mark.KEY, packed.KEY, noted.KEY))  # metadata mean something else by these
_LISTED = 5


def is_tied(spec: Spec) -> bool:
    """Whether its file has it by name only, the bytes being those of ``alias_of``."""
    return TIED in spec.attrs


def found(metadata: Mapping[str, Any], names: Container[str], taken: Container[str]) -> dict[str, str]:
    """The other names that ``metadata`` give to tensors among ``names``, each with the name of that tensor.

    All else in there is plain text: a value that no tensor is called, a key that is ``taken``. So there are no chains
    and no cycles.
    """
    return {
        name: base
        for name, base in metadata.items()
        if isinstance(base, str) and base in names and name not in taken and name not in OWN_KEYS
    }


def tied(name: str, base: Tensor) -> Tensor:
    """``base`` by another name."""
    spec = base.spec
    attrs = {**spec.attrs, TIED: True}
    return replace(base, spec=replace(spec, name=name, alias_of=spec.alias_of or spec.name, attrs=attrs))


def to_metadata(specs: Sequence[Spec]) -> dict[str, str]:
    """What metadata say of those that are tied."""
    return {spec.name: spec.alias_of for spec in specs if is_tied(spec) and spec.alias_of is not None}


def told(ties: Mapping[str, str]) -> tuple[str, ...]:
    """What the user should hear of ties that were found."""
    if not ties:
        return ()
    listed = ", ".join(f"{name} as {base}" for name, base in list(ties.items())[:_LISTED])
    more = f" and {len(ties) - _LISTED} more" if len(ties) > _LISTED else ""
    return (f"read as another name of the same tensor, as the metadata say: {listed}{more}",)
