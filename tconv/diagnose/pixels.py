"""What the pixels of images tell that their headers do not: whether they are whole, and what is in them."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tconv.errors import TconvError
from tconv.formats.image.channels import blend
from tconv.formats.image.header import COLOURS
from tconv.hashing import sha256
from tconv.measure.elements import plain
from tconv.scan import scan

if TYPE_CHECKING:
    from tconv.diagnose.subjects import Subject
    from tconv.formats.image.header import Header
    from tconv.ops import Array
    from tconv.request import Progress

_STRIDE = 97  # of pixels, a first look at one of so many settles most questions


@dataclass(frozen=True)
class Pixels:
    """``lowest`` and ``highest`` are of the colours, where there is alpha of those over white, None if a value is NaN;
    ``grey``: three colours that are the same everywhere; ``opaque``: alpha is there and lets nothing through.
    """

    digest: bytes
    lowest: float | None
    highest: float | None
    grey: bool
    opaque: bool

    @property
    def flat(self) -> bool:
        """Whether all of it has one value, of all colours."""
        return self.lowest is not None and self.lowest == self.highest


def look(subjects: Sequence[Subject], progress: Progress) -> None:
    """Decode every image that is not refused already, and note what is in it or why that is not to be had."""
    waiting = [one for one in subjects if one.problem is None]
    while waiting:
        _look(waiting, progress)
        waiting = [one for one in waiting if one.pixels is None and one.problem is None]


def _look(subjects: Sequence[Subject], progress: Progress) -> None:
    """As ``look``, but that the scan may give up when very many files are broken."""
    by_path = {one.path: one for one in subjects}

    def visit(i: int, lo: int, values: Array) -> None:
        one = subjects[i]
        one.pixels = inspect(values.reshape(one.tensor.spec.shape), one.header)

    for problem in scan([one.tensor for one in subjects], visit, progress):
        by_path[Path(problem.file)].problem = problem


def inspect(x: Array, header: Header) -> Pixels:
    """What there is in an image (height, width, channels) in the file's own channels.

    Colours that are stored where it is transparent are nobody's: what is judged is what a conversion makes of it.
    """
    colours = COLOURS[header.colour]
    seen = _visible(x) if header.alpha else x
    blended = header.alpha and header.white is not None
    shown = blend(x, header.white, over_white=True) if blended else seen[..., :colours]
    digest = hashlib.sha256(np.ascontiguousarray(seen).data).digest()
    values = plain(shown.reshape(-1), header.dtype) if header.dtype.is_float else shown
    low, high = float(values.min()), float(values.max())
    if math.isnan(low):
        return Pixels(digest, None, None, False, False)
    return Pixels(digest, low, high, _grey(shown), _opaque(x[..., colours:], header))


def _visible(x: Array) -> Array:
    """The same with nothing where alpha, the last channel, is nothing."""
    hidden = x[..., -1:] == 0
    return np.where(hidden, x.dtype.type(0), x) if hidden.any() else x


def _grey(x: Array) -> bool:
    if x.shape[2] != 3:
        return False
    some = x.reshape(-1, 3)[::_STRIDE]
    return _same(some) and _same(x)


def _same(x: Array) -> bool:
    return bool((x[..., 0] == x[..., 1]).all() and (x[..., 0] == x[..., 2]).all())


def _opaque(alpha: Array, header: Header) -> bool:
    return bool(alpha.size) and header.white is not None and int(alpha.min()) == header.white


def find_twins(subjects: Sequence[Subject], progress: Progress) -> None:
    """Note of each image whether an earlier one has the same bytes, or else the same pixels."""
    alike: dict[tuple[object, ...], list[Subject]] = defaultdict(list)
    for one in subjects:
        if one.pixels is not None:
            spec = one.tensor.spec
            alike[one.pixels.digest, spec.shape, spec.dtype.name].append(one)
    groups = [group for group in alike.values() if len(group) > 1]
    progress.begin("comparing duplicates", sum(map(len, groups)), "files")
    for group in groups:
        first: dict[str, Path] = {}
        for one in group:
            try:
                key = sha256(one.path)
            except OSError as problem:
                one.problem = TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path)
                continue
            if key in first:
                one.bytes_as = first[key]
            elif first:
                one.pixels_as = next(iter(first.values()))
            first.setdefault(key, one.path)
            progress.advance(1)
