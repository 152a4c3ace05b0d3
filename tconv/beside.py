"""What steps tell of single pictures (where in its frame each lies), as tensors beside them once the chain is through.

Such a record waits in the attributes of its tensor: later steps neither see nor change it. In the end those of one
tensor, or of all parts of a stack, are a tensor called like it and the record: ``batch.mask``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.parts import Parts
from tconv.tensor import Spec, Tensor

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.tensor import Source, Stream

ATTR = "record"  # where a record waits
MADE = "made"  # the attribute of a tensor that no file has: by which step it is made


class Record(ABC):
    """What ``step`` tells of one tensor; a frozen dataclass."""

    name: ClassVar[str]
    step: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of what it becomes."""

    @classmethod
    @abstractmethod
    def source(cls, records: Sequence[Any], shape: tuple[int, ...], path: Path) -> Source:
        """Those of all ``records`` of this class, one after the other, as an array of ``shape``."""


def with_record(tensor: Tensor, record: Record) -> Tensor:
    """The same tensor, of which ``record`` holds."""
    return replace(tensor, spec=replace(tensor.spec, attrs={**tensor.spec.attrs, ATTR: record}))


def record_of(tensor: Tensor) -> Record | None:
    """What holds of it, or of the first part of a stack."""
    first = tensor.source.parts[0] if isinstance(tensor.source, Parts) else tensor
    found: Record | None = first.spec.attrs.get(ATTR)
    return found


def with_tensors_beside(stream: Stream) -> Stream:
    """The stream with what its records become, each after the tensor that it is about."""
    made: list[Tensor] = []
    for tensor in stream.tensors:
        record = record_of(tensor)
        made += [tensor] if record is None else [tensor, _beside(tensor, record)]
    return stream.with_tensors(made)


def names_beside(stream: Stream) -> list[str]:
    """What the tensors would be called that ``with_tensors_beside`` adds."""
    found = ((tensor, record_of(tensor)) for tensor in stream.tensors)
    return [_name(tensor, record) for tensor, record in found if record is not None]


def record_name(tensor: Tensor) -> str:
    """By what name a record stands beside, of a tensor that one became: ``mask`` of ``batch.mask``."""
    return tensor.spec.name.rpartition(".")[2]


def _beside(tensor: Tensor, record: Record) -> Tensor:
    source = tensor.source
    if isinstance(source, Parts):
        records = [part.spec.attrs[ATTR] for part in source.parts]
        shape = (len(records), *record.shape)
    else:
        records, shape = [record], record.shape
    made = record.source(records, shape, source.path)
    # Without axes it is no picture to any later step.
    return Tensor(Spec(_name(tensor, record), made.dtype, shape, attrs={MADE: record.step}), made)


def _name(tensor: Tensor, record: Record) -> str:
    return f"{tensor.spec.name}.{record.name}"
