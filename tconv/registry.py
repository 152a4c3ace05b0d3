"""What there is: formats and steps by name, each imported when it is first asked for."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tconv import impostors
from tconv.errors import TconvError, UsageError
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    from tconv.plugins import Plugin
    from tconv.step import Step
    from tconv.tensor import Stream
    from tconv.writer import ReadOptions, Writer

    Reader = Callable[[Path, str, ReadOptions], Stream]


@dataclass(frozen=True)
class Format:
    """A row of the table. ``magic`` is a pattern that the first bytes of such a file match. ``origin``: the package of
    a plugin, with its version.
    """

    name: str
    title: str
    group: Literal["image", "array", "weights"]
    suffixes: tuple[str, ...]
    reader: str = ""  # "module:function", called as (path, name, options) -> Stream
    writer: str = ""  # "module:class", a writer.Writer
    magic: bytes = b""
    origin: str = ""


_IMAGE = "tconv.formats.image.reader:read"
_OUT = "tconv.formats.image"
_ROWS = (
    Format(
        "jpeg", "JPEG", "image", (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"), _IMAGE, f"{_OUT}.jpeg:JpegWriter",
        magic=rb"\xff\xd8\xff",
    ),
    Format("png", "PNG", "image", (".png",), _IMAGE, f"{_OUT}.png:PngWriter", magic=rb"\x89PNG\r\n\x1a\n"),
    Format("webp", "WebP", "image", (".webp",), _IMAGE, f"{_OUT}.webp:WebpWriter", magic=rb"RIFF....WEBP"),
    Format("bmp", "Windows bitmap", "image", (".bmp", ".dib"), _IMAGE, magic=rb"BM"),
    Format("tiff", "TIFF", "image", (".tif", ".tiff"), _IMAGE, f"{_OUT}.tiff:TiffWriter", magic=rb"II[*+]\0|MM\0[*+]"),
    Format("gif", "GIF", "image", (".gif",), _IMAGE, magic=rb"GIF8[79]a"),
    Format("avif", "AVIF", "image", (".avif", ".avifs"), _IMAGE, magic=rb"....ftyp(avi[fs]|m[is]f1|he[iv][cxms])"),
    Format(
        "jpeg2000", "JPEG 2000", "image", (".jp2", ".j2k", ".jpf", ".jpx", ".j2c", ".jpc"), _IMAGE,
        magic=rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51",
    ),
    Format("pnm", "PBM, PGM, PPM", "image", (".pbm", ".pgm", ".ppm", ".pnm"), _IMAGE, magic=rb"P[1-6][\s#]"),
    Format("pfm", "PFM", "image", (".pfm",), _IMAGE, magic=rb"P[Ff]\s"),
    Format(
        "npy", "NumPy array", "array", (".npy",), "tconv.formats.npy:read", "tconv.formats.npy:NpyWriter",
        magic=rb"\x93NUMPY",
    ),
    Format("npz", "NumPy archive", "array", (".npz",), "tconv.formats.npz:read", "tconv.formats.npz:NpzWriter"),
    Format(
        "safetensors", "safetensors", "weights", (".safetensors",), "tconv.formats.safetensors:read",
        "tconv.formats.safetensors:SafetensorsWriter", magic=rb"[\s\S]{6}\0\0\{",
    ),
    Format(
        "compressed-tensors", "compressed-tensors folder", "weights", (".safetensors",),
        writer="tconv.formats.compressed:CompressedWriter",
    ),
    Format(
        "pt", "PyTorch checkpoint", "weights", (".pt", ".pth", ".bin", ".ckpt", ".th"),
        "tconv.formats.torch.reader:read", "tconv.formats.torch.writer:TorchWriter",
        magic=rb"\x80[\x02-\x05](\x95[\s\S]{8})?\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.",
    ),
    Format(
        "index", "sharded checkpoint", "weights", (".safetensors.index.json", ".bin.index.json"),
        "tconv.formats.shards:read",
    ),
)  # fmt: skip

FORMATS: dict[str, Format] = {row.name: row for row in _ROWS}

STEPS: dict[str, str] = {
    "cast": "tconv.steps.cast:Cast",
    "clamp": "tconv.steps.clamp:Clamp",
    "crop": "tconv.steps.crop:Crop",
    "device": "tconv.steps.device:Device",
    "dequantize": "tconv.steps.dequantize:Dequant",
    "denormalize": "tconv.steps.denormalize:Denormalize",
    "letterbox": "tconv.steps.letterbox:Letterbox",
    "match": "tconv.steps.match:Match",
    "normalize": "tconv.steps.normalize:Normalize",
    "pad": "tconv.steps.pad:Pad",
    "permute": "tconv.steps.permute:Permute",
    "pictures": "tconv.steps.pictures:Pictures",
    "resize": "tconv.steps.resize:Resize",
    "scale": "tconv.steps.scale:Scale",
    "quantize": "tconv.steps.quantize:Quant",
    "stack": "tconv.steps.stack:Stack",
    "unstack": "tconv.steps.unstack:Unstack",
}


@cache
def load(target: str) -> Any:
    """The object that "module:object" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def step(name: str) -> type[Step]:
    """The class of the step of that name; ``UsageError`` with the nearest names if there is none, ``TconvError`` if it
    is that of a package that is broken.
    """
    if name in STEPS:
        return load(STEPS[name])  # type: ignore[no-any-return]  # what a row names is only known when imported
    from tconv import vocabulary
    from tconv.plugins import plugins
    from tconv.step import Step

    others = plugins("tconv.steps", STEPS)
    for plugin in others:
        if plugin.name == name:
            return plugin.load(Step)  # type: ignore[no-any-return]  # as above
    known = vocabulary.STEPS.get(name.lower().replace("_", ""))
    names = [*STEPS, *(plugin.name for plugin in others)]
    raise UsageError(f"there is no step {name!r}", remedy=known or _did_you_mean(name, names))


