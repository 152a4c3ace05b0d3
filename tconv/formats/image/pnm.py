"""Netpbm's PBM, PGM and PPM, plain and raw (netpbm.sourceforge.net/doc/pnm.html), in NumPy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from tconv.formats.image.header import BOOL, UINT8, UINT16, Colour, Header, Picture

if TYPE_CHECKING:
    from tconv.ops import Array

_HEADER_BYTES = 65536  # a longer header is all comment, and none of ours
_SPACE = rb"(?:\s|#[^\r\n]*[\r\n])+"
_BITMAP = re.compile(rb"P([14])" + _SPACE + rb"(\d{1,9})" + _SPACE + rb"(\d{1,9})\s")
_GRAYMAP = re.compile(rb"P([2356])" + _SPACE + rb"(\d{1,9})" + _SPACE + rb"(\d{1,9})" + _SPACE + rb"(\d{1,5})\s")


class _Layout(NamedTuple):
    plain: bool
    samples: int
    width: int
    height: int
    largest: int  # the value that is white; 0 in a bitmap
    start: int  # of the pixels


def scan(file: BinaryIO, every: bool) -> Header:
    """The header.

    Values of up to 8 bits are scaled so that the file's largest is 255, as everywhere; larger ones are left as they
    are, and the header says which is white.
    """
    layout = _layout(file.read(_HEADER_BYTES))
    colour: Colour = "rgb" if layout.samples == 3 else "gray"
    deep = layout.largest > 255
    dtype = BOOL if layout.largest == 0 else UINT16 if deep else UINT8
    return Header(layout.width, layout.height, colour, False, dtype, layout.largest if deep else 255)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    layout = _layout(data[:_HEADER_BYTES])
    if layout.largest == 0:
        values = _plain_bits(data, layout) if layout.plain else _raw_bits(data, layout)
    else:
        values = _plain(data, layout) if layout.plain else _raw(data, layout)
        values = _scaled(values, layout.largest)
    yield Picture(values.reshape(layout.height, layout.width, layout.samples))


def _layout(head: bytes) -> _Layout:
    if found := _BITMAP.match(head):
        kind, width, height = map(int, found.groups())
        return _Layout(kind == 1, 1, width, height, 0, found.end())
    if found := _GRAYMAP.match(head):
        kind, width, height, largest = map(int, found.groups())
        if not 0 < largest < 65536:
            raise ValueError(f"a largest value of {largest}")
        return _Layout(kind < 4, 3 if kind in (3, 6) else 1, width, height, largest, found.end())
    raise ValueError("a header that is incomplete")


def _plain_bits(data: bytes, layout: _Layout) -> Array:
    count = layout.width * layout.height
    digits = b"".join(_without_comments(data[layout.start :]).split())[:count]
    if len(digits) < count:
        raise EOFError("it ends before its last pixel")
    if digits.strip(b"01"):
        raise ValueError("a pixel that is neither 0 nor 1")
    white: Array = np.frombuffer(digits, np.uint8) == ord("0")
    return white


def _raw_bits(data: bytes, layout: _Layout) -> Array:
    row = -(-layout.width // 8)
    packed = _taken(data, layout.start, row * layout.height).reshape(layout.height, row)
    white: Array = np.unpackbits(packed, axis=1, count=layout.width) == 0
    return white


def _plain(data: bytes, layout: _Layout) -> Array:
    count = layout.width * layout.height * layout.samples
    # Numbers are followed by white space; one that is not may have been cut off.
    numbers = re.findall(rb"\S+(?=\s)", _without_comments(data[layout.start :]))[:count]
    if len(numbers) < count:
        raise EOFError("it ends before its last pixel, or without white space behind it")
    if not b"".join(numbers).isdigit():
        raise ValueError("a value that is no number")
    values = np.array([int(n) for n in numbers])
    if values.max() > layout.largest:
        raise ValueError(f"a value beyond the {layout.largest} that it states as its largest")
    return values.astype(np.uint8 if layout.largest < 256 else np.uint16)


def _raw(data: bytes, layout: _Layout) -> Array:
    count = layout.width * layout.height * layout.samples
    if layout.largest < 256:
        values = _taken(data, layout.start, count)
    else:
        values = _taken(data, layout.start, count * 2).view(">u2").astype(np.uint16)
    if values.max() > layout.largest:
        raise ValueError(f"a value beyond the {layout.largest} that it states as its largest")
    return values


def _scaled(values: Array, largest: int) -> Array:
    if largest >= 255:
        return values
    table = [round(Fraction(v * 255, largest)) for v in range(largest + 1)]
    return np.array(table, np.uint8)[values]


def _taken(data: bytes, start: int, count: int) -> Array:
    if len(data) - start < count:
        raise EOFError(f"its pixels should take {count} bytes, and {len(data) - start} are there")
    return np.frombuffer(data, np.uint8, count, start)


def _without_comments(text: bytes) -> bytes:
    return re.sub(rb"#[^\r\n]*", b"", text)
