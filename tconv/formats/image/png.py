"""PNG (ISO/IEC 15948) and APNG: chunks checked by us, pixels by Pillow, deep ones by OpenCV; in and out."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np

from tconv.formats.image import apng, chunks
from tconv.formats.image.chunks import Chunk, Layout
from tconv.formats.image.header import BOOL, UINT8, UINT16, Header, Picture
from tconv.formats.image.writer import ImageWriter

if TYPE_CHECKING:
    from tconv.ops import Array

_LEVEL = 4  # of zlib: half the time that Pillow's own 6 takes, for some two bytes in a hundred more
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # Adam7


def scan(file: BinaryIO, every: bool) -> Header:
    """The header; all chunks are walked, as EXIF data may stand behind the pixels, but their data are not read."""
    found = chunks.chunks(file)
    layout = chunks.layout(file, found)
    colour, alpha, _ = chunks.KINDS[layout.kind]
    alpha = alpha or bool(layout.transparent)
    dtype = UINT16 if layout.depth == 16 else BOOL if layout.depth == 1 and colour == "gray" and not alpha else UINT8
    header = Header(
        layout.width, layout.height, colour, alpha, dtype, 65535 if dtype is UINT16 else 255,
        _frames(file, found), chunks.turned(file, found), chunks.profile(file, found), library=_library(layout),
    )  # fmt: skip
    return _animated(header, _controls(file, found, layout)) if every and header.frames > 1 else header


def _library(layout: Layout) -> str:
    """Pillow would cut the colours of 16 bits to 8."""
    return "Pillow" if layout.depth < 16 or layout.kind == 0 else "OpenCV"


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """The still image; or with ``count`` over one all frames, composited, in the header's channels."""
    file = io.BytesIO(data)
    found = chunks.chunks(file)
    for kind, at, length in found:
        if zlib.crc32(data[at - 4 : at + length]) != int.from_bytes(data[at + length : at + length + 4], "big"):
            raise ValueError(f"the checksum of its chunk {kind!r} is wrong")
    layout = chunks.layout(file, found)
    if count > 1:
        yield from _all(data, found, layout, header, count)
    else:
        yield _picture(_stream(data, found), layout)


def _frames(file: BinaryIO, found: list[Chunk]) -> int:
    """How many frames there are, as Pillow counts: a default image that is no frame of the animation is one more."""
    ahead = {chunk.kind: chunk for chunk in chunks.before_pixels(found)}
    if b"acTL" not in ahead:
        return 1
    stated = int.from_bytes(chunks.body(file, ahead[b"acTL"])[:4], "big")
    return max(1, stated + (b"fcTL" not in ahead)) if stated else 1


# ---------------------------------------------------------------------------------------------- one image
def _stream(data: bytes, found: Sequence[Chunk]) -> bytes:
    return b"".join(data[c.at : c.at + c.length] for c in found if c.kind == b"IDAT")


def _picture(stream: bytes, layout: Layout) -> Picture:
    """The image that the compressed rows make."""
    # Decoders get what makes the image and nothing else: no text, profile or animation to trip over.
    rows = zlib.compress(_inflate(stream, layout), 0)
    method = struct.pack(">IIBB3B", layout.width, layout.height, layout.depth, layout.kind, 0, 0, layout.interlaced)
    parts = [chunks.SIGNATURE, _chunk(b"IHDR", method)]
    if layout.colours:
        parts.append(_chunk(b"PLTE", layout.colours))
    pixels = _decoded(b"".join([*parts, _chunk(b"IDAT", rows), _chunk(b"IEND", b"")]), layout)
    if layout.kind == 3:
        return Picture(pixels, _palette(layout))
    return Picture(_keyed(pixels, layout) if layout.transparent else pixels)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return b"".join([struct.pack(">I", len(body)), kind, body, struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))])


def _decoded(plain: bytes, layout: Layout) -> Array:
    if _library(layout) == "Pillow":
        from tconv.formats.image.pillow import first

        return first("PngImagePlugin.PngImageFile", plain, Header(layout.width, layout.height, "rgb")).pixels
    from tconv.formats.image.opencv import decode_one

    pixels = decode_one(plain)
    return pixels[..., [0, 3]] if layout.kind == 4 else pixels