def every_step() -> tuple[dict[str, tuple[type[Step], str]], list[TconvError]]:
    """All steps by name, each with the package that brings it, and what is wrong with those of packages."""
    from tconv.plugins import plugins
    from tconv.step import Step

    found, problems = {name: (step(name), "") for name in STEPS}, list[TconvError]()
    for plugin in plugins("tconv.steps", STEPS):
        try:
            found[plugin.name] = plugin.load(Step), plugin.package
        except TconvError as problem:
            problems.append(problem)
    return found, problems


@cache
def foreign() -> tuple[tuple[Format, ...], tuple[TconvError, ...]]:
    """The formats of other packages, and what is wrong with those that cannot be used."""
    from tconv.plugins import plugins

    rows, problems = list[Format](), list[TconvError]()
    for plugin in plugins("tconv.formats", FORMATS):
        try:
            rows.append(_checked(plugin))
        except TconvError as problem:
            problems.append(problem)
    return tuple(rows), tuple(problems)


def _checked(plugin: Plugin) -> Format:
    row: Format = plugin.load(Format)
    if not row.suffixes or not all(suffix[:1] == "." and suffix == suffix.lower() for suffix in row.suffixes):
        raise plugin.broken("its suffixes are not written as ('.abc', …), in small letters")
    if row.group not in ("image", "array", "weights"):
        raise plugin.broken(f"its group {row.group!r} is none of image, array, weights")
    for own in FORMATS.values():
        if common := set(own.suffixes).intersection(row.suffixes):
            raise plugin.broken(f"the suffix {min(common)} is that of tconv's {own.name}")
    return replace(row, origin=plugin.package)


def reader(row: Format) -> Reader:
    return load(row.reader)  # type: ignore[no-any-return]  # as above


def writer(row: Format) -> type[Writer]:
    return load(row.writer)  # type: ignore[no-any-return]  # as above


