"""What steps tell of single pictures (where in its frame each lies), as tensors beside them once the chain is through.

Such a record waits in the attributes of its tensor: later steps neither see nor change it. In the end those of one
tensor, or of all parts of a stack, are a tensor called like it and the record: ``batch.mask``. Read from a file again,
it is known by that name, and left alone like labels.
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
LABEL = "label"  # the attribute of what is told of others
TOLD = "told"  # the attribute of a picture in a file that has a record beside it: by which
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


def recognized(stream: Stream) -> Stream:
    """The stream of a file, with what is told of single pictures in it known as such: as labels are, which no step
    changes unasked.
    """
    if len(stream.tensors) < 2 or not any(t.spec.name.endswith(tuple(_FITS)) for t in stream.tensors):
        return stream
    named = {tensor.spec.name: tensor.spec for tensor in stream.tensors}

    def known(spec: Spec) -> Spec:
        base, dot, kind = spec.name.rpartition(".")
        fits = _FITS.get(dot + kind)
        is_record = fits is not None and base in named and fits(spec, named[base])
        return replace(spec, attrs={**spec.attrs, LABEL: True}) if is_record else spec

    return stream.with_tensors([replace(tensor, spec=known(tensor.spec)) for tensor in stream.tensors])


def base_of(spec: Spec) -> str:
    """The name of the tensor that a record from a file tells of; empty for anything else."""
    base, dot, kind = spec.name.rpartition(".")
    return base if spec.attrs.get(LABEL) and dot + kind in _FITS else ""


def told_of(stream: Stream) -> Stream:
    """The stream of what was chosen of files, in which pictures know what record is there of them."""
    kinds = {base_of(tensor.spec): record_name(tensor) for tensor in stream.tensors if base_of(tensor.spec)}
    if not kinds:
        return stream

    def marked(spec: Spec) -> Spec:
        kind = kinds.get(spec.name)
        return replace(spec, attrs={**spec.attrs, TOLD: kind}) if kind else spec

    return stream.with_tensors([replace(tensor, spec=marked(tensor.spec)) for tensor in stream.tensors])


def pictures_alone(stream: Stream) -> Stream:
    """The stream without labels and what else tells of its pictures, and is none itself, and a note on what that is;
    all of it where there is nothing else.
    """
    kept = [tensor for tensor in stream.tensors if not tensor.spec.attrs.get(LABEL)]
    if not kept or len(kept) == len(stream.tensors):
        return stream
    left = [f"{t.source.path}: {t.spec.name}" for t in stream.tensors if t.spec.attrs.get(LABEL)]
    left += [f"{kept[0].source.path}: {name}" for name in stream.extra.texts]
    return stream.with_tensors(kept, *(f"{one}: left out, as it tells of pictures and is none" for one in left))


def _is_mask(spec: Spec, of: Spec) -> bool:
    """(H, W) or (N, H, W) of what has these axes too, and may have channels."""
    fits = all(spec.shape.count(n) <= of.shape.count(n) for n in spec.shape)
    return spec.dtype.kind == "bool" and fits and len(of.shape) - len(spec.shape) in (0, 1)


def _is_placed(spec: Spec, of: Spec) -> bool:
    """(5) or (N, 5)."""
    return spec.dtype.is_float and spec.shape[-1:] == (5,) and spec.shape[:-1] == of.shape[: len(spec.shape) - 1]


_FITS = {".mask": _is_mask, ".letterbox": _is_placed}
