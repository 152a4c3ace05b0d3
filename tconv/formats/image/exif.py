"""The orientation in EXIF (CIPA DC-008, tag 0x0112) or XMP data: reading it, and turning pixels as it says."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tconv.ops import Array

TAG = 0x0112
_KINDS = {3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}  # the standard's is 3; of others those by which readers agree
_XMP = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')


def orientation(exif: bytes, xmp: bytes = b"") -> int | None:
    """The orientation, 1 to 8: of EXIF data (which begin with a TIFF header), and where these state none, of XMP data.

    1 where neither states one, None if the EXIF data are damaged, or state something that is no orientation; no data
    are none. As Pillow's ``exif_transpose``, but that takes the first of several numbers, and fractions.
    """
    try:
        stated = list(_in_exif(exif, {b"II*\0": "<", b"MM\0*": ">"}[exif[:4]])) if exif else []
    except (KeyError, struct.error):
        return None
    return agreed(stated) if stated else _in_xmp(xmp)


def agreed(stated: Sequence[int | None]) -> int | None:
    """What entries say if they say the same."""
    return stated[0] if len(set(stated)) == 1 else None


def stated_by(kind: int, count: int, value: bytes, order: str) -> int | None:
    """What an entry of that TIFF type says, of which ``value`` is the field; None if that is no orientation. 0, which
    cameras write who do not know, is 1.
    """
    if kind not in _KINDS or count != 1:
        return None
    number = int(struct.unpack_from(order + _KINDS[kind], value)[0])
    return max(1, number) if 0 <= number <= 8 else None


def _in_xmp(xmp: bytes) -> int:
    found = _XMP.search(xmp)
    number = int(found[1]) if found else 1
    return number if 1 <= number <= 8 else 1


def _in_exif(exif: bytes, order: str) -> Iterator[int | None]:
    (start,) = struct.unpack_from(order + "I", exif, 4)
    (count,) = struct.unpack_from(order + "H", exif, start)
    entry = struct.Struct(order + "HHI4s")
    for at in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind, values, value = entry.unpack_from(exif, at)
        if tag == TAG:
            yield stated_by(kind, values, value, order)


def turn(x: Array, orientation: int) -> Array:
    """A view of an image (height, width, ...) turned so that it is upright, as EXIF's orientation 1 to 8 says."""
    if orientation in (2, 3, 7, 8):
        x = x[:, ::-1]
    if orientation in (3, 4, 6, 7):
        x = x[::-1]
    return x.swapaxes(0, 1) if orientation > 4 else x


def turn_box(
    box: tuple[float, float, float, float], height: int, width: int, orientation: int
) -> tuple[float, float, float, float]:
    """Where (top, left, bottom, right) of an image of ``height`` × ``width`` is when that is turned."""
    top, left, bottom, right = box
    if orientation in (2, 3, 7, 8):
        left, right = width - right, width - left
    if orientation in (3, 4, 6, 7):
        top, bottom = height - bottom, height - top
    return (left, top, right, bottom) if orientation > 4 else (top, left, bottom, right)


def place(x: Array, orientation: int, out: Array) -> None:
    """Copy the turned image into ``out``, which has its shape then."""
    if orientation == 1:
        np.copyto(out, x)
        return
    whole = f"V{x.dtype.itemsize * (x.shape[2] if x.ndim == 3 else 1)}"  # pixels moved as wholes: twice as fast
    np.copyto(out.view(whole), turn(np.ascontiguousarray(x).view(whole), orientation))
