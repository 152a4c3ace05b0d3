"""JPEG (ITU-T T.81): a header scan of our own, strict decoding by libjpeg-turbo, encoding by Pillow."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np
import simplejpeg  # type: ignore[import-untyped]  # it has no annotations

from tconv.errors import TconvError
from tconv.formats.image import mpf
from tconv.formats.image.exif import orientation
from tconv.formats.image.header import Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.writer import ImageWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.ops import Array
    from tconv.tensor import Extra, Spec
    from tconv.writer import WriteOptions

_WINDOW = 4096  # bytes read at a time: as a rule the whole header of a photo without a thumbnail
_SOI, _EOI, _SOS, _APP1, _APP2 = b"\xff\xd8", 0xD9, 0xDA, 0xE1, 0xE2
_EXIF, _XMP, _ICC = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0", b"ICC_PROFILE\0"
FRAMES = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))  # baseline, extended and progressive; Huffman and arithmetic
_OTHER_FRAMES = {0xC3: "lossless", 0xCB: "lossless arithmetic", 0xF7: "JPEG-LS"} | dict.fromkeys(
    (0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF), "hierarchical"
)
_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))  # markers without a length: TEM and the restarts
_COLOURS: dict[int, Colour] = {1: "gray", 3: "rgb", 4: "cmyk"}
_SPACES = {"gray": "GRAY", "rgb": "RGB", "cmyk": "CMYK"}
_RESAVE = "save it as a baseline JPEG or as PNG"
QUALITY = 95  # unless the user says otherwise: a scale of libjpeg from 1 to 100


def scan(file: BinaryIO, every: bool) -> Header:
    """Size, components, orientation and profile from the segments before the first scan; a few reads of ``file``."""
    header: Header | None = None
    exif = xmp = b""
    index: mpf.Index | None = None
    profile = dict[bytes, bytes]()
    for marker, body, at in segments(file):
        if marker in FRAMES:
            header = _frame(body)
        elif marker in _OTHER_FRAMES:
            raise TconvError(f"a {_OTHER_FRAMES[marker]} JPEG, which tconv does not read", remedy=_RESAVE)
        elif marker == _APP1 and body.startswith(_EXIF):
            exif = exif or body[len(_EXIF) :]
        elif marker == _APP1 and body.startswith(_XMP):
            xmp = body[len(_XMP) :]
        elif marker == _APP2 and body.startswith(_ICC):
            profile[body[len(_ICC) :][:1]] = body[len(_ICC) + 2 :]  # its pieces are numbered
        elif marker == _APP2 and body.startswith(mpf.MARK):
            index = index or mpf.Index(body[len(mpf.MARK) :], at + len(mpf.MARK))
    if header is None:
        raise ValueError("no frame header before the first scan")
    if index is not None:
        header = replace(header, frames=1 + len(_others(file, index, header, every)))
    if not (exif or xmp or profile):
        return header
    whole = b"".join(profile[number] for number in sorted(profile))
    return replace(header, orientation=orientation(exif, xmp), profile=unusual(whole))


def _others(file: BinaryIO, index: mpf.Index, header: Header, every: bool) -> list[int]:
    """Where the other pictures of the file begin that are like the first: for two eyes, of a burst, of a panorama.
    Smaller previews and maps of its light are not. That they are damaged matters if ``every`` one is wanted.
    """
    found = []
    try:
        for number, start in enumerate(index.starts(), 2):
            file.seek(start)
            if file.read(2) != _SOI:
                raise EOFError(f"its picture {number} is not where its index says")
            file.seek(start)
            frame = next((_frame(body) for marker, body, _ in segments(file) if marker in FRAMES), None)
            found += [start] if frame and (*frame.size, frame.colour) == (*header.size, header.colour) else []
    except (TconvError, ValueError, IndexError, EOFError, struct.error):
        if every:
            raise
    return found


def segments(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """(marker, body, where in the file that begins) of the segments up to the first scan."""
    window = file.read(_WINDOW)
    at = 2  # behind the start marker
    while True:
        if at + 4 > len(window):
            window, at = _further(file, window, at, 4), 0
        if window[at] != 0xFF:
            raise ValueError("bytes between the segments of the header")
        marker = window[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker == _EOI:
            return
        else:
            end = at + 2 + _length(window, at + 2)
            if end > len(window):
                window, end, at = _further(file, window, at, end - at), end - at, 0
            if marker == _SOS:
                return
            yield marker, window[at + 4 : end], file.tell() - len(window) + at + 4
            at = end


def _length(data: bytes, at: int) -> int:
    """Of a segment, with these two bytes of its length; less than that is taken for an empty one, as libjpeg does."""
    return max(2, data[at] << 8 | data[at + 1])


def _further(file: BinaryIO, window: bytes, at: int, needed: int) -> bytes:
    """The window moved on to begin at ``at``, with at least ``needed`` bytes."""
    window = window[at:]
    window += file.read(max(_WINDOW, needed) - len(window))
    if len(window) < needed:
        raise EOFError("it ends within its header")
    return window


def _frame(body: bytes) -> Header:
    precision, height, width, components = struct.unpack_from(">BHHB", body)
    if precision != 8:
        raise TconvError(f"a {precision}-bit JPEG, which tconv does not read", remedy=_RESAVE)
    if height == 0:
        raise TconvError("a JPEG that states its height behind the pixels, which tconv does not read", remedy=_RESAVE)
    if components not in _COLOURS:
        raise TconvError(f"a JPEG of {components} components, which tconv does not read", remedy=_RESAVE)
    return _header(width, height, components)


@lru_cache(maxsize=1 << 12)
def _header(width: int, height: int, components: int) -> Header:
    """One for all photos of a size, of which there may be a hundred thousand."""
    return Header(width, height, _COLOURS[components])


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """Grey, RGB, or inks as Pillow gives them (255 is full ink)."""
    for start in _starts(data, header) if count > 1 else (0,):
        pixels = decode_as(memoryview(data)[start:], header, _SPACES[header.colour])
        if header.colour == "cmyk":
            # Adobe's programs store inks inverted, and every other writer followed them.
            np.subtract(255, pixels, out=pixels)
        yield Picture(pixels)


def _starts(data: bytes, header: Header) -> list[int]:
    """Where in the file its pictures begin."""
    file = io.BytesIO(data)
    index = next(
        mpf.Index(body[len(mpf.MARK) :], at + len(mpf.MARK))
        for marker, body, at in segments(file)
        if marker == _APP2 and body.startswith(mpf.MARK)
    )
    return [0, *_others(file, index, header, True)]


def decode_as(data: bytes | memoryview, header: Header, space: str, out: Array | None = None) -> Array:
    """Decode to GRAY, RGB, BGR, RGBX, BGRX or CMYK, into ``out`` if given: bit-identical to Pillow.

    Strict: what libjpeg only warns of (a missing end, a corrupt stream) is a ``ValueError``.
    """
    # Of the sizes that it can decode at, libjpeg-turbo is asked for the least that is not less than this.
    least = {"min_height": header.height, "min_width": header.width} if header.shrink > 1 else {}
    try:
        pixels = simplejpeg.decode_jpeg(data, space, buffer=out, **least)
    except ValueError as error:
        if "subsampling" in str(error):
            raise TconvError("a JPEG of unusual chroma sampling, which tconv does not read", remedy=_RESAVE) from error
        if "ICC" not in str(error):
            raise
        pixels = simplejpeg.decode_jpeg(_without_profile(bytes(data)), space, buffer=out, **least)
    if pixels.shape[:2] != (header.height, header.width):
        raise ValueError(f"it decodes to {pixels.shape[1]}x{pixels.shape[0]}")
    return pixels  # type: ignore[no-any-return]  # simplejpeg has no annotations


def check(data: bytes, largest: int) -> None:
    """Raise ``ValueError`` unless ``data`` are one whole JPEG stream of at most ``largest`` pixels."""
    header = scan(io.BytesIO(data), False)
    if header.width * header.height > largest:
        raise ValueError(f"a JPEG stream of {header.width}x{header.height} within a smaller image")
    decode_as(data, header, _SPACES[header.colour])


def _without_profile(data: bytes) -> bytes:
    """The same image without its APP2 segments: a broken profile damages no pixel, but strict decoding refuses it."""
    kept, at = [data[:2]], 2
    while data[at + 1] != _SOS:
        if data[at + 1] == 0xFF:
            at += 1
            continue
        end = at + 2 + (0 if data[at + 1] in _ALONE else _length(data, at + 2))
        if data[at + 1] != _APP2:
            kept.append(data[at:end])
        at = end
    return b"".join([*kept, data[at:]])


class JpegWriter(ImageWriter):
    """Grey or RGB, colours at full resolution (4:4:4); pixels change a little, which a note says."""

    title = "JPEG"
    lossy: ClassVar[bool] = True
    channels: ClassVar = {"uint8": (1, 3)}
    largest = 65_500  # libjpeg's JPEG_MAX_DIMENSION

    def __init__(self, specs: Sequence[Spec], extra: Extra, quality: int = QUALITY) -> None:
        super().__init__(specs, extra)
        self._quality = quality
        self.notes = (*self.notes, f"JPEG is lossy: pixels change a little (quality {quality}); png keeps them")

    @classmethod
    def planned(cls, specs: Sequence[Spec], extra: Extra, options: WriteOptions) -> JpegWriter:
        return cls(specs, extra, options.quality or QUALITY)

    def encode(self, pixels: Array) -> bytes:
        from tconv.formats.image.pillow import encoded  # simplejpeg has libjpeg compute the DCT fast, and less exactly

        return encoded("JpegImagePlugin", "JPEG", pixels, quality=self._quality, subsampling=0)
