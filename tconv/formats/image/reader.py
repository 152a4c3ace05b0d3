"""Images of every family, each file as one tensor, described from its header alone."""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from tconv import registry
from tconv.errors import TconvError, printable
from tconv.formats.image import jpeg, on_gpu
from tconv.formats.image.channels import assemble
from tconv.formats.image.exif import place, turn_box
from tconv.formats.image.header import BOOL, COLOURS, UINT8, Family, Header, Picture, describe
from tconv.formats.stamp import Stamp, refuse_changed, stamp
from tconv.tensor import Extra, Raster, Scalable, Stream, Tensor
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array
    from tconv.tensor import Spec

_LIBRARIES = {"jpeg": "simplejpeg", "pnm": "NumPy", "pfm": "NumPy"}
_DATA = Extra(kind="data")  # one for all images
_MENDED = "fetch it or write it again"
_SHRINKS = (8, 4, 2)  # libjpeg's decoding at these fractions is its fastest
_GAP = 2  # a resize starts from twice its size at least, like Pillow's thumbnail: closer to it, blocks show
_SMALL = 64  # pixels a side from which on decoding takes long enough to be worth it


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """The image as a stream of one tensor: HWC; HW for palette indices; NHWC (NHW) for all frames of several.

    Only headers are read here; the pixels are decoded when the tensor's source is. The content decides what kind of
    file it is. ``TconvError`` for what is damaged, of a kind or with options that are not supported, or too large.

    Channels: RGB, or as ``options`` say. What is black and white becomes 0 and 255, a palette its colours, inks RGB
    by Pillow's formula, alpha is blended over white; ``keep`` gives the file's own channels (bool for 1 bit, the inks
    of CMYK with 255 for full ink, RGB or RGBA for a palette, RGBA for all frames of a GIF). Grey is always the luma
    of the RGB image, so that of a JPEG is not its own Y channel.

    Values: samples of up to 8 bits fill 0 to 255. Deeper ones are left as they are, in the dtype that holds them, and
    the spec's range says which is white (4095 in 12 bits, a PNM's largest value); floats have no known range.
    """
    with _refusing(path):
        family, header, seen = _scan(path, options)
        kind = _kind_of(family, header, header.library, options)
    tensor = Tensor(kind.spec.named(name), ImageSource(path, kind, seen))
    return Stream((tensor,), _DATA, tuple(_notes(path, header, options)))


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What image files have in common that are decoded alike: one object for all of them, since they are many.

    ``spec`` is of no name. ``padded``: see ``tensor.Raster``.
    """

    family: str
    header: Header
    options: ReadOptions
    spec: Spec
    padded: bool = False

    @property
    def direct(self) -> bool:
        """Whether what the JPEG decoder gives is the picture."""
        plain = self.family == "jpeg" and self.header.colour != "cmyk" and self.orientation == 1
        plain = plain and not self.every and not self.on_gpu
        return plain and self.options.palette == "rgb" and self.options.channels in ("rgb", "bgr")

    @property
    def every(self) -> bool:
        """Whether it is all frames of several."""
        return self.options.frames == "all" and self.header.frames > 1

    @property
    def on_gpu(self) -> bool:
        """Whether the user wants it decoded there, and it can be."""
        return bool(self.options.jpeg_device) and not self.every and on_gpu.may(self.family, self.header)

    @property
    def orientation(self) -> int:
        return (self.header.orientation or 1) if self.options.exif else 1

    def shrink(self, height: int, width: int) -> int:
        """For a resize to that size the file is decoded at one such-th of its own."""
        if not self.options.fast or self.family != "jpeg" or self.every:
            return 1
        high, wide = self.spec.shape[:2]
        if min(high, wide) < _SMALL:
            return 1
        gap = min(high / height, wide / width)
        return next((n for n in _SHRINKS if gap >= _GAP * n), 1)


@lru_cache(maxsize=1 << 12)
def _kind_of(family: str, header: Header, library: str, options: ReadOptions) -> Kind:
    """``library`` is the header's, since headers are equal that differ in nothing else."""
    return Kind(family, header, options, describe("", header, options))


@lru_cache(maxsize=1 << 12)
def _smaller(kind: Kind, shrink: int) -> tuple[Kind, tuple[float, float, float, float]]:
    """How the file is decoded at one ``shrink``-th of its size, and where in there the picture lies."""
    header, padded, turned = kind.header.shrunk(shrink), kind.direct, kind.orientation
    size = (header.width, header.height) if turned > 4 else (header.height, header.width)
    shape = (*size, 4) if padded else (*size, *kind.spec.shape[2:])
    box = turn_box((0, 0, kind.header.height / shrink, kind.header.width / shrink), *header.size, turned)
    return Kind(kind.family, header, kind.options, kind.spec.shaped(shape), padded), box


