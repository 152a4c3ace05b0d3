"""From a file's own channels to those that were asked for: RGB, BGR, grey, RGBA, or as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tconv.errors import TconvError
from tconv.formats.image.header import COLOURS, Header, Picture

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.writer import ReadOptions

_BAND = 1 << 18  # pixels widened at a time: the wide copy stays in the cache, and memory does not grow with the image


def assemble(picture: Picture, header: Header, options: ReadOptions) -> Array:
    """The pixels (height, width, channels) as the options want them; (height, width) for palette indices."""
    pixels, palette = picture
    if options.palette == "index":
        return pixels[..., 0]
    if palette is None:
        return convert(pixels, header.colour, header.alpha, header.white, options)
    if not header.alpha:
        palette = palette[:, :3]
    table = convert(palette[None], "rgb", header.alpha, header.white, options)[0]
    highest = int(pixels.max())
    if highest >= len(table):
        raise TconvError(
            f"corrupt: it uses colour {highest} of a palette of {len(table)}",
            remedy="read the indices with --palette index, or write the image again",
        )
    return np.take(table, pixels[..., 0], axis=0)


def convert(x: Array, colour: str, alpha: bool, white: int | None, options: ReadOptions) -> Array:
    """Convert (height, width, samples) to the channels that the options name.

    A fixed order makes the results agree with each other: black and white and inks become grey or RGB, alpha is
    blended, then RGB becomes grey by ITU-R 601-2 luma. So grey is always the luma of what RGB would be.
    """
    want = options.channels
    if want == "keep" or (want == "own" and colour != "cmyk"):
        return x
    if x.dtype == np.bool_:
        x = x.view(np.uint8) * np.uint8(255)
    if colour == "cmyk":
        x = cmyk_to_rgb(x)
    if want == "rgba":
        return _with_alpha(x, alpha, white)
    if alpha:
        x = x[..., :-1] if options.alpha == "drop" else blend(x, white, options.alpha == "white")
    if want == "gray":
        return x if x.shape[2] == 1 else luma(x)
    if x.shape[2] == 1:
        return _tripled(x)
    return x[..., ::-1] if want == "bgr" else x


def blend(x: Array, white: int | None, over_white: bool) -> Array:
    """Lay colours over white or black: ``fg*a + bg*(1-a)``, rounded once; the last channel is alpha, ``white`` opaque.

    In integers that is exact, and as ``white`` (2**n - 1) is odd there are no ties. The division by it is done with
    shifts (J. F. Blinn, "Three wrongs make a right", IEEE CG&A 1995), which is exact below 2**2n - 1.
    """
    assert white is not None  # an image without has been refused when it was described
    if x[..., -1].min() == white:
        return x[..., :-1]
    bits = white.bit_length()
    wide = np.uint16 if bits <= 8 else np.uint32 if bits <= 16 else np.uint64
    out = np.empty((*x.shape[:2], x.shape[2] - 1), x.dtype)
    for rows in _bands(x):
        alpha = x[rows, :, -1].astype(wide)
        ground = white * (white - alpha) + white // 2 if over_white else white // 2
        for channel in range(out.shape[2]):  # one by one: a last axis of three makes slow loops
            total = x[rows, :, channel] * alpha
            total += ground
            total += (total >> bits) + 1
            out[rows, :, channel] = total >> bits
    return out


def luma(x: Array) -> Array:
    """Grey by ITU-R 601-2, ``(299 R + 587 G + 114 B) / 1000``: for 8 bits as Pillow's mode L, bit for bit; else rounded
    once from float64."""
    if x.dtype == np.uint8:
        from PIL import Image

        return np.asarray(Image.fromarray(np.ascontiguousarray(x)).convert("L"))[..., None]
    out = np.empty((*x.shape[:2], 1), x.dtype)
    weights = np.array([299.0, 587.0, 114.0])
    for rows in _bands(x):
        with np.errstate(invalid="ignore"):  # infinities of both signs make a NaN, as they should
            grey = (x[rows].astype(np.float64) @ weights) / 1000
        out[rows, :, 0] = grey if x.dtype.kind == "f" else np.rint(grey)
    return out


def cmyk_to_rgb(x: Array) -> Array:
    """8-bit inks (255 is full ink) to RGB by Pillow's formula, ``(255 - C) (255 - K) / 255``."""
    from PIL import Image

    height, width = x.shape[:2]
    inks = Image.frombuffer("CMYK", (width, height), np.ascontiguousarray(x), "raw", "CMYK", 0, 1)
    return np.asarray(inks.convert("RGB"))


def _with_alpha(x: Array, alpha: bool, white: int | None) -> Array:
    colours = x.shape[2] - alpha
    out = np.empty((*x.shape[:2], COLOURS["rgb"] + 1), x.dtype)
    out[..., :3] = x[..., :colours]
    out[..., 3] = x[..., -1] if alpha else _opaque(x.dtype, white)
    return out


def _opaque(dtype: np.dtype[Any], white: int | None) -> int:
    if white is not None:
        return white
    return 1 if dtype.kind == "f" else int(np.iinfo(dtype).max)


def _tripled(x: Array) -> Array:
    out = np.empty((*x.shape[:2], 3), x.dtype)
    for channel in range(3):  # three strided copies are faster than one broadcast over a last axis of three
        out[..., channel] = x[..., 0]
    return out


def _bands(x: Array) -> Iterator[slice]:
    rows = max(1, _BAND // x.shape[1])
    return (slice(top, top + rows) for top in range(0, x.shape[0], rows))
