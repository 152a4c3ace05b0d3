"""Reads again what was written and compares it, bit for bit, with what it was made of, made once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv import registry
from tconv.errors import TconvError
from tconv.tensor import Extra, Spec, Tensor
from tconv.writer import ReadOptions, Writer

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.registry import Format

_REMEDY = "nothing was put in place; memory or disk may be faulty: try again, and elsewhere"

_TEXTS_APART = ("npz", "safetensors")  # formats whose lists of texts are no part of a tree


class Comparison(Writer):
    """Takes the values of a file once more, as its writer did, and compares them with those in the file."""

    def __init__(
        self, specs: Sequence[Spec], extra: Extra, form: Format, target: Path, how: ReadOptions | None = None
    ) -> None:
        self.size = 0
        self._specs = specs
        self._format = form
        self._texts = extra.texts if form.name in _TEXTS_APART else {}
        self._target = target
        self._how = how or ReadOptions()
        self._written: list[Tensor] = []

    def open(self, path: Path) -> None:
        try:
            stream = registry.rereader(self._format)(path, self._specs[0].name, self._how)
        except TconvError as problem:
            raise self._unreadable(problem, problem.tensor) from problem
        for name, texts in self._texts.items():
            if stream.extra.texts.get(name) != texts:
                raise TconvError("reads back as other texts", file=self._target, tensor=name, remedy=_REMEDY)
        found = {t.spec.name: t for t in stream.tensors}
        if len(self._specs) == 1 and len(stream.tensors) == 1:
            found = {self._specs[0].name: stream.tensors[0]}  # a format that holds a nameless array
        for spec in self._specs:
            written = found.get(spec.name)
            if written is None:
                raise self._differs(spec, "is not there when it is read again")
            one_channel = (*spec.shape, 1)  # in which a picture that has none is read
            if written.spec.dtype != spec.dtype or written.spec.shape not in (spec.shape, one_channel):
                raise self._differs(spec, f"reads back as {written.spec.dtype} {written.spec.shape}")
            self._written.append(written)

    def write(self, i: int, lo: int, array: Array) -> None:
        spec = self._specs[i]
        try:
            got = self._written[i].source.read(lo, lo + array.size)
        except TconvError as problem:  # which knows the file by the name it has while it is made
            raise self._unreadable(problem, spec.name) from problem
        first = _first_difference(got, array)
        if first is not None:
            raise self._differs(spec, f"differs from what was written, first at element {lo + first}")

    def _unreadable(self, problem: TconvError, tensor: str) -> TconvError:
        return TconvError(f"does not read back: {problem.reason}", file=self._target, tensor=tensor, remedy=_REMEDY)

    def _differs(self, spec: Spec, how: str) -> TconvError:
        return TconvError(how, file=self._target, tensor=spec.name, remedy=_REMEDY)

    def commit(self) -> None: ...
    def abort(self) -> None: ...


def _first_difference(got: Array, meant: Array) -> int | None:
    """The first element that has other bits, or None. Of a complex one the parts count, each by itself.

    Any NaN is as good as another: which bits a cast makes of one is nobody's promise.
    """
    parts = 2 if meant.dtype.kind == "c" else 1
    a, b = (np.ascontiguousarray(x).reshape(-1) for x in (got, meant))
    if parts > 1:
        a, b = a.view(a.real.dtype), b.view(b.real.dtype)
    bits, others = (x.view(np.uint8).reshape(-1, x.dtype.itemsize) for x in (a, b))
    if np.array_equal(bits, others):
        return None
    differ = np.flatnonzero((bits != others).any(axis=1))
    if meant.dtype.kind not in "iub":
        differ = differ[~(np.isnan(a[differ]) & np.isnan(b[differ]))]
    return int(differ[0]) // parts if differ.size else None