@dataclass(frozen=True, slots=True)
class ImageSource(Scalable):
    """An image file; it decodes whole."""

    path: Path
    kind: Kind
    seen: Stamp

    @property
    def dtype(self) -> DType:
        return self.kind.spec.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.kind.spec.shape

    @property
    def seekable(self) -> bool:
        return False

    @property
    def header(self) -> Header:
        return self.kind.header

    @property
    def decoder(self) -> str:
        """The library that decodes the pixels."""
        if self.kind.on_gpu:
            return f"torchvision on {self.kind.options.jpeg_device}"
        usual = "Pillow" if self.header.dtype in (BOOL, UINT8) else "OpenCV"
        return self.header.library or _LIBRARIES.get(self.kind.family, usual)

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        """See ``tensor.Source``. The whole is decoded, straight into ``out`` where it is asked for the whole."""
        count = math.prod(self.shape)
        if out is not None and (lo, hi) == (0, count):
            self._decode(out.reshape(self.shape))
            return out
        whole = np.empty(self.shape, self.dtype.numpy)
        self._decode(whole)
        part = whole.reshape(-1)[lo:hi]
        if out is None:
            return part
        out[:] = part
        return out

    def raster(self, height: int, width: int) -> Raster | None:
        """See ``tensor.Scalable``: of a JPEG the pixels as Pillow keeps them, and if the user wants it fast at the
        least fraction of its size at which both sides are still twice what is asked for.
        """
        shrink = self.kind.shrink(height, width)
        if shrink == 1 and not self.kind.direct:
            return None
        kind, box = _smaller(self.kind, shrink)
        return Raster(ImageSource(self.path, kind, self.seen), box, kind.padded, shrink)

    def _decode(self, out: Array) -> None:
        with _refusing(self.path):
            data = self._bytes()
            kind = self.kind
            if kind.direct:
                # Bit for bit what the long way gives, but without a copy: most images that anyone has.
                jpeg.decode_as(data, kind.header, kind.options.channels.upper() + "X" * kind.padded, out)
            else:
                self._assemble(data, out)

    def _bytes(self) -> bytes:
        """All of the file, which must be the one whose header was read."""
        with self.path.open("rb", buffering=0) as file:
            data = file.readall()
            refuse_changed(file, self.seen)
        return data

    def _assemble(self, data: bytes, out: Array) -> None:
        kind = self.kind
        places = out if kind.every else out[None]
        done = 0
        for picture in self._pictures(data, len(places)):
            _check(picture, kind.header)
            place(assemble(picture, kind.header, kind.options), kind.orientation, places[done])
            done += 1
        if done < len(places):
            raise EOFError(f"it has {done} frames of the {len(places)} that it should have")

    def _pictures(self, data: bytes, count: int) -> Iterator[Picture]:
        kind = self.kind
        if kind.on_gpu:
            return on_gpu.decode(data, kind.header, kind.options.jpeg_device, self.path)
        return _family(kind.family).decode(data, kind.header, count)


def _scan(path: Path, options: ReadOptions) -> tuple[str, Header, Stamp]:
    with path.open("rb", buffering=0) as raw:
        seen, head = stamp(raw), raw.read(64)
        if not head:
            raise TconvError("the file is empty (0 bytes)", remedy=_MENDED)
        family = _kind(head)
        raw.seek(0)
        # A JPEG is read in a few large pieces, the others in many small ones.
        file = raw if family == "jpeg" else io.BufferedReader(raw)
        return family, _family(family).scan(cast(BinaryIO, file), options.frames == "all"), seen


def _kind(head: bytes) -> str:
    for row in registry.FORMATS.values():
        if row.group == "image" and re.match(row.magic, head, re.DOTALL):
            return row.name
    titles = ", ".join(row.title for row in registry.FORMATS.values() if row.group == "image")
    raise TconvError("its content is no image that tconv reads", remedy=f"tconv reads {titles}")


@cache
def _family(name: str) -> Family:
    """The module of that kind of image, imported when the first such file turns up."""
    return cast(Family, importlib.import_module(f"tconv.formats.image.{name}"))


def _check(picture: Picture, header: Header) -> None:
    samples = (1 if header.colour == "palette" else COLOURS[header.colour] + header.alpha,)
    pixels = picture.pixels
    if pixels.shape != (header.height, header.width, *samples) or pixels.dtype != header.dtype.numpy:
        raise ValueError(f"it decodes to {pixels.dtype} {pixels.shape}, not to what its header says")


def _notes(path: Path, header: Header, options: ReadOptions) -> Iterator[str]:
    if header.frames > 1 and options.frames == "first":
        yield f"{printable(str(path))}: the first of {header.frames} frames; --frames all reads all"
    if header.orientation is None and options.exif:
        yield f"{printable(str(path))}: its EXIF data are damaged, so it is taken as it is stored"
    if header.profile:
        yield f"{printable(str(path))}: its ICC profile ({printable(header.profile)}) is not applied"


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Whatever a decoder stumbles over becomes a sentence that names the file."""
    try:
        yield
    except TconvError as error:
        raise error.at(file=path) from error.__cause__
    except MemoryError as error:
        raise TconvError("not enough memory to decode it", remedy="use fewer --workers", file=path) from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise TconvError(f"cannot be read: {error.strerror}", file=path) from error
        raise TconvError(f"truncated or corrupt: {_said(error)}", remedy=_MENDED, file=path) from error


def _said(error: Exception) -> str:
    """What a decoder said, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
