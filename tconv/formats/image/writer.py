"""What the writers of images share: which pictures a format holds, and one file at the end of gathering its pixels."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv.errors import TconvError
from tconv.formats.flat import left_out
from tconv.formats.positional import created, pwrite
from tconv.suggest import listed
from tconv.tensor import Extra, Spec
from tconv.writer import ReadOptions, Writer

if TYPE_CHECKING:
    from tconv.ops import Array

_SLACK = 2048  # bytes around the pixels, and at the beginning of rows
_REREAD: Mapping[int, ReadOptions] = {
    1: ReadOptions("gray"), 2: ReadOptions("keep"), 3: ReadOptions("rgb"), 4: ReadOptions("rgba")
}  # fmt: skip


class ImageWriter(Writer):
    """One picture, HWC or HW, which is encoded when all of it is there: compressed pixels have no place beforehand.

    ``channels`` has for each dtype the numbers of channels that the format holds; ``largest`` is the most pixels that a
    side may have. Colours are RGB, or BGR where the spec says so, and RGB in the file; a fourth channel is opacity.
    """

    single: ClassVar[bool] = True
    compresses: ClassVar[bool] = True
    title: ClassVar[str]
    channels: ClassVar[Mapping[str, tuple[int, ...]]]
    largest: ClassVar[int]

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        if len(specs) != 1:
            raise TconvError(
                f"a {self.title} holds one picture, and there are {len(specs)}",
                remedy="-o DIR/ with --format writes a file for each",
            )
        self._spec = specs[0]
        try:
            self._shape = self._checked(self._spec)
        except TconvError as problem:
            raise problem.at(tensor=self._spec.name) from None
        self.size = self._spec.nbytes * 3 // 2 + _SLACK  # LZW makes that of noise
        self.left_out = left_out(extra)
        self.notes = tuple(_dark(self._spec))
        self._fd = -1
        self._flat: Array | None = None

    @abstractmethod
    def encode(self, pixels: Array) -> bytes:
        """The file of a C-order array (height, width, channels) of a dtype and channels that the format holds."""

    @property
    def rereading(self) -> ReadOptions:
        largest = max(1, self._shape[0] * self._shape[1])
        how = ReadOptions("keep") if self._spec.dtype.kind == "bool" else _REREAD[self._shape[2]]
        return ReadOptions("bgr" if self._swapped else how.channels, max_pixels=largest)

    def open(self, path: Path) -> None:
        self._fd = created(path)
        self._flat = np.empty(self._spec.size, self._spec.dtype.numpy)

    def write(self, i: int, lo: int, array: Array) -> None:
        assert self._flat is not None
        self._flat[lo : lo + array.size] = array.reshape(-1)

    def commit(self) -> None:
        data = self._encoded()
        pwrite(self._fd, memoryview(data), 0)
        os.fsync(self._fd)
        self.size = len(data)
        self.abort()

    def abort(self) -> None:
        self._flat = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def _swapped(self) -> bool:
        return self._spec.attrs.get("channels") == "BGR" and self._shape[2] == 3

    def _encoded(self) -> bytes:
        assert self._flat is not None
        pixels = self._flat.reshape(self._shape)
        try:
            return self.encode(np.ascontiguousarray(pixels[..., ::-1]) if self._swapped else pixels)
        except MemoryError:
            raise
        except Exception as error:  # whatever an encoder stumbles over
            reason = f"cannot be written as {self.title}: {' '.join(str(error).split())}"
            raise TconvError(reason, tensor=self._spec.name) from error

    def _checked(self, spec: Spec) -> tuple[int, int, int]:
        """Height, width, channels. Raises ``TconvError`` for what the format does not hold."""
        axes, shape = spec.axes, spec.shape
        if axes not in ("HW", "HWC", None) or len(shape) not in (2, 3):
            what = f"this is {axes}" if axes else f"this has the shape {shape}"
            raise TconvError(f"a {self.title} holds a picture, HWC or HW, and {what}", remedy=_arranging(axes))
        if spec.dtype.name not in self.channels:
            raise TconvError(f"a {self.title} holds {listed(self.channels)}, not {spec.dtype}", remedy=_values(spec))
        height, width, channels = (*shape, 1)[:3]
        if not (height and width and channels):
            raise TconvError(f"there are no pixels: its shape is {shape}", remedy="leave it out with --skip")
        held = self.channels[spec.dtype.name]
        if channels not in held or spec.attrs.get("inks"):
            found = "these are inks (CMYK)" if spec.attrs.get("inks") else f"this has {channels}"
            few = "--channels rgb makes RGB of pictures that are read, and lays them over white; a PNG holds opacity"
            raise TconvError(
                f"a {self.title} of {spec.dtype} has {listed(map(str, held))} channels, and {found}",
                remedy=few if channels <= 4 else "if its axes are others, name them with --input-layout",
            )
        if max(height, width) > self.largest:
            raise TconvError(
                f"{width}x{height} pixels, and a {self.title} has at most {self.largest:,} a side",
                remedy="write a PNG or TIFF, or make it smaller with --resize",
            )
        return height, width, channels


def _arranging(axes: str | None) -> str:
    """How what is no picture, HWC or HW, becomes one."""
    if axes is None:
        return "name its axes with --input-layout"
    if "N" in axes:
        return "-o DIR/ with --format takes it apart into pictures, and so does unstack"
    return "--layout HWC" if sorted(axes) == sorted("HWC") else "--skip leaves it out"


def _values(spec: Spec) -> str:
    """How values of a dtype that a format does not hold become pixels."""
    if spec.dtype.is_float:
        if spec.range is None:
            return (
                "--denormalize STATS makes pixels of what was normalized, --denormalize none of values in 0…1; "
                "else say --range LO,HI and --step 'scale(uint8)'; a .tiff holds float32"
            )
        if spec.range[0] == 0:
            return "--step 'scale(uint8)' makes pixels of them; a .tiff holds float32"
        return "--denormalize STATS undoes a normalization, --step 'scale(uint8)' takes the range to 0…255"
    if spec.dtype.name in ("bool", "uint16"):
        return "--step 'scale(uint8)' takes the range to 0…255; a PNG holds it as it is"
    return "--to uint8 or --to uint16, if the values fit"


def _dark(spec: Spec) -> list[str]:
    """A note on samples of fewer than 16 bits, whose white is not that of the file."""
    if spec.dtype.name != "uint16" or spec.range is None or not 0 < spec.range[1] < spec.dtype.max:
        return []
    white = f"its white is {spec.range[1]:g}, and in the file it is {spec.dtype.max}"
    return [f"{spec.name}: {white}: the values are kept, and look dark; scale(uint16) makes the most of them"]
