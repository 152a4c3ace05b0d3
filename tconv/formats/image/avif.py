"""AVIF (AOMedia AV1 Image File Format 1.1): how many bits there are from its boxes, all else by Pillow (libavif).

A still image is an item whose properties lie in the box ``meta``, a sequence of frames a track in the box ``moov``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from tconv.errors import TconvError
from tconv.formats.image.boxes import Box, boxes, contents, inside, read
from tconv.formats.image.exif import orientation
from tconv.formats.image.header import UINT8, UINT16, Colour, Header, Picture
from tconv.formats.image.icc import unusual
from tconv.formats.image.pillow import frames, opened

_PLUGIN = "AvifImagePlugin.AvifImageFile"
_BRANDS = frozenset((b"avif", b"avis"))
_MODES: dict[str, tuple[Colour, bool]] = {
    "L": ("gray", False), "LA": ("gray", True), "RGB": ("rgb", False), "RGBA": ("rgb", True),
}  # fmt: skip
_TWELVE, _HIGH = 0x20, 0x40  # flags in the third byte of an AV1 configuration: 12 bits, more than 8 bits
_SAMPLE_ENTRY = 78  # bytes of a video's description before the boxes within it


def scan(file: BinaryIO, every: bool) -> Header:
    """The header as libavif has it; it turns nothing, and says how the boxes ``irot`` and ``imir`` would."""
    kind = next(boxes(file, 0, file.seek(0, 2)))
    brands = contents(file, kind)
    if not _BRANDS & {brands[i : i + 4] for i in range(0, len(brands), 4)}:
        raise TconvError(
            "a HEIF image (HEIC) that is no AVIF, which tconv does not read", remedy="save it as JPEG or PNG"
        )
    _check_pillow()
    file.seek(0)
    image = opened(_PLUGIN, file)
    colour, alpha = _MODES[image.mode]
    depth = _depth(file)
    if depth > 8:
        _check_opencv(depth)
    return Header(
        *image.size, colour, alpha, UINT8 if depth == 8 else UINT16, (1 << depth) - 1, getattr(image, "n_frames", 1),
        # What libavif says of the boxes is in this, and stands above what the file's own EXIF data say.
        orientation(image.info.get("exif", b"").removeprefix(b"Exif\0\0")),
        unusual(image.info.get("icc_profile", b"")),
    )  # fmt: skip


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    """8 bits as Pillow has them, 10 and 12 bits, which it would cut to 8, as they are by OpenCV."""
    if header.dtype is UINT8:
        mode = next(mode for mode, kind in _MODES.items() if kind == (header.colour, header.alpha))
        yield from frames(_PLUGIN, data, header, count, mode)
        return
    from tconv.formats.image.opencv import decode_all, decode_one

    for pixels in decode_all(data) if count > 1 else [decode_one(data)]:
        yield Picture(pixels)


def _check_pillow() -> None:
    try:
        from PIL import _avif  # noqa: F401  # it is there or not, as Pillow was built
    except ImportError as error:
        raise TconvError(
            "an AVIF image, which the installed Pillow cannot decode", remedy="install Pillow 11.3 or newer"
        ) from error


def _check_opencv(depth: int) -> None:
    from tconv.formats.image.opencv import reads

    if not reads("AVIF"):
        raise TconvError(
            f"an AVIF image of {depth} bits, which the installed OpenCV cannot decode",
            remedy="install opencv-python-headless 4.12 or newer",
        )


def _depth(file: BinaryIO) -> int:
    """Bits of a sample: 8, 10 or 12."""
    top = Box(b"", 0, file.seek(0, 2))
    movie = inside(file, top, b"moov") if read(file, 8, 4) == b"avis" else None
    meta = inside(file, top, b"meta")
    config = _of_track(file, movie) if movie else meta and _of_item(file, meta)
    if config is None:
        raise ValueError("no AV1 configuration")
    flags = contents(file, config)[2]
    return 8 if not flags & _HIGH else 12 if flags & _TWELVE else 10


def _of_track(file: BinaryIO, movie: Box) -> Box | None:
    """The AV1 configuration of the first track that is of AV1."""
    for track in boxes(file, movie.start, movie.end):
        table = inside(file, track, b"mdiaminfstblstsd") if track.kind == b"trak" else None
        entry = table and inside(file, table, b"av01", skip=8)
        if entry:
            return inside(file, entry, b"av1C", skip=_SAMPLE_ENTRY)
    return None


def _of_item(file: BinaryIO, meta: Box) -> Box | None:
    """The AV1 configuration of the primary item, or of the first that it is a grid of."""
    inner = {box.kind: box for box in boxes(file, meta.start + 4, meta.end)}
    primary = contents(file, inner[b"pitm"])
    item = int.from_bytes(primary[4:], "big")
    items = [item, *_tiles(file, inner[b"iref"], item)] if b"iref" in inner else [item]
    properties = inside(file, inner[b"iprp"], b"ipco")
    assert properties is not None  # libavif has been through the file
    listed = list(boxes(file, properties.start, properties.end))
    associated = dict(
        chain.from_iterable(
            _associations(contents(file, box))
            for box in boxes(file, inner[b"iprp"].start, inner[b"iprp"].end)
            if box.kind == b"ipma"
        )
    )
    chosen = (listed[index - 1] for item in items for index in associated.get(item, ()) if 0 < index <= len(listed))
    return next((box for box in chosen if box.kind == b"av1C"), None)


def _tiles(file: BinaryIO, references: Box, item: int) -> list[int]:
    """The items that an item is derived from."""
    form = ">H" if read(file, references.start, 1) == b"\0" else ">I"
    for box in boxes(file, references.start + 4, references.end):
        ids = [number for (number,) in _numbers(contents(file, box), form)]
        if box.kind == b"dimg" and ids[:1] == [item]:
            return ids[1:]
    return []


def _numbers(body: bytes, form: str) -> Iterator[tuple[int]]:
    """A reference: where it comes from, a count of 16 bits, which is left out, and where it goes to."""
    size = struct.calcsize(form)
    rest = body[size + 2 :]
    return struct.iter_unpack(form, body[:size] + rest[: len(rest) // size * size])


def _associations(body: bytes) -> Iterator[tuple[int, list[int]]]:
    """Each item and the numbers, from 1 on, of its properties."""
    version, wide = body[0], body[3] & 1
    (count,) = struct.unpack_from(">I", body, 4)
    at = 8
    for _ in range(count):
        item, several = struct.unpack_from(">HB" if version == 0 else ">IB", body, at)
        at += 3 if version == 0 else 5
        numbers = struct.unpack_from(f">{several}{'H' if wide else 'B'}", body, at)
        at += several * (2 if wide else 1)
        yield item, [number & (0x7FFF if wide else 0x7F) for number in numbers]
