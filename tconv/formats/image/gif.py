"""GIF (87a and 89a): blocks walked by us, so that a file that is cut off is known, pixels by Pillow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from tconv.errors import TconvError
from tconv.formats.image.header import Header, Picture
from tconv.formats.image.pillow import first, frames

_PLUGIN = "GifImagePlugin.GifImageFile"
_EXTENSION, _IMAGE, _TRAILER, _CONTROL = 0x21, 0x2C, 0x3B, 0xF9


class _Frame(NamedTuple):
    right: int
    bottom: int
    transparent: bool


def scan(file: BinaryIO, every: bool) -> Header:
    """The canvas, the frames and whether the first (or any, which is composited then) has a transparent colour."""
    data = file.read()
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    first: _Frame | None = None
    count = right = bottom = 0
    try:
        for frame in _walk(data, 13 + _palette_bytes(flags)):
            first = first or frame
            count, right, bottom = count + 1, max(right, frame.right), max(bottom, frame.bottom)
    except (IndexError, struct.error) as error:
        raise EOFError("it ends before its trailer") from error
    if first is None:
        raise ValueError("no image in it")
    # A first frame beyond the canvas enlarges it, as in Pillow.
    width, height = max(width, first.right), max(height, first.bottom)
    if not every or count == 1:
        return Header(width, height, "palette", first.transparent, frames=count)
    if right > width or bottom > height:
        raise TconvError("frames of unequal size: one reaches beyond the first", remedy="leave --frames all out")
    return Header(width, height, "rgb", alpha=True, frames=count)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """Indices and palette of the first frame, or all frames in RGBA, composited."""
    if count > 1:
        yield from frames(_PLUGIN, data, header, count, "RGBA")
    else:
        yield first(_PLUGIN, data, header)


def _walk(data: bytes, at: int) -> Iterator[_Frame]:
    """The frames from the first block at ``at`` to the trailer."""
    transparent = False
    while data[at] != _TRAILER:
        if data[at] == _EXTENSION:
            if data[at + 1] == _CONTROL:
                transparent = data[at + 3] & 1 == 1
            at = _behind(data, at + 2)
        elif data[at] == _IMAGE:
            left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at + 1)
            yield _Frame(left + width, top + height, transparent)
            transparent = False
            at = _behind(data, at + 11 + _palette_bytes(flags))
        elif data[at] == 0:  # a block terminator too many, which decoders pass over
            at += 1
        else:
            raise ValueError(f"an unknown block 0x{data[at]:02x}")


def _palette_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _behind(data: bytes, at: int) -> int:
    """Where the sub-blocks that begin at ``at`` end."""
    while data[at]:
        at += data[at] + 1
    return at + 1
