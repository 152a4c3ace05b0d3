"""Reads again what was written and compares it, bit for bit, with what it was made of, made once more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv import registry
from tconv.errors import TconvError
from tconv.tensor import Extra, ReadOptions, Spec, Tensor, Writer

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.registry import Format

_REMEDY = "nothing was put in place; memory or disk may be faulty: try again, and elsewhere"


class Comparison(Writer):
    """Takes the values of a file once more, as its writer did, and compares them with those in the file."""

    def __init__(
        self, specs: Sequence[Spec], extra: Extra, form: Format, target: Path, how: ReadOptions | None = None
    ) -> None:
        self.size = 0
        self._specs = specs
        self._format = form
        self._target = target
        self._how = how or ReadOptions()
        self._written: list[Tensor] = []

    def open(self, path: Path) -> None:
        try:
            stream = registry.rereader(self._format)(path, self._specs[0].name, self._how)
        except TconvError as problem:
            raise TconvError(
                f"does not read back: {problem.reason}", file=self._target, tensor=problem.tensor, remedy=_REMEDY
            ) from problem
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
        got = self._written[i].source.read(lo, lo + array.size)
        width = array.dtype.itemsize
        a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(-1, width) for x in (got, array))
        if not np.array_equal(a, b):
            differ = np.flatnonzero((a != b).any(axis=1))
            if array.dtype.kind not in "iub" and np.isnan(array[differ]).all() and np.isnan(got[differ]).all():
                return  # any NaN is as good as another: which bits a cast makes of one is nobody's promise
            first = lo + int(differ[0])
            raise self._differs(self._specs[i], f"differs from what was written, first at element {first}")

    def _differs(self, spec: Spec, how: str) -> TconvError:
        return TconvError(how, file=self._target, tensor=spec.name, remedy=_REMEDY)

    def commit(self) -> None: ...
    def abort(self) -> None: ...
