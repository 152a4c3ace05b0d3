"""OpenCV for deep images (more than 8 bits a channel), and silent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tconv import opencv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.ops import Array

cv2 = opencv.load()
# What is wrong is said in an error, once.
if hasattr(cv2, "setLogLevel"):  # up to OpenCV 4.12
    cv2.setLogLevel(0)
else:
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


_ORDER = {3: [2, 1, 0], 4: [2, 1, 0, 3]}  # from RGB to OpenCV's BGR, and back


def reads(codec: str) -> bool:
    """Whether OpenCV was built with a codec, by its name in what it says of its build."""
    return re.search(rf"^\s*{codec}:\s+(?!NO\b)\S", cv2.getBuildInformation(), re.MULTILINE) is not None


def decode_one(data: bytes) -> Array:
    """The first image of ``data``, unchanged but for the order of its channels: grey, RGB or RGBA, always 3-D."""
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise ValueError("OpenCV cannot decode it")
    return _ordered(pixels)


def decode_all(data: bytes) -> list[Array]:
    """All images of ``data``, as ``decode_one`` gives them."""
    pages: Sequence[Array]
    done, pages = cv2.imdecodemulti(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if not done:
        raise ValueError("OpenCV cannot decode it")
    return [_ordered(page) for page in pages]


def _ordered(pixels: Array) -> Array:
    """From OpenCV's BGR to RGB, always 3-D."""
    if pixels.ndim == 2:
        return pixels[..., None]
    return pixels[..., _ORDER[pixels.shape[2]]]


def encode(suffix: str, pixels: Array) -> bytes:
    """The file that a name of that ``suffix`` would get, of grey, RGB or RGBA, always 3-D."""
    if pixels.shape[2] > 1:
        pixels = pixels[..., _ORDER[pixels.shape[2]]]
    done, data = cv2.imencode(suffix, pixels)
    if not done:
        raise ValueError("OpenCV cannot encode it")
    found: bytes = data.tobytes()
    return found
