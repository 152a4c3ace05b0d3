"""TIFF and BigTIFF, in and out: directories read by us, 8-bit pixels by Pillow (libtiff), deeper ones by OpenCV."""

from __future__ import annotations

import ctypes
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np
from PIL import _imaging

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image import jpeg, samples, tags
from tconv.formats.image.exif import agreed, orientation
from tconv.formats.image.header import BOOL, UINT8, UINT16, Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.pillow import encoded, opened, palette, pixels, unlimited
from tconv.formats.image.writer import ImageWriter

if TYPE_CHECKING:
    from PIL import Image

    from tconv.formats.image.samples import Layout
    from tconv.formats.image.tags import Directory
    from tconv.ops import Array

with suppress(OSError, AttributeError):  # a libtiff that cannot be reached like this keeps its lines on stderr
    ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(None)

_PLUGIN = "TiffImagePlugin.TiffImageFile"
_MODES: dict[str, tuple[Colour, bool]] = {  # of Pillow, which hold 8-bit images whole: colour, alpha
    "1": ("gray", False), "L": ("gray", False), "LA": ("gray", True), "La": ("gray", True), "P": ("palette", False),
    "RGB": ("rgb", False), "YCbCr": ("rgb", False), "RGBA": ("rgb", True), "CMYK": ("cmyk", False),
}  # fmt: skip
_CONVERTED = {"La": "LA", "YCbCr": "RGB"}
_FORMS = {"uint": 1, "int": 2, "float": 3}
_NAMESAKES = {"float16": "uint", "uint32": "int"}  # OpenCV does not know the first, nor before version 5 the second
_LARGEST_TILE = 1 << 26  # bytes that a tile may have beyond those of its image
_UNSPECIFIED, _ASSOCIATED = 0, 1  # what an extra sample is: no alpha, or an alpha that colours are multiplied by


def scan(file: BinaryIO, every: bool) -> Header:
    """The header, from the tags; all pixels are known to lie within the file."""
    head = file.read(4)
    found, frames, order = tags.directories(file, every)
    size = file.seek(0, 2)
    layout = samples.layout(found[0])
    if head == b"MM\0+" and not layout.by_opencv:
        raise TconvError("a big-endian BigTIFF, which tconv does not read", remedy="save it as a plain TIFF")
    for directory in found:
        if samples.layout(directory) != layout:
            raise TconvError("frames of unequal size or kind", remedy="leave --frames all out, or split the file")
        _check_sizes(directory, layout, size)
    header = _shallow(file, layout) if layout.shallow else _deep(layout, order)
    turned, profile = _turned(file, found[0]), unusual(tags.beside(file, found[0], tags.ICC))
    library = "OpenCV" if layout.by_opencv else "Pillow"
    return replace(header, frames=frames, orientation=turned, profile=profile, library=library)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """In the file's own channels and depth; depths of 10, 12 and 14 bits as they are, in uint16."""
    found, _, order = tags.directories(io.BytesIO(data), count > 1)
    layout = samples.layout(found[0])
    for directory in found:
        _check_streams(data, directory, layout)
    if layout.by_opencv:
        return (_opencv(data, directory, order, header, layout) for directory in found[:count])
    return _pillow(tags.upright(data, found), header, layout, count)


def _turned(file: BinaryIO, directory: Directory) -> int | None:
    if not directory.turned:
        return orientation(b"", tags.beside(file, directory, tags.XMP))
    return agreed(list(directory.turned.values()))


def _check_sizes(directory: Directory, layout: Layout, size: int) -> None:
    """Refuse pixels that should lie behind the end of the file, and uncompressed ones that are too few."""
    pieces = directory.pieces()
    end = max(offset + count for offset, count in pieces)
    if end > size:
        raise EOFError(f"its pixels reach to byte {end}, and it has {size}")
    needed = _size(layout)
    if layout.compression == samples.NONE and sum(count for _, count in pieces) < needed:
        raise EOFError(f"its pixels should take {needed} bytes, and fewer are there")


