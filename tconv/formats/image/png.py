"""PNG (ISO/IEC 15948) and APNG: chunks and their data checked by us, pixels by Pillow, deep ones by OpenCV."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from tconv.errors import TconvError
from tconv.formats.image.exif import orientation
from tconv.formats.image.header import BOOL, UINT8, UINT16, Colour, Header, Picture

if TYPE_CHECKING:
    from tconv.ops import Array

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_CHUNKS = 1 << 20  # a list of more costs more memory than any image is worth
_KINDS: dict[int, tuple[Colour, bool, tuple[int, ...]]] = {  # colour type: colour, alpha, depths
    0: ("gray", False, (1, 2, 4, 8, 16)),
    2: ("rgb", False, (8, 16)),
    3: ("palette", False, (1, 2, 4, 8)),
    4: ("gray", True, (8, 16)),
    6: ("rgb", True, (8, 16)),
}
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # Adam7


class Chunk(NamedTuple):
    kind: bytes
    at: int  # where its data begin
    length: int


@dataclass(frozen=True)
class _Layout:
    """The IHDR chunk, and what rides with it."""

    width: int
    height: int
    depth: int
    kind: int
    interlaced: bool
    transparent: bytes = b""  # tRNS
    colours: bytes = b""  # PLTE


def scan(file: BinaryIO, every: bool) -> Header:
    """The header; all chunks are walked, as EXIF data may stand behind the pixels, but their data are not read."""
    chunks = _chunks(file)
    layout = _layout(file, chunks)
    colour, alpha, _ = _KINDS[layout.kind]
    frames = _frames(file, chunks)
    if frames > 1 and every:
        return _animated(layout, frames, _turned(file, chunks))
    alpha = alpha or bool(layout.transparent)
    dtype = UINT16 if layout.depth == 16 else BOOL if layout.depth == 1 and colour == "gray" and not alpha else UINT8
    white = 65535 if dtype is UINT16 else 255
    return Header(layout.width, layout.height, colour, alpha, dtype, white, frames, _turned(file, chunks))


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """The still image; or with ``count`` over one all frames, composited, in the header's channels."""
    file = io.BytesIO(data)
    chunks = _chunks(file)
    for kind, at, length in chunks:
        if zlib.crc32(data[at - 4 : at + length]) != int.from_bytes(data[at + length : at + length + 4], "big"):
            raise ValueError(f"the checksum of its chunk {kind!r} is wrong")
    layout = _layout(file, chunks)
    if count > 1:
        for width, height, stream in _streams(data, chunks, layout):
            _inflate(stream, width, height, layout)
        yield from _composited(data, header, count)
    else:
        yield _still(data, chunks, layout, header)


def _chunks(file: BinaryIO) -> list[Chunk]:
    """All chunks up to the end marker, each known to lie within the file."""
    size = file.seek(0, 2)
    at, found = len(_SIGNATURE), list[Chunk]()
    while not found or found[-1].kind != b"IEND":
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise EOFError("it ends before its end marker")
        length = int.from_bytes(head[:4], "big")
        if at + 12 + length > size:
            raise EOFError(f"it ends within its chunk {head[4:]!r}")
        found.append(Chunk(head[4:], at + 8, length))
        if len(found) > _MAX_CHUNKS:
            raise ValueError(f"more than {_MAX_CHUNKS} chunks")
        at += 12 + length
    return found


def _body(file: BinaryIO, chunk: Chunk) -> bytes:
    file.seek(chunk.at)
    return file.read(chunk.length)


def _before_pixels(chunks: list[Chunk]) -> list[Chunk]:
    for i, chunk in enumerate(chunks):
        if chunk.kind == b"IDAT":
            return chunks[:i]
    raise ValueError("no pixels (IDAT chunk)")


def _layout(file: BinaryIO, chunks: list[Chunk]) -> _Layout:
    ahead = {chunk.kind: chunk for chunk in _before_pixels(chunks)}
    if chunks[0].kind != b"IHDR" or chunks[0].length != 13:
        raise ValueError("it does not begin with an IHDR chunk of 13 bytes")
    width, height, depth, kind, *methods = struct.unpack(">IIBBBBB", _body(file, chunks[0]))
    if kind not in _KINDS or depth not in _KINDS[kind][2] or methods[:2] != [0, 0] or methods[2] > 1:
        raise ValueError(f"no such colour type, depth or method: {kind}, {depth}, {methods}")
    transparent = _body(file, ahead[b"tRNS"]) if b"tRNS" in ahead and kind in (0, 2, 3) else b""
    colours = _body(file, ahead[b"PLTE"]) if b"PLTE" in ahead else b""
    if kind == 3 and (not colours or len(colours) % 3 or len(colours) > 768):
        raise ValueError(f"a palette of {len(colours)} bytes")
    if transparent and kind != 3 and len(transparent) != {0: 2, 2: 6}[kind]:
        raise ValueError(f"a transparent colour of {len(transparent)} bytes")
    return _Layout(width, height, depth, kind, methods[2] == 1, transparent, colours)


