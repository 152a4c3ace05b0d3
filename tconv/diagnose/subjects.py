"""The images of a data set as doctor sees them: what their headers say, and what a conversion makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.errors import TconvError
from tconv.formats.image.header import describe
from tconv.formats.image.reader import ImageSource
from tconv.intake import read_all
from tconv.request import Request
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.diagnose.pixels import Pixels
    from tconv.formats.image.header import Header
    from tconv.inputs import Input
    from tconv.request import Progress
    from tconv.tensor import Spec, Tensor

ANY_SIZE = 10**15
DEFAULTS = ReadOptions()


@dataclass
class Subject:
    """An image that can be read, or looks as if: its header is sound.

    ``tensor`` has its own channels, ``spec`` is what a conversion without options for images makes of it (None where
    that is refused). ``problem``: why it cannot be converted. ``pixels``: None where they were not looked at, or not
    to be had. ``bytes_as`` and ``pixels_as``: the first file with the same bytes, or with other bytes and the same
    pixels.
    """

    input: Input
    tensor: Tensor
    header: Header
    spec: Spec | None
    problem: TconvError | None = None
    pixels: Pixels | None = None
    bytes_as: Path | None = None
    pixels_as: Path | None = None

    @property
    def path(self) -> Path:
        return self.input.path


def read_headers(inputs: Sequence[Input], progress: Progress) -> tuple[list[Subject], list[TconvError]]:
    """The images among the inputs, and why others cannot be read at all."""
    request = Request((), read=ReadOptions(channels="keep", max_pixels=ANY_SIZE))
    streams, failures = read_all(inputs, request, progress)
    return [_subject(one, streams[one.path].tensors[0]) for one in inputs if one.path in streams], failures


def _subject(one: Input, tensor: Tensor) -> Subject:
    source = tensor.source
    assert isinstance(source, ImageSource)  # what the reader of images gives
    try:
        return Subject(one, tensor, source.header, describe(one.name, source.header, DEFAULTS))
    except TconvError as problem:
        return Subject(one, tensor, source.header, None, problem.at(file=one.path))
