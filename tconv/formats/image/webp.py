"""WebP, by Pillow: RIFF chunks walked by us, so that size and completeness are known before libwebp allocates."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np

from tconv.formats.image.exif import orientation
from tconv.formats.image.header import Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.pillow import encoded, frames
from tconv.formats.image.writer import ImageWriter

if TYPE_CHECKING:
    from tconv.ops import Array

_PLUGIN = "WebPImagePlugin.WebPImageFile"
_ALPHA = 0x10
_BESIDES = (b"EXIF", b"XMP ", b"ICCP")


def scan(file: BinaryIO, every: bool) -> Header:
    """Canvas, alpha, frames, orientation and profile from the chunks around the pixels."""
    chunks = _chunks(file, file.seek(0, 2))
    kind, at, _ = next(chunks)
    if kind != b"VP8X":
        return Header(*_bitstream(kind, _read(file, at, 10)))
    flags, width, height = _canvas(_read(file, at, 10))
    alpha, count = bool(flags & _ALPHA), 0
    said = dict[bytes, bytes]()
    for kind, at, length in chunks:
        if kind in (b"ANMF", b"VP8 ", b"VP8L"):
            count += 1
        if kind == b"ALPH" or (kind == b"VP8L" and _bitstream(kind, _read(file, at, 10))[3]):
            alpha = True
        elif kind in _BESIDES:
            said[kind] = _read(file, at, length)
    exif, xmp, profile = (said.get(kind, b"") for kind in _BESIDES)
    turned = orientation(exif.removeprefix(b"Exif\0\0"), xmp)
    return Header(width, height, "rgb", alpha, frames=max(1, count), orientation=turned, profile=unusual(profile))


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """RGB or RGBA as the header says; frames are composited."""
    return frames(_PLUGIN, data, header, count, "RGBA" if header.alpha else "RGB")


def _chunks(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int, int]]:
    """(kind, where its data begin, length) of the chunks, each known to lie within the file."""
    end = 8 + int.from_bytes(_read(file, 4, 4), "little")
    if end > size:
        raise EOFError(f"it should have {end} bytes, and has {size}")
    at = 12
    while at + 8 <= end:
        kind, length = struct.unpack("<4sI", _read(file, at, 8))
        if at + 8 + length > end:
            raise EOFError("it ends within a chunk")
        yield kind, at + 8, length
        at += 8 + length + (length & 1)


def _read(file: BinaryIO, at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)


def _canvas(body: bytes) -> tuple[int, int, int]:
    return body[0], 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")


def _bitstream(kind: bytes, body: bytes) -> tuple[int, int, Colour, bool]:
    """Width, height, colour and alpha of a lossy (RFC 6386, 9.1) or lossless (RFC 9649, 3.4) image."""
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF, "rgb", False
    if kind != b"VP8L":
        raise ValueError(f"it begins with a chunk {kind!r}")
    (bits,) = struct.unpack_from("<I", body, 1)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, "rgb", bool(bits >> 28 & 1)


class WebpWriter(ImageWriter):
    """RGB (as which grey is written) or RGBA, lossless, also where a pixel is clear.

    What is opaque all over is RGB in the file: the library leaves such an opacity out.
    """

    title = "WebP"
    channels: ClassVar = {"uint8": (1, 3, 4)}
    largest = 16_383  # 14 bits

    def encode(self, pixels: Array) -> bytes:
        if pixels.shape[2] == 1:
            pixels = np.repeat(pixels, 3, axis=2)
        return encoded("WebPImagePlugin", "WEBP", pixels, lossless=True, exact=True)