def _turned(file: BinaryIO, chunks: list[Chunk]) -> int | None:
    exif = next((c for c in chunks if c.kind == b"eXIf"), None)
    return orientation(_body(file, exif)) if exif else 1


def _frames(file: BinaryIO, chunks: list[Chunk]) -> int:
    """How many frames there are, as Pillow counts: a default image that is no frame of the animation is one more."""
    ahead = {chunk.kind: chunk for chunk in _before_pixels(chunks)}
    if b"acTL" not in ahead:
        return 1
    stated = int.from_bytes(_body(file, ahead[b"acTL"])[:4], "big")
    return max(1, stated + (b"fcTL" not in ahead)) if stated else 1


def _animated(layout: _Layout, frames: int, turned: int | None) -> Header:
    if layout.depth == 16 or (layout.transparent and layout.kind == 0 and layout.depth < 8):
        raise TconvError(
            f"an animation of {layout.depth} bits a channel, of which tconv reads the first frame only",
            remedy="leave --frames all out",
        )
    alpha = layout.kind in (4, 6) or bool(layout.transparent)
    colour: Colour = "gray" if layout.kind == 0 and not alpha else "rgb"
    return Header(layout.width, layout.height, colour, alpha, frames=frames, orientation=turned)


def _composited(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    from tconv.formats.image.pillow import frames

    mode = "L" if header.colour == "gray" else "RGBA" if header.alpha else "RGB"
    return frames("PngImagePlugin.PngImageFile", data, header, count, mode)


def _still(data: bytes, chunks: list[Chunk], layout: _Layout, header: Header) -> Picture:
    # Decoders get what makes the image and nothing else: no text, profile or animation to trip over.
    stream = b"".join(data[c.at : c.at + c.length] for c in chunks if c.kind == b"IDAT")
    rows = zlib.compress(_inflate(stream, layout.width, layout.height, layout), 0)
    head = [data[c.at - 8 : c.at + c.length + 4] for c in chunks if c.kind in (b"IHDR", b"PLTE")]
    plain = b"".join([_SIGNATURE, *head, _chunk(b"IDAT", rows), _chunk(b"IEND", b"")])
    pixels = _decoded(plain, layout, header)
    if layout.kind == 3:
        return Picture(pixels, _palette(layout))
    return Picture(_keyed(pixels, layout) if layout.transparent else pixels)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return b"".join([struct.pack(">I", len(body)), kind, body, struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))])


def _decoded(plain: bytes, layout: _Layout, header: Header) -> Array:
    if layout.depth < 16 or layout.kind == 0:
        from tconv.formats.image.pillow import first

        return first("PngImagePlugin.PngImageFile", plain, header).pixels
    from tconv.formats.image.opencv import decode_one  # Pillow would cut them to 8 bits

    pixels = decode_one(plain)
    return pixels[..., [0, 3]] if layout.kind == 4 else pixels


def _palette(layout: _Layout) -> Array:
    table = np.full((len(layout.colours) // 3, 4), 255, np.uint8)
    table[:, :3] = np.frombuffer(layout.colours, np.uint8).reshape(-1, 3)
    alpha = np.frombuffer(layout.transparent, np.uint8)[: len(table)]
    table[: len(alpha), 3] = alpha
    return table


def _keyed(pixels: Array, layout: _Layout) -> Array:
    """An alpha channel that is clear where a pixel has the tRNS chunk's colour."""
    largest = (1 << layout.depth) - 1
    key = np.frombuffer(layout.transparent, ">u2") & largest
    if layout.depth < 8:  # such samples have been scaled to 8 bits, or are bool
        key = key * (255 // largest)
    if layout.depth == 1:
        pixels = pixels.view(np.uint8) * np.uint8(255)
    opaque = (pixels != key).any(axis=-1, keepdims=True)
    return np.concatenate([pixels, opaque * pixels.dtype.type(np.iinfo(pixels.dtype).max)], axis=-1)


def _streams(data: bytes, chunks: list[Chunk], layout: _Layout) -> Iterator[tuple[int, int, bytes]]:
    """Width, height and compressed rows of the default image and of every frame of an animation."""
    width, height, parts = layout.width, layout.height, list[bytes]()
    for kind, at, length in chunks:
        if kind in (b"fcTL", b"IEND"):
            if parts:
                yield width, height, b"".join(parts)
                parts = []
            if kind == b"fcTL":
                width, height = struct.unpack_from(">II", data, at + 4)
                if not (0 < width <= layout.width and 0 < height <= layout.height):
                    raise ValueError(f"a frame of {width}x{height} on a canvas of {layout.width}x{layout.height}")
        elif kind in (b"IDAT", b"fdAT"):
            parts.append(data[at + (4 if kind == b"fdAT" else 0) : at + length])


def _inflate(stream: bytes, width: int, height: int, layout: _Layout) -> bytes:
    """The filtered rows. Decoders leave the rest black, or print a line, where there are too few or senseless ones."""
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
