"""JPEG 2000 (ISO/IEC 15444-1): tile-parts walked by us, pixels of 8 bits by Pillow, deeper ones by OpenCV."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from tconv.errors import TconvError
from tconv.formats.image.boxes import Box, contents, inside, read
from tconv.formats.image.header import UINT16, Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.pillow import first

_PLUGIN = "Jpeg2KImagePlugin.Jpeg2KImageFile"
_START = b"\xff\x4f\xff\x51"  # of a codestream: its marker, and that of the sizes
_TILE, _END = 0xFF90, 0xFFD9
_LONGEST_SIZES = 38 + 3 * 16384  # bytes of a SIZ segment, without its marker
_COLOURS: dict[int, tuple[Colour, bool]] = {
    1: ("gray", False), 2: ("gray", True), 3: ("rgb", False), 4: ("rgb", True),
}  # fmt: skip
_INKS: tuple[Colour, bool] = ("cmyk", False)
_CMYK, _SRGB, _GREY, _YCC = 12, 16, 17, 18  # the colour spaces that are read
_RESAVE = "save it as PNG or TIFF"


@dataclass(frozen=True)
class _Sizes:
    """The SIZ segment."""

    width: int
    height: int
    tiles: int
    depths: tuple[int, ...]  # of the components, negative if they are signed
    steps: tuple[tuple[int, int], ...]  # across and down, from one sample of a component to the next


def scan(file: BinaryIO, every: bool) -> Header:
    """The header; all tile-parts are known to lie within the file, but their data are not read."""
    stream, around = _parts(file)
    sizes = _sizes(file, stream)
    _check_tiles(file, stream, sizes.tiles)
    space, profile = _colours(file, around) if around else (None, "")
    if not _readable(sizes, space):
        raise TconvError(_unread(sizes, space), remedy=_RESAVE)
    if around and _holds_palette(file, around):
        raise TconvError("a JPEG 2000 image with a palette, which tconv does not read", remedy=_RESAVE)
    colour, alpha = _INKS if space == _CMYK else _COLOURS[len(sizes.depths)]
    depth = sizes.depths[0]
    if depth <= 8:
        return Header(sizes.width, sizes.height, colour, alpha, profile=profile)
    return Header(sizes.width, sizes.height, colour, alpha, UINT16, (1 << depth) - 1, profile=profile)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """Few bits are scaled to 8; more than 8 are left as they are, in uint16."""
    if header.dtype is UINT16:  # Pillow would cut colours to 8 bits
        from tconv.formats.image.opencv import decode_one

        yield Picture(decode_one(data))
        return
    pixels, file = first(_PLUGIN, data, header).pixels, io.BytesIO(data)
    depth = _sizes(file, _parts(file)[0]).depths[0]
    if depth < 8:
        # Pillow has shifted them to the top.
        table = np.rint(np.arange(1 << depth) * (255 / ((1 << depth) - 1))).astype(np.uint8)
        pixels = table[pixels >> (8 - depth)]
    yield Picture(pixels)


def _readable(sizes: _Sizes, space: int | None) -> bool:
    count, depth = len(sizes.depths), sizes.depths[0]
    known = count in _COLOURS and len(set(sizes.depths)) == 1 and 0 < depth <= 16
    if not known or space not in (None, _CMYK, _SRGB, _GREY, _YCC) or (space == _CMYK and count != 4):
        return False
    subsampled = any(step != (1, 1) for step in sizes.steps)
    return depth <= 8 or not (count == 2 or subsampled or space in (_CMYK, _YCC))  # which OpenCV does not know


def _parts(file: BinaryIO) -> tuple[Box, Box | None]:
    """The codestream, and the header box if there are boxes around it."""
    end = file.seek(0, 2)
    if read(file, 0, 4) == _START:
        return Box(b"", 0, end), None
    whole = Box(b"", 0, end)
    stream, around = inside(file, whole, b"jp2c"), inside(file, whole, b"jp2h")
    if stream is None or around is None or read(file, stream.start, 4) != _START:
        raise ValueError("no codestream, or no header before it")
    return stream, around


def _sizes(file: BinaryIO, stream: Box) -> _Sizes:
    body = read(file, stream.start + len(_START), _LONGEST_SIZES)
    length, _, *numbers, components = struct.unpack_from(">HH8IH", body)
    right, bottom, left, top, tile_width, tile_height, tile_left, tile_top = numbers
    if length != 38 + 3 * components or not components or not tile_width or not tile_height:
        raise ValueError("a senseless SIZ segment")
    across = -(-(right - tile_left) // tile_width)
    down = -(-(bottom - tile_top) // tile_height)
    each = [struct.unpack_from(">BBB", body, 38 + 3 * i) for i in range(components)]
    depths = tuple((1 + (bits & 0x7F)) * (-1 if bits & 0x80 else 1) for bits, _, _ in each)
    return _Sizes(right - left, bottom - top, across * down, depths, tuple((x, y) for _, x, y in each))


def _check_tiles(file: BinaryIO, stream: Box, tiles: int) -> None:
    """Refuse a codestream that ends early, or lacks tiles: decoders leave grey what is not there."""
    at, seen = stream.start + 2, set[int]()
    while True:
        if at + 2 > stream.end:
            raise EOFError("it ends before its end marker")
        (marker,) = struct.unpack(">H", read(file, at, 2))
        if marker == _END:
            break
        length, tile, tile_length = struct.unpack(">HHI", read(file, at + 2, 8))
        if marker != _TILE:
            at += 2 + length
            continue
        seen.add(tile)
        # The last one may leave its length open.
        at = at + tile_length if tile_length else stream.end - 2
        if tile_length and tile_length < 14:
            raise ValueError("a tile-part shorter than its own header")
    if len(seen) < tiles:
        raise EOFError(f"it has {len(seen)} of its {tiles} tiles")


def _colours(file: BinaryIO, around: Box) -> tuple[int | None, str]:
    """The number of the colour space, None where an ICC profile defines it, and what that one calls it."""
    found = inside(file, around, b"colr")
    if found is None:
        return None, ""
    body = contents(file, found)
    if body[0] == 1:
        return int.from_bytes(body[3:7], "big"), ""
    return None, unusual(body[3:])


def _holds_palette(file: BinaryIO, around: Box) -> bool:
    return inside(file, around, b"pclr") is not None


def _unread(sizes: _Sizes, space: int | None) -> str:
    depths = ", ".join(f"{'u' * (depth > 0)}int{abs(depth)}" for depth in sizes.depths[:5])
    steps = "" if all(step == (1, 1) for step in sizes.steps) else ", subsampled"
    colours = "" if space is None else f" of colour space {space}"
    return f"a JPEG 2000 image{colours} with components of {depths}{steps}, which tconv does not read"