def _palette(layout: Layout) -> Array:
    table = np.full((len(layout.colours) // 3, 4), 255, np.uint8)
    table[:, :3] = np.frombuffer(layout.colours, np.uint8).reshape(-1, 3)
    alpha = np.frombuffer(layout.transparent, np.uint8)[: len(table)]
    table[: len(alpha), 3] = alpha
    return table


def _keyed(pixels: Array, layout: Layout) -> Array:
    """An alpha channel that is clear where a pixel has the tRNS chunk's colour."""
    largest = (1 << layout.depth) - 1
    key = np.frombuffer(layout.transparent, ">u2") & largest
    if layout.depth < 8:  # such samples have been scaled to 8 bits, or are bool
        key = key * (255 // largest)
    if layout.depth == 1:
        pixels = pixels.view(np.uint8) * np.uint8(255)
    opaque = (pixels != key).any(axis=-1, keepdims=True)
    return np.concatenate([pixels, opaque * pixels.dtype.type(np.iinfo(pixels.dtype).max)], axis=-1)


def _inflate(stream: bytes, layout: Layout) -> bytes:
    """The filtered rows. Decoders leave the rest black, or print a line, where there are too few or senseless ones."""
    width, height = layout.width, layout.height
    steps = _PASSES if layout.interlaced else ((0, 0, 1, 1),)
    bits = layout.depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[layout.kind]
    sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in steps]
    passes = [(1 + -(-bits * columns // 8), rows) for columns, rows in sizes if columns > 0 and rows > 0]
    total = sum(length * rows for length, rows in passes)
    raw = zlib.decompressobj().decompress(stream, total)
    if len(raw) < total:
        raise EOFError(f"its pixels should take {total} bytes, and {len(raw)} are there")
    filters, at = np.frombuffer(raw, np.uint8), 0
    for length, rows in passes:
        if filters[at : at + length * rows : length].max() > 4:
            raise ValueError("a row with an unknown filter")
        at += length * rows
    return raw


# ---------------------------------------------------------------------------------------------- animations
def _controls(file: BinaryIO, found: Sequence[Chunk], layout: Layout) -> list[apng.Frame]:
    bodies = [chunks.body(file, chunk) for chunk in found if chunk.kind == b"fcTL"]
    return [apng.control(body, layout.width, layout.height) for body in bodies]


def _animated(header: Header, controls: list[apng.Frame]) -> Header:
    """Frames are put together in grey or RGB, in at least 8 bits."""
    clear = bool(controls) and apng.uncovers(controls, header.width, header.height)
    colour = "rgb" if header.colour == "palette" else header.colour
    dtype = UINT8 if header.dtype is BOOL else header.dtype
    return replace(header, colour=colour, alpha=header.alpha or clear, dtype=dtype)


def _all(data: bytes, found: list[Chunk], layout: Layout, header: Header, count: int) -> Iterator[Picture]:
    """The default image if it is no frame, and the frames."""
    if all(chunk.kind != b"fcTL" for chunk in chunks.before_pixels(found)):
        yield Picture(_plain(_picture(_stream(data, found), layout), header))
        count -= 1
    frames = (
        (frame, _plain(_picture(stream, sized), header)) for frame, sized, stream in _streams(data, found, layout)
    )
    for canvas in apng.composited(islice(frames, count), layout.width, layout.height):
        yield Picture(canvas)


def _streams(data: bytes, found: list[Chunk], layout: Layout) -> Iterator[tuple[apng.Frame, Layout, bytes]]:
    """Place, size and compressed rows of the frames, in order."""
    frame: apng.Frame | None = None
    parts, numbers = list[bytes](), 0
    for kind, at, length in found:
        if kind in (b"fcTL", b"IEND"):
            if frame and not parts:
                raise EOFError("a frame without data")
            if frame:
                yield frame, replace(layout, width=frame.width, height=frame.height), b"".join(parts)
            parts = []
        if kind in (b"fcTL", b"fdAT"):
            if int.from_bytes(data[at : at + 4], "big") != numbers:
                raise ValueError("its frames are out of order")
            numbers += 1
        if kind == b"fcTL":
            frame = apng.control(data[at : at + length], layout.width, layout.height)
        elif frame and kind in (b"IDAT", b"fdAT"):
            parts.append(data[at + (4 if kind == b"fdAT" else 0) : at + length])


def _plain(picture: Picture, header: Header) -> Array:
    """The colours of a frame in the header's channels."""
    pixels, table = picture
    if table is not None:
        pixels = table[pixels[..., 0]]
    elif pixels.dtype == np.bool_:
        pixels = pixels.view(np.uint8) * np.uint8(255)
    colours = 1 if header.colour == "gray" else 3
    if header.alpha and pixels.shape[2] == colours:
        opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
        return np.concatenate([pixels, opaque], axis=-1)
    return pixels if header.alpha else pixels[..., :colours]


class PngWriter(ImageWriter):
    """Samples as they are: of 8 and 16 bits, and of bool one bit, where True is white, as in Pillow's mode 1."""

    title = "PNG"
    channels: ClassVar = {"uint8": (1, 2, 3, 4), "uint16": (1, 2, 3, 4), "bool": (1,)}
    largest = 1_000_000  # what libpng reads unless it is told to read more

    def encode(self, pixels: Array) -> bytes:
        if pixels.dtype == np.uint16:
            if pixels.shape[2] == 2:
                return _grey_with_opacity(pixels)
            from tconv.formats.image.opencv import encode

            return encode(".png", pixels)
        from tconv.formats.image.pillow import encoded

        return encoded("PngImagePlugin", "PNG", pixels, compress_level=_LEVEL)


def _grey_with_opacity(pixels: Array) -> bytes:
    """The file of (height, width, 2) of uint16, which neither Pillow nor OpenCV writes."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # each begins with the number of its filter: none
    rows[:, 1:] = pixels.astype(">u2").view(np.uint8).reshape(height, -1)
    method = struct.pack(">IIBB3B", width, height, 16, 4, 0, 0, 0)
    data = _chunk(b"IDAT", zlib.compress(rows.tobytes(), _LEVEL))
    return b"".join([chunks.SIGNATURE, _chunk(b"IHDR", method), data, _chunk(b"IEND", b"")])
