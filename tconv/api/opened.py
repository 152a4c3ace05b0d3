"""open: the tensors of files, described from headers, read when they are asked for, through steps if there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from tconv import selection
from tconv.api.ahead import arrays
from tconv.api.options import refuse_other_than_reading, request
from tconv.api.passing import passed
from tconv.api.pipelines import steps_of
from tconv.api.words import in_python
from tconv.arguments import count, shown
from tconv.arrays.audit import log_all
from tconv.arrays.device import device_named
from tconv.arrays.dtype import native
from tconv.arrays.library import library
from tconv.beside import record_name, with_tensors_beside
from tconv.errors import TconvError, raise_all
from tconv.fold import prepare
from tconv.inputs import find
from tconv.intake import read_all
from tconv.request import Silent
from tconv.steps.stack import Stack
from tconv.suggest import did_you_mean
from tconv.tensor import Stream

if TYPE_CHECKING:
    from pathlib import Path

    import tensorflow as tf
    import torch
    from typing_extensions import Unpack

    from tconv.api.options import ReadingOptions, Source
    from tconv.api.pipelines import Steps
    from tconv.ops import Array
    from tconv.request import Request
    from tconv.tensor import Spec, Tensor


class NoSuchTensor(TconvError, KeyError):  # noqa: N818  # what is asked for by a name that nothing has
    """There is no tensor of that name; a ``KeyError`` too."""


def open(src: Source, **options: Unpack[ReadingOptions]) -> Tensors:  # noqa: A001  # it is called as tconv.open
    """The tensors in ``src``: a file, a folder, a glob, or several of them.

    Only headers are read, now; values when they are asked for. ``options`` say how images are read and which tensors
    are taken. What is odd about the files is logged (logger ``tconv``). Of class folders there are no labels here: the
    names begin with them (``name.split("/")[0]``), and what ``convert`` writes has labels, which ``loaders`` read.

    Raises ``UsageError`` for options that do not exist, ``TconvError`` for files that cannot be read, all of them at
    once.

    >>> photos = open("photos").pipe("resize(224x224) | scale | permute(CHW)")
    >>> for name, array in photos: ...
    >>> for names, batch in photos.batches(64, framework="torch", device="cuda"): ...
    >>> photos["moon.jpg"].shape
    (3, 224, 224)
    """
    refuse_other_than_reading(options)
    asked = request(src, None, None, options)
    with in_python():
        found = find(asked.inputs, wanted=asked.wanted)
        streams, failures = read_all(found.inputs, asked, Silent())
        raise_all([*found.failures, *failures])
        chosen = {path: _chosen(stream, asked, path) for path, stream in streams.items()}
        stream = prepare(asked, [one for one in found.inputs if one.path in chosen], chosen, ())
        selection.refuse_doubles(stream)
    log_all((*found.notes, *stream.notes))
    return Tensors(replace(stream, notes=()), asked)


def _chosen(stream: Stream, asked: Request, path: Path) -> Stream:
    """The part of a checkpoint that was asked for, without prefixes."""
    try:
        part = selection.select(stream, asked.select) if asked.select else stream
        return selection.strip_prefixes(part, asked.strip_prefix)
    except TconvError as problem:
        raise problem.at(file=path) from None


@dataclass(frozen=True, repr=False, eq=False)
class Tensors:
    """Named tensors in files, in order; each is read, and taken through the steps, whenever it is asked for.

    Iterating gives (name, array) pairs, so that ``dict(tensors)`` reads all of them; arrays are NumPy's, the caller's
    own, of the shape and dtype that ``spec`` tells beforehand. A few threads read ahead, within ``max_memory`` bytes,
    and the order stays. What values lose in casts is refused as the steps say when the tensor is reached.
    """

    _stream: Stream
    _request: Request

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tensors, in order. An image is called by its path in its folder, an array by its file."""
        return tuple(self._by_name)

    @property
    def specs(self) -> tuple[Spec, ...]:
        """What each tensor is after the steps, in order: dtype, shape, axes, range …"""
        return tuple(tensor.spec for tensor in self._by_name.values())

    def spec(self, name: str) -> Spec:
        """What the tensor of that name is after the steps. Raises ``NoSuchTensor``, a ``KeyError``."""
        return self._tensor(name).spec

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __getitem__(self, name: str) -> Array:
        """The values of the tensor of that name, read now. Raises ``NoSuchTensor``, a ``KeyError``."""
        ((_, values),) = self._arrays([self._tensor(name)])
        return values

    def get(self, name: str, default: Any = None) -> Any:
        """The same, or ``default`` if there is none."""
        try:
            return self[name]
        except NoSuchTensor:
            return default

    def __iter__(self) -> Iterator[tuple[str, Array]]:
        for tensor, values in self._arrays(list(self._by_name.values())):
            yield tensor.spec.name, values

    def pipe(self, steps: Steps) -> Tensors:
        """The same tensors with more steps, see ``Pipeline``: the specs are known at once, and values are not read,
        but for steps that depend on them (``cast(float16, on_overflow=keep)``).

        Raises ``UsageError`` for a step that does not exist, ``TconvError`` for tensors that it does not fit.
        """
        with in_python():
            stream = passed(self._request, steps_of(steps), self._stream)
        log_all(stream.notes)
        return Tensors(replace(stream, notes=()), self._request)

    @overload
    def batches(
        self, size: int, framework: Literal["torch"], device: str | None = ..., *, drop_last: bool = ...
    ) -> Iterator[tuple[tuple[str, ...], torch.Tensor]]: ...
    @overload
    def batches(
        self, size: int, framework: Literal["tensorflow"], device: str | None = ..., *, drop_last: bool = ...
    ) -> Iterator[tuple[tuple[str, ...], tf.Tensor]]: ...
    @overload
    def batches(
        self, size: int, framework: Literal["numpy"] = ..., device: str | None = ..., *, drop_last: bool = ...
    ) -> Iterator[tuple[tuple[str, ...], Array]]: ...
    @overload
    def batches(
        self, size: int, framework: str = ..., device: str | None = ..., *, drop_last: bool = ...
    ) -> Iterator[tuple[tuple[str, ...], Any]]: ...
    @overload
    def batches(
        self, size: int, framework: str = ..., device: str | None = ..., *, drop_last: bool = ..., beside: Literal[True]
    ) -> Iterator[tuple[tuple[str, ...], Any, dict[str, Any]]]: ...
    def batches(
        self,
        size: int,
        framework: str = "numpy",
        device: str | None = None,
        *,
        drop_last: bool = False,
        beside: bool = False,
    ) -> Iterator[tuple[Any, ...]]:
        """(names, batch) pairs: ``size`` tensors at a time, stacked along a new axis in front; the last batch may be
        smaller, or is left out by ``drop_last``.

        ``beside=True`` gives (names, batch, beside) with what steps tell of the pictures: ``beside["mask"]`` of
        ``pad``, bool (N, H, W); ``beside["letterbox"]`` of ``letterbox``, float32 (N, 5). Without it a note in the log
        tells that this is left out.

        ``framework``: ``"numpy"``, ``"torch"``, ``"tensorflow"`` or ``"jax"``; its tensors are in the memory that was
        written to, so that nothing is copied but for ``device`` (``"cuda"`` …).

        Raises ``TconvError``, at once, for tensors of unequal shapes or dtypes, naming two of them, for a framework
        that is not installed, and for a device that is not there.
        """
        size = min(count(size, "a batch has 1 tensor or more"), len(self._stream.tensors) + 1)
        adapter, device = library(framework), device_named(device)
        stacked = list(self._stacks(size, drop_last))
        if device is not None and stacked:  # what cannot go there is told now
            adapter.make(np.zeros(1, native(stacked[0][1][0].spec.dtype)), device, None)
        told = {record_name(t) for _, (_, *others) in stacked for t in others}
        if told and not beside:
            log_all([f"batches: left out: {', '.join(sorted(told))} of the pictures; beside=True gives that too"])
        return self._batches(stacked, lambda values: adapter.make(values, device, None), beside)

    def _batches(
        self, stacked: Sequence[tuple[tuple[str, ...], Sequence[Tensor]]], make: Callable[[Array], Any], beside: bool
    ) -> Iterator[tuple[Any, ...]]:
        made = self._arrays([t for _, tensors in stacked for t in (tensors if beside else tensors[:1])])
        for names, (_, *others) in stacked:
            values = make(next(made)[1])
            yield (names, values, {record_name(t): make(next(made)[1]) for t in others}) if beside else (names, values)

    def _stacks(self, size: int, drop_last: bool) -> Iterator[tuple[tuple[str, ...], Sequence[Tensor]]]:
        """The names of each batch, its stack, and what is told of that."""
        self._refuse_unequal()
        coming = iter(self._stream.tensors)
        while parts := tuple(islice(coming, size)):
            if drop_last and len(parts) < size:
                return
            stack = Stack("batch").apply(replace(self._stream, tensors=parts))
            yield tuple(part.spec.name for part in parts), with_tensors_beside(stack).tensors

    def _refuse_unequal(self) -> None:
        try:
            Stack("batch").apply(self._stream)
        except TconvError as problem:
            problem.step = "batches"
            pictures = all("H" in (tensor.spec.axes or "") for tensor in self._stream.tensors)
            sizes = 'pipe("resize(224x224)") or pipe("pad") makes sizes equal; '
            sizes *= pictures and len(self._stream.tensors) > 1
            problem.remedy = f"{sizes}without batches each comes as it is"
            raise

    def _arrays(self, tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, Array]]:
        return arrays(tensors, self._request.workers, self._request.max_memory)

    @cached_property
    def _by_name(self) -> dict[str, Tensor]:
        return {tensor.spec.name: tensor for tensor in with_tensors_beside(self._stream).tensors}

    def _tensor(self, name: str) -> Tensor:
        if not isinstance(name, str):
            example = f"x[{self.names[0]!r}]" if self.names else "x[name]"
            raise NoSuchTensor(
                f"tensors have names, and {shown(name)} is none", remedy=f"{example}, or dict(x) for all"
            )
        if name not in self._by_name:
            hint = did_you_mean(name, self.names, f"there are {selection.first_few(self.names)}")
            raise NoSuchTensor(f"there is no tensor {name!r}", remedy=hint)
        return self._by_name[name]

    def __repr__(self) -> str:
        shown = [f"{s.name} {s.dtype} {s.shape}" for s in self.specs[:3]]
        more = f" and {len(self) - 3:,} more" if len(self) > 3 else ""
        return f"<tconv.Tensors: {', '.join(shown)}{more}>"
