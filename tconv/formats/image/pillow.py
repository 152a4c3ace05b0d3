"""Pillow: its plugins called by name, so that neither suffix nor its global settings have a say."""

from __future__ import annotations

import importlib
import io
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from PIL import Image, ImageFile

from tconv import registry
from tconv.formats.image.header import MAX_PIXELS, Header, Picture

if TYPE_CHECKING:
    from tconv.ops import Array

warnings.filterwarnings("ignore", module=r"PIL\.")  # of odd metadata and large images; what matters is an error here
_LOCK = threading.Lock()


# Pillow logs what it finds odd; what matters is said by tconv, with the file's name.
logging.getLogger("PIL").addHandler(logging.NullHandler())


def opened(plugin: str, file: BinaryIO) -> ImageFile.ImageFile:
    """The image file as the plugin ("module.class") sees it, its header read."""
    module, _, name = plugin.partition(".")
    image: ImageFile.ImageFile = registry.load(f"PIL.{module}:{name}")(file)
    return image


@contextmanager
def unlimited(header: Header) -> Iterator[None]:
    """Lift Pillow's own limit for an image that a raised ``--max-pixels`` has let through."""
    if header.width * header.height <= MAX_PIXELS:
        yield
        return
    with _LOCK:  # the limit is one for the whole process
        before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = before


def first(plugin: str, data: bytes, header: Header) -> Picture:
    """The first frame in the file's own mode, with the palette if it has one."""
    with unlimited(header):
        image = opened(plugin, io.BytesIO(data))
        return Picture(pixels(image), palette(image) if header.colour == "palette" else None)


def frames(plugin: str, data: bytes, header: Header, count: int, mode: str) -> Iterator[Picture]:
    """All frames, composited as the format says, in ``mode``."""
    with unlimited(header):
        image = opened(plugin, io.BytesIO(data))
        for i in range(count):
            image.seek(i)
            yield Picture(pixels(image.convert(mode)))


def pixels(image: Image.Image) -> Array:
    """(height, width, channels), in native byte order."""
    array = np.asarray(image)
    if array.dtype == np.bool_:
        array = array.view(np.uint8) != 0  # Pillow's true is the byte 255
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array if array.ndim == 3 else array[..., None]


def palette(image: Image.Image) -> Array:
    """The palette as 8-bit RGBA (n, 4), opaque but for the transparent index; all greys for mode L, which has none."""
    colours = np.arange(256)[:, None] if image.mode == "L" else np.array(image.getpalette("RGB")).reshape(-1, 3)
    table = np.full((len(colours), 4), 255, np.uint8)
    table[:, :3] = colours
    clear = image.info.get("transparency")
    if isinstance(clear, int) and clear < len(table):
        table[clear, 3] = 0
    return table


def encoded(plugin: str, form: str, pixels: Array, **options: Any) -> bytes:
    """The file of that module of Pillow and the format's name in it, of (height, width, channels) of bool or uint8."""
    importlib.import_module(f"PIL.{plugin}")  # which makes the name known
    buffer = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(buffer, form, **options)
    return buffer.getvalue()
