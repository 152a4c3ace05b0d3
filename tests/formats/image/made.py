"""Image files for tests, made by Pillow or byte by byte, and what independent programs make of them."""

from __future__ import annotations

import importlib.util
import io
import struct
import warnings
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageOps

from tconv.formats.image.reader import read
from tconv.tensor import Spec, Tensor
from tconv.writer import ReadOptions
from tests.formats.conformance import Reading, values

if TYPE_CHECKING:
    from tconv.ops import Array

Chunks = Iterable[tuple[bytes, bytes]]
Tags = Sequence[tuple[int, str, Sequence[int]]]


class ImageReading(Reading):
    """The conformance suite, with Pillow as the reference."""

    def reference(self, path: Path) -> dict[str, Array]:
        return {"x": pillow_rgb(path.read_bytes())}


def tensor_of(path: Path, **options: Any) -> Tensor:
    (tensor,) = read(path, "x", ReadOptions(**options)).tensors
    return tensor


def spec_of(path: Path, **options: Any) -> Spec:
    return tensor_of(path, **options).spec


def array_of(path: Path, **options: Any) -> Array:
    """The decoded image, which is what its spec says."""
    tensor = tensor_of(path, **options)
    array = values(tensor)
    assert array.dtype == tensor.spec.dtype.numpy
    assert array.flags.c_contiguous
    return array


def pillow_rgb(data: bytes) -> Array:
    """What Pillow makes of an image: upright, over white, in RGB; 16-bit grey and floats as three equal channels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image: Image.Image = Image.open(io.BytesIO(data))
        with suppress(SyntaxError):  # damaged EXIF data turn nothing
            image = ImageOps.exif_transpose(image)
        if image.mode in ("I;16", "I;16B", "I", "F"):
            return native(np.repeat(np.asarray(image)[..., None], 3, axis=-1))
        if image.mode in ("CMYK", "LAB"):
            return np.asarray(image.convert("RGB"))
        return over(np.asarray(image.convert("RGBA")), 255)


def native(x: Array) -> Array:
    return x.astype(x.dtype.newbyteorder("="), copy=False)


def over(x: Array, background: int, top: int = 0) -> Array:
    """Colours with alpha, ``top`` or the dtype's largest being opaque, laid over one grey level: the definition."""
    top = top or np.iinfo(x.dtype).max
    alpha = x[..., -1:] / top
    blended: Array = np.rint(x[..., :-1] * alpha + background * (1 - alpha)).astype(x.dtype)
    return blended