def rereader(row: Format) -> Reader:
    """What reads back what the writer of that format wrote."""
    return load(writer(row).reader or row.reader)  # type: ignore[no-any-return]  # as above


def writable() -> list[Format]:
    """Those of tconv itself that it can write."""
    return [row for row in FORMATS.values() if row.writer]


def every_writable() -> list[Format]:
    """Those of other packages too."""
    return [row for row in _rows() if row.writer]


def by_name(name: str) -> Format:
    """The writable format of that name or suffix (``npy``, ``.npy``, ``pth``)."""
    plain = name.lower().lstrip(".")
    for row in _rows():
        if row.writer and (plain == row.name or f".{plain}" in row.suffixes):
            return row
    names = [row.name for row in every_writable()]
    raise UsageError(f"there is no output format {name!r}", remedy=_or_mend(_did_you_mean(plain, names)))


def by_suffix(path: Path, *, output: bool = False) -> Format | None:
    """The format that the file's name promises, or None; a name that is nothing but a suffix has none."""
    name = path.name.lower()
    rows = (row for row in _rows() if row.writer or not output)
    return next((row for row in rows if any(name.endswith(s) and name != s for s in row.suffixes)), None)


def _rows() -> Iterator[Format]:
    """The formats of tconv; for who goes on asking, those of other packages too."""
    yield from FORMATS.values()
    yield from foreign()[0]


MODELS = (".onnx", ".pt2")  # files that quantize-model takes, and nothing else does


def _or_mend(remedy: str) -> str:
    """A remedy for what no format is found for: it may be one that cannot be used."""
    return "; ".join([remedy, *(problem.reason for problem in foreign()[1])])


def detect(path: Path) -> Format:
    """The format of an existing file: its content decides, its suffix where the content says nothing.

    Raises ``TconvError`` for an empty file, for what is plainly something else, and for what is of no known format.
    """
    with path.open("rb", buffering=0) as file:
        head = file.read(impostors.HEAD)
    if not head:
        raise TconvError("the file is empty (0 bytes)", remedy="fetch or write it again", file=path)
    for row in FORMATS.values():
        if row.magic and re.match(row.magic, head, re.DOTALL):
            return row
    promised = by_suffix(path)
    if head.startswith(b"PK") and not (promised and promised.origin):
        return FORMATS[_zip_kind(path)]
    claims = promised is not None and path.suffix.lower() != ".json"
    if impostor := impostors.recognize(head, claims):
        raise impostor.at(file=path)
    if promised is not None:
        return promised  # its reader says what is wrong with it
    if head[:1] == b"\x80" or path.suffix.lower() in (".pkl", ".pickle"):
        raise TconvError(
            "a plain pickle: reading it would execute the code it holds, which tconv never does",
            remedy="save the tensors as .safetensors, .npz or with torch.save",
            file=path,
        )
    for row in foreign()[0]:
        if row.magic and re.match(row.magic, head, re.DOTALL):
            return row
    if path.suffix.lower() in MODELS:
        raise TconvError(
            "a whole model, not its tensors", remedy=f"tconv quantize-model {path} makes it int8", file=path
        )
    known = ", ".join(sorted({s for row in _rows() for s in row.suffixes}))
    raise TconvError("no known format, by content or by suffix", remedy=_or_mend(f"tconv reads {known}"), file=path)


def _zip_kind(path: Path) -> str:
    """A zip archive is a checkpoint or an .npz: whose members they are tells, then the suffix."""
    try:
        names = load("tconv.formats.unzip:names")(path)
    except TconvError:  # which its reader tells
        names = []
    if any(n.endswith("data.pkl") for n in names):
        return "pt"
    if any(n.endswith(".npy") for n in names):
        return "npz"
    return "npz" if path.suffix.lower() == ".npz" else "pt"


def _did_you_mean(word: str, known: Collection[str]) -> str:
    return did_you_mean(word, known, f"there are {', '.join(sorted(known))}")
