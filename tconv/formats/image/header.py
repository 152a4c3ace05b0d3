"""What an image file says of its pixels before any is decoded, and the tensor that they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, Protocol

from tconv.dtypes import DTYPES, DType
from tconv.errors import TconvError
from tconv.tensor import NO_ATTRS, Range, Spec
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array

MAX_PIXELS = 89_478_485  # Pillow's default Image.MAX_IMAGE_PIXELS: a quarter of a GiB in three bytes a pixel
COLOURS = {"gray": 1, "rgb": 3, "palette": 3, "cmyk": 4}
BOOL, UINT8, UINT16 = DTYPES["bool"], DTYPES["uint8"], DTYPES["uint16"]

# One object for all images: they are many, and what is alike shares what steps make of it.
_ONE, _SEVERAL = ("HW", "HWC"), ("NHW", "NHWC")
_WITH_ALPHA: Mapping[str, object] = {"alpha": True}
_INKS: Mapping[str, object] = {"inks": True}
_BGR: Mapping[str, object] = {"channels": "BGR"}

Colour = Literal["gray", "rgb", "palette", "cmyk"]
FAITHFUL = ("keep", "own")  # which --channels leave the pixels as they are


@dataclass(frozen=True, slots=True)
class Header:
    """The pixels as the file has them, before any turning or conversion.

    ``white`` is the largest value that a sample can have: 255 in 8 bits (fewer bits are scaled up to it), 4095 in 12
    bits (more than 8 are left as they are); None where it is unknown (floats, signed integers). ``orientation`` is
    EXIF's (or XMP's), None if the EXIF data are damaged. ``profile`` names the colour space of an ICC profile that is
    not sRGB or plain grey. ``shrink``: they are decoded at one such-th of the file's size, and so are width and height.
    ``library`` is what decodes the pixels, where their depth alone does not tell.
    """

    width: int
    height: int
    colour: Colour
    alpha: bool = False
    dtype: DType = UINT8
    white: int | None = 255
    frames: int = 1
    orientation: int | None = 1
    profile: str = ""
    shrink: int = 1
    library: str = field(default="", compare=False)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    def shrunk(self, shrink: int) -> Header:
        """The same file decoded at one ``shrink``-th of its size; a rest of a pixel is one too."""
        if shrink == 1:
            return self
        return replace(self, width=-(-self.width // shrink), height=-(-self.height // shrink), shrink=shrink)


class Picture(NamedTuple):
    """One decoded frame: (height, width, samples) in the file's own channels; 8-bit RGBA (n, 4) for palette indices."""

    pixels: Array
    palette: Array | None = None


class Family(Protocol):
    """What the module of one kind of image file offers. Both functions may raise anything on broken input."""

    def scan(self, file: BinaryIO, every: bool) -> Header:
        """The header of ``file``, which stands at its start; with ``every``, all frames are looked at."""

    def decode(self, data: bytes, header: Header, count: int) -> Iterator[Picture]:
        """The first frame, or all of them if ``count`` is more than one."""


def describe(name: str, header: Header, options: ReadOptions) -> Spec:
    """The tensor that the file becomes; ``TconvError`` where the options do not fit it or it is too large."""
    every = options.frames == "all" and header.frames > 1
    _check_size(header, header.frames if every else 1, options.max_pixels or MAX_PIXELS)
    size = (header.height, header.width)
    if options.exif and (header.orientation or 1) > 4:
        size = size[::-1]
    shape, (axes, with_channels) = ((header.frames, *size), _SEVERAL) if every else (size, _ONE)
    if options.palette == "index":
        _check_index(header)
        return Spec(name, UINT8, shape, axes)  # no range: indices are no intensities that could be scaled
    _check_blend(header, options)
    dtype = UINT8 if header.dtype is BOOL and options.channels not in FAITHFUL else header.dtype
    opacity = options.channels == "rgba" or (options.channels in FAITHFUL and header.alpha)
    attrs = _WITH_ALPHA if opacity else NO_ATTRS
    if options.channels == "keep" and header.colour == "cmyk":
        attrs = _INKS
    if options.channels == "bgr":
        attrs = _BGR
    shape = (*shape, _channels(header, options))
    return Spec(name, dtype, _shared(shape), with_channels, _range(dtype, header.white), attrs=attrs)


def _channels(header: Header, options: ReadOptions) -> int:
    if options.channels == "keep" or (options.channels == "own" and header.colour != "cmyk"):
        return COLOURS[header.colour] + header.alpha
    return {"rgb": 3, "bgr": 3, "gray": 1, "rgba": 4, "own": 3}[options.channels]


@lru_cache(maxsize=1 << 12)
def _shared(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same object for images of the same shape."""
    return shape


@lru_cache
def _range(dtype: DType, white: int | None) -> Range | None:
    if dtype.is_float:
        return None
    return (0, 1) if dtype is BOOL else (dtype.min, dtype.max if white is None else white)


def _check_size(header: Header, frames: int, limit: int) -> None:
    if header.width < 1 or header.height < 1:
        raise TconvError(f"no pixels: {header.width}x{header.height}", remedy="fetch or write it again")
    pixels = header.width * header.height * frames
    if pixels > limit:
        size = f"{header.width}x{header.height}" + (f", {frames} frames" if frames > 1 else "")
        raise TconvError(
            f"{pixels:,} pixels ({size}) are over the limit of {limit:,}, which guards against decompression bombs",
            remedy=f"if you trust the file, raise it with --max-pixels {pixels}",
        )


def _check_index(header: Header) -> None:
    if header.colour != "palette":
        raise TconvError(
            "--palette index: it is not a palette image",
            remedy="leave the option out; --channels keep gives its values",
        )


def _check_blend(header: Header, options: ReadOptions) -> None:
    blended = options.channels not in (*FAITHFUL, "rgba") and options.alpha != "drop"
    if header.alpha and header.white is None and blended:
        raise TconvError(
            f"its alpha cannot be blended, as nobody knows which {header.dtype} is opaque",
            remedy="say --alpha drop, --channels rgba or --channels keep",
        )
