"""JPEGs that a GPU may decode (--gpu-jpeg): which those are, and that they are as whole as for the exact decoder."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tconv.formats.image import jpeg
from tconv.formats.image.header import Picture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tconv.formats.image.header import Header

_ADOBE, _APP14 = b"Adobe", 0xEE
_EIGHTH = 8  # the least size that libjpeg-turbo decodes at


def may(family: str, header: Header) -> bool:
    """Whether it is a JPEG in colour. Grey is quick to decode, and of inks nvJPEG knows nothing."""
    return family == "jpeg" and header.colour == "rgb"


def decode(data: bytes, header: Header, device: str, path: Path) -> Iterator[Picture]:
    """As ``jpeg.decode`` does, by the device if it can.

    nvJPEG makes something of a broken stream without a word, so the stream is read here too, at an eighth of its size,
    as strictly as ever. It also takes all for YCbCr, which is why what is stored as RGB is not for it.
    """
    from tconv.devices import nvjpeg

    jpeg.decode_as(data, header.shrunk(_EIGHTH), "GRAY")
    pixels = None if _stored_as_rgb(data) else nvjpeg.decoded(data, device)
    if pixels is None or pixels.shape != (*header.size, 3):
        nvjpeg.leave(path)
        return jpeg.decode(data, header, 1)
    return iter((Picture(pixels),))


def _stored_as_rgb(data: bytes) -> bool:
    """As libjpeg tells (jdapimin.c, default_decompress_parms): by Adobe's marker, or by the names of the components."""
    names, adobe = b"", b""
    for marker, body, _ in jpeg.segments(io.BytesIO(data)):
        if marker in jpeg.FRAMES:
            names = body[6::3]
        elif marker == _APP14 and body.startswith(_ADOBE):
            adobe = body
    return adobe[11:12] == b"\0" or names == b"RGB"
