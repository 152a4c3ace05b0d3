"""PFM, the portable float map: grey or RGB of float32, the last row first (www.pauldebevec.com/Research/HDR/PFM)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from tconv.dtypes import DTYPES
from tconv.formats.image.header import Header, Picture

_HEADER_BYTES = 256
_HEADER = re.compile(rb"P([Ff])\s+(\d{1,9})\s+(\d{1,9})\s+([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s")


class _Layout(NamedTuple):
    samples: int
    width: int
    height: int
    order: str
    start: int  # of the pixels


def scan(file: BinaryIO, every: bool) -> Header:
    """The header. The values are left as they are: the size of its scale is a unit that nobody uses."""
    layout = _layout(file.read(_HEADER_BYTES))
    _check_length(file.seek(0, 2), layout)
    return Header(
        layout.width, layout.height, "rgb" if layout.samples == 3 else "gray", False, DTYPES["float32"], white=None
    )


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    layout = _layout(data[:_HEADER_BYTES])
    size = layout.width * layout.height * layout.samples
    values = np.frombuffer(data, f"{layout.order}f4", size, layout.start).astype(np.float32)
    yield Picture(values.reshape(layout.height, layout.width, layout.samples)[::-1])


def _layout(head: bytes) -> _Layout:
    found = _HEADER.match(head)
    if found is None:
        raise ValueError("a header that is incomplete")
    kind, width, height, scale = found.groups()
    value = float(scale)
    if value == 0 or not np.isfinite(value):
        raise ValueError(f"a scale of {value}, whose sign should tell the byte order")
    return _Layout(3 if kind == b"F" else 1, int(width), int(height), "<" if value < 0 else ">", found.end())


def _check_length(length: int, layout: _Layout) -> None:
    needed = 4 * layout.width * layout.height * layout.samples
    if length - layout.start < needed:
        raise EOFError(f"its pixels should take {needed} bytes, and {length - layout.start} are there")