def photo(height: int = 24, width: int = 40, seed: int = 0) -> Array:
    """A smooth random RGB picture, which compresses like a photo."""
    small = np.random.default_rng(seed).integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return np.array(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def saved(image: Array | Image.Image, form: str, **options: Any) -> bytes:
    """The image as Pillow saves it."""
    buffer = io.BytesIO()
    picture = image if isinstance(image, Image.Image) else Image.fromarray(np.ascontiguousarray(image))
    picture.save(buffer, form, **options)
    return buffer.getvalue()


# TIFF's types that hold one number in the field of an entry, as struct has them.
NUMBERS = {1: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 13: "I"}


def oriented(value: int, kind: int = 3, order: str = "<", count: int = 1) -> bytes:
    """EXIF data with nothing but an orientation, of TIFF type ``kind``, said to be ``count`` values."""
    return exif_of((0x0112, kind, count, struct.pack(order + NUMBERS[kind], value)), order=order)


def exif_of(*entries: tuple[int, int, int, bytes], order: str = "<") -> bytes:
    """EXIF data of these entries: tag, type, count and the field of 4 bytes, which is filled up with zeros."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries))
    fields = [struct.pack(order + "HHI", *entry[:3]) + entry[3].ljust(4, b"\0") for entry in entries]
    return head + b"".join(fields) + bytes(4)


AVIF = importlib.util.find_spec("PIL._avif") is not None  # Pillow before 11.3 has none

# Primaries as XYZ under D50, as the makers of the spaces state them.
SRGB = {"r": (0.43607, 0.22249, 0.01392), "g": (0.38515, 0.71687, 0.09708), "b": (0.14307, 0.06061, 0.7141)}
P3 = {"r": (0.51512, 0.2412, -0.00105), "g": (0.29198, 0.69225, 0.04189), "b": (0.1571, 0.06657, 0.78407)}


def curve(*values: float) -> bytes:
    """A curve of an ICC profile: none is the identity, one is a gamma, several are a table of 16-bit numbers."""
    numbers = [round(256 * values[0])] if len(values) == 1 else [round(value) for value in values]
    return b"curv" + bytes(4) + struct.pack(f">I{len(numbers)}H", len(numbers), *numbers)


def profile(
    primaries: dict[str, tuple[float, float, float]], tone: bytes, name: str, space: str = "RGB", version: int = 2
) -> bytes:
    """An ICC profile of a display, with one curve for all channels."""
    if version == 4:
        text = name.encode("utf-16-be")
        desc = b"mluc" + bytes(4) + struct.pack(">II4sII", 1, 12, b"enUS", len(text), 28) + text
    else:
        desc = b"desc" + bytes(4) + struct.pack(">I", len(name) + 1) + name.encode() + b"\0"
    tags = {b"desc": desc, b"kTRC": tone}
    for letter, numbers in primaries.items():
        tags[letter.encode() + b"XYZ"] = b"XYZ " + bytes(4) + struct.pack(">3i", *(round(65536 * n) for n in numbers))
        tags[letter.encode() + b"TRC"] = tone
    table, body, at = b"", b"", 132 + 12 * len(tags)
    for kind, data in tags.items():
        table += struct.pack(">4sII", kind, at + len(body), len(data))
        body += data
    head = struct.pack(
        ">I4sBBBB4s4s4s", at + len(body), b"none", version, 0, 0, 0, b"mntr", space.ljust(4).encode(), b"XYZ "
    )
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    width: int,
    height: int,
    depth: int,
    kind: int,
    rows: Iterable[bytes],
    before: Chunks = (),
    after: Chunks = (),
) -> bytes:
    """A PNG of unfiltered rows, with chunks before and after the pixels."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))
    data = png_chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    extra = [b"".join(png_chunk(*chunk) for chunk in chunks) for chunks in (before, after)]
    return b"\x89PNG\r\n\x1a\n" + head + extra[0] + data + extra[1] + png_chunk(b"IEND", b"")


def apng(
    *frames: tuple[Array, tuple[int, int], int, int], canvas: tuple[int, int], default: Array | None = None
) -> bytes:
    """An animation of (pixels, (left, top), disposal, blending), on a canvas (height, width)."""
    depth, kind = frames[0][0].dtype.itemsize * 8, {1: 0, 2: 4, 3: 2, 4: 6}[frames[0][0].shape[2]]

    def packed(x: Array) -> bytes:
        return zlib.compress(b"".join(b"\0" + row.astype(f">u{depth // 8}").tobytes() for row in x))

    parts = [png_chunk(b"IHDR", struct.pack(">IIBBBBB", canvas[1], canvas[0], depth, kind, 0, 0, 0))]
    parts.append(png_chunk(b"acTL", struct.pack(">II", len(frames), 0)))
    if default is not None:
        parts.append(png_chunk(b"IDAT", packed(default)))
    number = 0
    for i, (x, (left, top), disposal, blending) in enumerate(frames):
        size = (x.shape[1], x.shape[0], left, top)
        parts.append(png_chunk(b"fcTL", struct.pack(">5IHHBB", number, *size, 1, 10, disposal, blending)))
        number += 1
        if i or default is not None:
            parts.append(png_chunk(b"fdAT", struct.pack(">I", number) + packed(x)))
            number += 1
        else:
            parts.append(png_chunk(b"IDAT", packed(x)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + png_chunk(b"IEND", b"")


def png_of(x: Array, before: Chunks = (), after: Chunks = ()) -> bytes:
    """uint8 or uint16 (height, width, channels) as grey, grey and alpha, RGB or RGBA."""
    depth, kind = x.dtype.itemsize * 8, {1: 0, 2: 4, 3: 2, 4: 6}[x.shape[2]]
    return png(
        x.shape[1], x.shape[0], depth, kind, [row.astype(f">u{depth // 8}").tobytes() for row in x], before, after
    )


_TYPES = {"B": 1, "H": 3, "I": 4, "b": 6, "h": 8, "i": 9, "f": 11, "d": 12}


def tiff(
    x: Array,
    *,
    order: str = "<",
    compression: int = 1,
    data: bytes | None = None,
    photometric: int | None = None,
    bits: int | None = None,
    form: int | None = None,
    extra: Sequence[int] = (),
    more: Tags = (),
    without: Sequence[int] = (),
) -> bytes:
    """(height, width, samples) as a TIFF of one strip, which is ``data`` if it is not just ``x``.

    ``more`` and ``without`` are tags that are added, replaced or left out.
    """
    height, width, samples = x.shape
    if data is None:
        raw = x.astype(x.dtype.newbyteorder(order)).tobytes()  # type: ignore[arg-type]  # < and > are such orders
        data = zlib.compress(raw) if compression == 8 else raw
    color = (2 if samples > 2 else 1) if photometric is None else photometric
    tags: list[tuple[int, str, Sequence[int]]] = [
        (256, "I", [width]),
        (257, "I", [height]),
        (258, "H", [bits or x.dtype.itemsize * 8] * samples),
        (259, "H", [compression]),
        (262, "H", [color]),
        (273, "I", [8]),
        (277, "H", [samples]),
        (278, "I", [height]),
        (279, "I", [len(data)]),
        (339, "H", [form or {"u": 1, "b": 1, "i": 2, "f": 3}[x.dtype.kind]] * samples),
    ]
    tags += [(338, "H", extra)] if extra else []
    replaced = {*without, *(tag for tag, _, _ in more)}
    tags = sorted([*(tag for tag in tags if tag[0] not in replaced), *more])
    data += bytes(len(data) % 2)
    at = 8 + len(data)
    behind = at + 2 + 12 * len(tags) + 4
    entries, far = struct.pack(order + "H", len(tags)), b""
    for tag, kind, numbers in tags:
        value = struct.pack(order + kind * len(numbers), *numbers)
        entries += struct.pack(order + "HHI", tag, _TYPES[kind], len(numbers))
        if len(value) > 4:
            entries += struct.pack(order + "I", behind + len(far))
            far += value + bytes(len(value) % 2)
        else:
            entries += value.ljust(4, b"\0")
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    return head + data + entries + bytes(4) + far


def written(folder: Path, data: bytes, name: str = "x.img") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path
