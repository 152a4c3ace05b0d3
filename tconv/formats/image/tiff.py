"""TIFF and BigTIFF: directories read by us, pixels of 8 bits by Pillow (libtiff), deeper ones by OpenCV if it can."""

from __future__ import annotations

import ctypes
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from PIL import _imaging

from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.formats.image import jpeg, tags
from tconv.formats.image.exif import orientation
from tconv.formats.image.header import BOOL, UINT8, UINT16, Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.pillow import opened, palette, pixels, unlimited

if TYPE_CHECKING:
    from PIL import Image

    from tconv.formats.image.tags import Directory
    from tconv.ops import Array

with suppress(OSError, AttributeError):  # a libtiff that cannot be reached like this keeps its lines on stderr
    ctypes.CDLL(_imaging.__file__).TIFFSetErrorHandler(None)

_PLUGIN = "TiffImagePlugin.TiffImageFile"
_PHOTOMETRIC = {0: "white-is-zero grey", 1: "grey", 2: "RGB", 3: "palette", 5: "CMYK", 6: "YCbCr", 8: "CIELAB"}
_KINDS = {1: "uint", 2: "int", 3: "float", 4: "uint"}  # the sample formats; 4 is "undefined"
_MODES: dict[str, tuple[Colour, bool]] = {  # of Pillow, which hold 8-bit images whole: colour, alpha
    "1": ("gray", False), "L": ("gray", False), "LA": ("gray", True), "La": ("gray", True), "P": ("palette", False),
    "RGB": ("rgb", False), "YCbCr": ("rgb", False), "RGBA": ("rgb", True), "CMYK": ("cmyk", False),
}  # fmt: skip
_CONVERTED = {"La": "LA", "YCbCr": "RGB"}
_FORMS = {"uint": 1, "int": 2, "float": 3}
_OPENCV = frozenset(
    ("uint10", "uint12", "uint14", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
)
_PILLOW = frozenset(("uint16", "int16", "int32", "float32"))  # of one channel
_NONE, _OLD_JPEG, _JPEG, _DEFLATE = 1, 6, 7, frozenset((8, 32946))
_OPENCV_COMPRESSION = _DEFLATE | {_NONE, 5, 32773}  # 5 is LZW, 32773 PackBits
_FLOATING = 3  # the predictor for floats
_LARGEST_TILE = 1 << 26  # bytes that a tile may have beyond those of its image
_UNSPECIFIED, _ASSOCIATED = 0, 1  # what an extra sample is: no alpha, or an alpha that colours are multiplied by


class _Layout(NamedTuple):
    width: int
    height: int
    photometric: int
    samples: int
    kind: str  # of a sample
    depth: int  # bits of a sample
    extra: int | None  # what the first sample beyond the colours is
    compression: int
    planar: bool  # whether channels are stored one after the other
    predictor: int

    @property
    def sample(self) -> str:
        return f"{self.kind}{self.depth}"

    @property
    def shallow(self) -> bool:
        return self.depth <= 8 and (self.kind == "uint" or (self.sample == "int8" and self.photometric == 1))

    @property
    def inverted(self) -> bool:
        return self.photometric == 0

    @property
    def by_opencv(self) -> bool:
        colours = (self.photometric, self.samples) in ((0, 1), (1, 1), (2, 3), (2, 4))
        unknown = (self.inverted and self.kind != "uint") or (self.sample, self.predictor) == ("float16", _FLOATING)
        deep = self.sample in _OPENCV and not unknown
        return not self.shallow and colours and deep and self.compression in _OPENCV_COMPRESSION

    @property
    def by_pillow(self) -> bool:
        known = self.sample == "uint16" if self.inverted else self.sample in _PILLOW and self.photometric == 1
        return self.shallow or (known and self.samples == 1)

    def refused(self) -> TconvError:
        colours = _PHOTOMETRIC.get(self.photometric, f"photometric {self.photometric}")
        return TconvError(
            f"a {'planar ' * self.planar}TIFF of {colours} with {self.samples} x {self.sample} a pixel "
            f"(compression {self.compression}), which tconv does not read",
            remedy="save it as grey or RGB of uint8, uint16 or float32",
        )


def scan(file: BinaryIO, every: bool) -> Header:
    """The header, from the tags; all pixels are known to lie within the file."""
    head = file.read(4)
    found, frames, order = tags.directories(file, every)
    size = file.seek(0, 2)
    layout = _layout(found[0])
    if head == b"MM\0+" and not layout.by_opencv:
        raise TconvError("a big-endian BigTIFF, which tconv does not read", remedy="save it as a plain TIFF")
    for directory in found:
        if _layout(directory) != layout:
            raise TconvError("frames of unequal size or kind", remedy="leave --frames all out, or split the file")
        _check_sizes(directory, layout, size)
    header = _shallow(file, layout) if layout.shallow else _deep(layout, order)
    turned, profile = _turned(file, found[0]), unusual(tags.beside(file, found[0], tags.ICC))
    return replace(header, frames=frames, orientation=turned, profile=profile)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """In the file's own channels and depth; depths of 10, 12 and 14 bits as they are, in uint16."""
    found, _, order = tags.directories(io.BytesIO(data), count > 1)
    layout = _layout(found[0])
    for directory in found:
        _check_streams(data, directory, layout)
    if layout.by_opencv:
        return (_opencv(data, directory, order, header, layout) for directory in found[:count])
    return _pillow(tags.upright(data, found), header, layout, count)


def _turned(file: BinaryIO, directory: Directory) -> int | None:
    if tags.ORIENTATION not in directory.tags:
        return orientation(b"", tags.beside(file, directory, tags.XMP))
    stated = directory.one(tags.ORIENTATION)
    return stated if 1 <= stated <= 8 else 1


def _layout(directory: Directory) -> _Layout:
    samples = directory.one(tags.SAMPLES, 1)
    depths = set(directory.tags.get(tags.BITS, (1,))[:samples])
    kinds = set(directory.tags.get(tags.FORMAT, (1,))[:samples])
    if len(depths) != 1 or len(kinds) != 1:
        raise TconvError("a TIFF whose samples are not of one type", remedy="save its channels as several files")
    kind, extra = _KINDS.get(kinds.pop(), "complex"), directory.tags.get(tags.EXTRA)
    return _Layout(
        directory.one(tags.WIDTH), directory.one(tags.HEIGHT), directory.one(tags.PHOTOMETRIC), samples,
        kind, depths.pop(), extra[0] if extra else None, directory.one(tags.COMPRESSION, _NONE),
        samples > 1 and directory.one(tags.PLANAR, 1) == 2, directory.one(tags.PREDICTOR, 1),
    )  # fmt: skip


def _check_sizes(directory: Directory, layout: _Layout, size: int) -> None:
    """Refuse pixels that should lie behind the end of the file, and uncompressed ones that are too few."""
    pieces = directory.pieces()
    end = max(offset + count for offset, count in pieces)
    if end > size:
        raise EOFError(f"its pixels reach to byte {end}, and it has {size}")
    needed = _size(layout)
    if layout.compression == _NONE and sum(count for _, count in pieces) < needed:
        raise EOFError(f"its pixels should take {needed} bytes, and fewer are there")


def _size(layout: _Layout) -> int:
    """How many bytes the pixels take without compression; tiles may take more."""
    planes, together = (layout.samples, 1) if layout.planar else (1, layout.samples)
    return planes * layout.height * -(-layout.width * together * layout.depth // 8)


def _check_streams(data: bytes, directory: Directory, layout: _Layout) -> None:
    """Refuse damaged JPEG and Deflate data, which libtiff passes over: it neither is strict nor looks at checksums."""
    largest = _size(layout) + _LARGEST_TILE
    if layout.compression in _DEFLATE:
        for offset, count in directory.pieces():
            if len(zlib.decompressobj().decompress(data[offset : offset + count], largest)) == largest:
                raise ValueError("more compressed data than pixels")
    elif layout.compression == _JPEG:
        tables = bytes(directory.tags.get(tags.JPEG_TABLES, (0xFF, 0xD8, 0xFF, 0xD9)))
        for offset, count in directory.pieces():
            jpeg.check(tables[:-2] + data[offset + 2 : offset + count], largest)


def _shallow(file: BinaryIO, layout: _Layout) -> Header:
    if layout.compression == _OLD_JPEG:
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


def _deep(layout: _Layout, order: str) -> Header:
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


def _pillow(data: bytes, header: Header, layout: _Layout, count: int) -> Iterator[Picture]:
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


def _whole(x: Array, layout: _Layout) -> Array:
    """From what Pillow takes samples for to what they are."""
    if layout.sample == "int8":
        return x.view(np.int8)
    if layout.sample == "int16":
        return x.astype(np.int16)
    return ~x if layout.sample == "uint16" and layout.photometric == 0 else x


def _opencv(data: bytes, directory: Directory, order: str, header: Header, layout: _Layout) -> Picture:
    """OpenCV gets plain TIFFs: it jumbles planes, turns pictures, and does not know half floats."""
    from tconv.formats.image.opencv import decode_one

    half = layout.sample == "float16"
    form = _FORMS["uint" if half else layout.kind]
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
    x = np.concatenate(parts, axis=-1)
    if layout.depth < 16:
        x = x >> (16 - layout.depth)  # OpenCV shifts few bits to the top
    if layout.inverted:
        x = (1 << layout.depth) - 1 - x
    x = x.view(np.float16) if half else x
    return Picture(x[..., :3] if layout.samples == 4 and not header.alpha else x)
