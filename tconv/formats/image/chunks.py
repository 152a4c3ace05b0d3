"""PNG's structure (ISO/IEC 15948): the chunks of a file, its layout, and what they say beside the pixels."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from tconv.formats.image.exif import orientation
from tconv.formats.image.header import Colour
from tconv.formats.image.icc import unusual

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KINDS: dict[int, tuple[Colour, bool, tuple[int, ...]]] = {  # colour type: colour, alpha, depths
    0: ("gray", False, (1, 2, 4, 8, 16)),
    2: ("rgb", False, (8, 16)),
    3: ("palette", False, (1, 2, 4, 8)),
    4: ("gray", True, (8, 16)),
    6: ("rgb", True, (8, 16)),
}
_MAX_CHUNKS = 1 << 20  # a list of more costs more memory than any image is worth
_LONGEST_TEXT = 1 << 20  # of what is unpacked for an orientation or a profile; as Pillow's MAX_TEXT_CHUNK
_RAW_EXIF, _XMP = b"Raw profile type exif", b"XML:com.adobe.xmp"
_TEXTS = frozenset((b"tEXt", b"zTXt", b"iTXt"))


class Chunk(NamedTuple):
    kind: bytes
    at: int  # where its data begin
    length: int


@dataclass(frozen=True)
class Layout:
    """The IHDR chunk, and what rides with it."""

    width: int
    height: int
    depth: int
    kind: int
    interlaced: bool
    transparent: bytes = b""  # tRNS
    colours: bytes = b""  # PLTE


def chunks(file: BinaryIO) -> list[Chunk]:
    """All chunks up to the end marker, each known to lie within the file."""
    size = file.seek(0, 2)
    at, found = len(SIGNATURE), list[Chunk]()
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


def body(file: BinaryIO, chunk: Chunk) -> bytes:
    file.seek(chunk.at)
    return file.read(chunk.length)


def before_pixels(found: list[Chunk]) -> list[Chunk]:
    for i, chunk in enumerate(found):
        if chunk.kind == b"IDAT":
            return found[:i]
    raise ValueError("no pixels (IDAT chunk)")


def layout(file: BinaryIO, found: list[Chunk]) -> Layout:
    ahead = {chunk.kind: chunk for chunk in before_pixels(found)}
    if found[0].kind != b"IHDR" or found[0].length != 13:
        raise ValueError("it does not begin with an IHDR chunk of 13 bytes")
    width, height, depth, kind, *methods = struct.unpack(">IIBBBBB", body(file, found[0]))
    if kind not in KINDS or depth not in KINDS[kind][2] or methods[:2] != [0, 0] or methods[2] > 1:
        raise ValueError(f"no such colour type, depth or method: {kind}, {depth}, {methods}")
    transparent = body(file, ahead[b"tRNS"]) if b"tRNS" in ahead and kind in (0, 2, 3) else b""
    colours = body(file, ahead[b"PLTE"]) if b"PLTE" in ahead else b""
    if kind == 3 and (not colours or len(colours) % 3 or len(colours) > 768):
        raise ValueError(f"a palette of {len(colours)} bytes")
    if transparent and kind != 3 and len(transparent) != {0: 2, 2: 6}[kind]:
        raise ValueError(f"a transparent colour of {len(transparent)} bytes")
    return Layout(width, height, depth, kind, methods[2] == 1, transparent, colours)


def turned(file: BinaryIO, found: Sequence[Chunk]) -> int | None:
    """The orientation, which may stand in an eXIf chunk or, as many programs write it, in a text."""
    exif = b"".join(body(file, chunk) for chunk in [c for c in found if c.kind == b"eXIf"][:1])
    xmp = b""
    for keyword, text in _texts(file, found):
        if keyword == _XMP:
            xmp = text
        elif not exif:
            exif = _from_hex(text)
    return orientation(exif, xmp)


def profile(file: BinaryIO, found: Sequence[Chunk]) -> str:
    """What an ICC profile calls the colours if they are not sRGB."""
    for chunk in found:
        if chunk.kind == b"iCCP":
            _, _, packed = body(file, chunk).partition(b"\0")
            return unusual(_unpacked(packed[1:]))
    return ""


def _texts(file: BinaryIO, found: Sequence[Chunk]) -> Iterator[tuple[bytes, bytes]]:
    """Keyword and text of those that may hold an orientation."""
    for chunk in found:
        if chunk.kind not in _TEXTS:
            continue
        file.seek(chunk.at)
        keyword = file.read(min(chunk.length, 80)).partition(b"\0")[0]
        if keyword not in (_RAW_EXIF, _XMP):
            continue
        text = body(file, chunk)[len(keyword) + 1 :]
        if chunk.kind == b"zTXt":
            text = _unpacked(text[1:])
        elif chunk.kind == b"iTXt":
            packed = text[:1] == b"\1"
            text = text[2:].partition(b"\0")[2].partition(b"\0")[2]  # behind the language and the translated keyword
            text = _unpacked(text) if packed else text
        yield keyword, text


def _from_hex(text: bytes) -> bytes:
    """EXIF data as ImageMagick writes them: a line with their kind, one with their length, then hexadecimal digits."""
    digits = re.sub(rb"\s", b"", b"".join(text.split(b"\n")[3:]))
    try:
        return bytes.fromhex(digits.decode("ascii")).removeprefix(b"Exif\0\0")
    except ValueError:
        return b"?"  # damaged, as ``orientation`` will say


def _unpacked(data: bytes) -> bytes:
    """What can be unpacked of it, of which a note may be made; no pixel depends on it."""
    try:
        return zlib.decompressobj().decompress(data, _LONGEST_TEXT)
    except zlib.error:
        return b""
