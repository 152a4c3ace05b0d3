"""Small data sets of every form that tconv writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tconv
from tconv.dtypes import DType, from_numpy
from tconv.formats.safetensors import SafetensorsWriter
from tconv.tensor import Extra, Spec

IMAGES = np.random.default_rng(0).random((10, 3, 4, 5)).astype(np.float32)
LABELS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], np.int64)


def safetensors(path: Path, arrays: dict[str, Any], axes: str | None = None) -> Path:
    """The file with tconv's mark of data; ``axes`` are those of all arrays but the labels."""
    specs = []
    for name, array in arrays.items():
        dtype = from_numpy(array.dtype)
        assert isinstance(dtype, DType)
        specs.append(Spec(name, dtype, array.shape, None if name == "labels" else axes))
    writer = SafetensorsWriter(specs, Extra("data"))
    writer.open(path)
    for i, array in enumerate(arrays.values()):
        writer.write(i, 0, array.reshape(-1))
    writer.commit()
    return path


def stacked(folder: Path, kind: str, images: Any = IMAGES, labels: Any = LABELS) -> Path:
    """Images as the rows of one array, and labels beside them, in a file of that kind."""
    path = folder / f"data.{kind}"
    arrays = {"images": images} if labels is None else {"images": images, "labels": labels}
    if kind == "safetensors":
        return safetensors(path, arrays)
    if kind == "npy":
        np.save(path, images)
    else:
        np.savez(path, **arrays)
    return path


def ragged(folder: Path) -> Path:
    """Images of unequal sizes, an entry each, as a folder of them becomes."""
    arrays: dict[str, Any] = {f"{n}.png": np.full((3, n + 1, 2), n, np.float32) for n in range(4)}
    return safetensors(folder / "ragged.safetensors", {**arrays, "labels": np.arange(4)}, "CHW")


def photos(folder: Path) -> Path:
    """What tconv makes of the examples."""
    source = Path(__file__).resolve().parents[2] / "examples" / "photos"
    return tconv.convert(source, folder / "photos.npy", "resize(8x8) | scale | permute(CHW)").path
