"""Middlebury's .flo: a float32 vector (u, v) for each pixel, behind the mark PIEH, the width and the height.

Source: https://vision.middlebury.edu/flow/code/flow-code/README.txt
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats.flat import check_dtypes, left_out
from tconv.formats.positional import PositionalWriter
from tconv.formats.raw import RawSource, check_length, checked_bytes, file_size, opened, take, truncated
from tconv.tensor import Extra, Spec, Stream, Tensor
from tconv.writer import ReadOptions

MAGIC = b"PIEH"
HEADER = struct.Struct("<4sii")
FLOAT32 = dtype("float32")


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """The flow as HxWx2, from the header alone."""
    with opened(path) as file:
        size = file_size(file)
        head = take(file, HEADER.size)
        if len(head) < HEADER.size:
            raise truncated(HEADER.size, size)
        magic, width, height = HEADER.unpack(head)
        if magic != MAGIC:
            raise TconvError("not a .flo file: it starts otherwise")
        shape = (height, width, 2)
        check_length(HEADER.size + checked_bytes(shape, FLOAT32), size)
    spec = Spec(name, FLOAT32, shape, axes="HWC")
    return Stream((Tensor(spec, RawSource(path, FLOAT32, shape, HEADER.size)),), Extra("data"))


class FloWriter(PositionalWriter):
    """Writes one flow; its name, metadata and structure are left out."""

    single: ClassVar[bool] = True

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        check_dtypes(specs, ["float32"], ".flo")
        if len(specs) != 1 or len(specs[0].shape) != 3 or specs[0].shape[2] != 2:
            shapes = ", ".join(str(spec.shape) for spec in specs)
            raise TconvError(f"a .flo file holds one flow of shape (height, width, 2), not {shapes}")
        height, width, _ = specs[0].shape
        self.specs = specs
        self.offsets = [HEADER.size]
        self.size = HEADER.size + specs[0].nbytes
        self.left_out = left_out(extra, texts=False)
        self._head = HEADER.pack(MAGIC, width, height)

    def header(self) -> list[tuple[int, bytes]]:
        return [(0, self._head)]