def _size(layout: Layout) -> int:
    """How many bytes the pixels take without compression; tiles may take more."""
    planes, together = (layout.samples, 1) if layout.planar else (1, layout.samples)
    return planes * layout.height * -(-layout.width * together * layout.depth // 8)


def _check_streams(data: bytes, directory: Directory, layout: Layout) -> None:
    """Refuse damaged JPEG and Deflate data, which libtiff passes over: it neither is strict nor looks at checksums."""
    largest = _size(layout) + _LARGEST_TILE
    if layout.compression in samples.DEFLATE:
        for offset, count in directory.pieces():
            if len(zlib.decompressobj().decompress(data[offset : offset + count], largest)) == largest:
                raise ValueError("more compressed data than pixels")
    elif layout.compression == samples.JPEG:
        tables = bytes(directory.tags.get(tags.JPEG_TABLES, (0xFF, 0xD8, 0xFF, 0xD9)))
        for offset, count in directory.pieces():
            jpeg.check(tables[:-2] + data[offset + 2 : offset + count], largest)


def _shallow(file: BinaryIO, layout: Layout) -> Header:
    if layout.compression == samples.OLD_JPEG:
        raise layout.refused()
    file.seek(0)
    try:
        mode = opened(_PLUGIN, file).mode
    except SyntaxError as error:
        raise layout.refused() from error
    if mode not in _MODES:
        raise layout.refused()
    if layout.kind == "int":
        return Header(layout.width, layout.height, "gray", False, DTYPES["int8"], None)
    colour, alpha = _MODES[mode]
    return Header(layout.width, layout.height, colour, alpha, BOOL if mode == "1" else UINT8)


def _deep(layout: Layout, order: str) -> Header:
    # Pillow takes deep samples to be in the file's byte order, where libtiff has put them into the machine's.
    swapped = (order == "<") != (sys.byteorder == "little")
    if not layout.by_opencv and (swapped or not layout.by_pillow):
        raise layout.refused()
    alpha = layout.samples == 4 and layout.extra != _UNSPECIFIED
    if alpha and layout.extra == _ASSOCIATED:
        raise TconvError(
            "a TIFF of more than 8 bits whose colours are multiplied by alpha, which tconv does not read",
            remedy="save it with plain (unassociated) alpha",
        )
    dtype = DTYPES.get(layout.sample, UINT16)
    white = (1 << layout.depth) - 1 if layout.kind == "uint" else None
    return Header(layout.width, layout.height, "rgb" if layout.photometric == 2 else "gray", alpha, dtype, white)


def _pillow(data: bytes, header: Header, layout: Layout, count: int) -> Iterator[Picture]:
    with unlimited(header):
        image = opened(_PLUGIN, io.BytesIO(data))
        for i in range(count):
            image.seek(i)
            image.info.pop("xmp", None)  # it may name an orientation too, and Pillow would turn the image
            image.load()
            table = palette(image) if header.colour == "palette" else None
            yield Picture(_whole(pixels(_plain(image)), layout), table)


def _plain(image: Image.Image) -> Image.Image:
    return image.convert(_CONVERTED[image.mode]) if image.mode in _CONVERTED else image


def _whole(x: Array, layout: Layout) -> Array:
    """From what Pillow takes samples for to what they are."""
    if layout.sample == "int8":
        return x.view(np.int8)
    if layout.sample == "int16":
        return x.astype(np.int16)
    return ~x if layout.sample == "uint16" and layout.photometric == 0 else x


def _opencv(data: bytes, directory: Directory, order: str, header: Header, layout: Layout) -> Picture:
    """OpenCV gets plain TIFFs: it jumbles planes and turns pictures. What it does not know is named as what it does."""
    from tconv.formats.image.opencv import decode_one

    form = _FORMS[_NAMESAKES.get(layout.sample, layout.kind)]
    planes = layout.samples if layout.planar else 1
    each, rest = divmod(len(directory.pieces()), planes)
    if rest:
        raise ValueError(f"{len(directory.pieces())} pieces for {planes} planes")
    parts = [
        decode_one(
            tags.rewritten(data, directory, order, slice(i * each, (i + 1) * each), layout.samples // planes, form)
        )
        for i in range(planes)
    ]
    x = parts[0] if planes == 1 else np.concatenate(parts, axis=-1)
    if layout.depth < 16:
        x = x >> (16 - layout.depth)  # OpenCV shifts few bits to the top
    if layout.sample in _NAMESAKES:
        x = x.view(layout.sample)
    if layout.inverted:
        x = (1 << layout.depth) - 1 - x
    return Picture(x[..., :3] if layout.samples == 4 and not header.alpha else x)


class TiffWriter(ImageWriter):
    """Samples as they are, floats too; integers compressed (LZW), bool one bit, where True is white."""

    title = "TIFF"
    channels: ClassVar = dict.fromkeys(("uint8", "uint16", "float32", "float64"), (1, 3, 4)) | {"bool": (1,)}
    largest = 1_000_000

    def encode(self, pixels: Array) -> bytes:
        if pixels.dtype == np.bool_:
            return encoded("TiffImagePlugin", "TIFF", pixels)
        from tconv.formats.image.opencv import encode

        return encode(".tiff", pixels)
