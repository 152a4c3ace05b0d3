"""Windows and OS/2 bitmaps, by Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tconv.errors import TconvError
from tconv.formats.image.header import BOOL, UINT8, Colour, Header, Picture
from tconv.formats.image.pillow import first, opened

_PLUGIN = "BmpImagePlugin.BmpImageFile"
_MODES: dict[str, tuple[Colour, bool]] = {
    "1": ("gray", False), "L": ("gray", False), "P": ("palette", False), "RGB": ("rgb", False), "RGBA": ("rgb", True),
}  # fmt: skip


def scan(file: BinaryIO, every: bool) -> Header:
    """The header; a palette that is black and white or all greys in order makes the image black and white or grey."""
    try:
        image = opened(_PLUGIN, file)
    except OSError as error:
        if not str(error).startswith("Unsupported"):
            raise
        raise TconvError(f"cannot be decoded: {error}", remedy="save it as PNG") from error
    colour, alpha = _MODES[image.mode]
    return Header(*image.size, colour, alpha, BOOL if image.mode == "1" else UINT8)


def decode(data: bytes, header: Header, count: int) -> Iterator[Picture]:
    yield first(_PLUGIN, data, header)
