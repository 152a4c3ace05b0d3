"""What is no picture is refused with the way out, and what an encoder stumbles over is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats.image.png import PngWriter
from tconv.formats.image.webp import WebpWriter
from tconv.tensor import NO_ATTRS, Extra, Range, Spec
from tests.formats.image.made import photo, tensor_of
from tests.formats.image.writing import write


def spec(
    shape: tuple[int, ...] = (4, 5, 3),
    kind: str = "uint8",
    axes: str | None = None,
    known: Range | None = None,
    attrs: Mapping[str, Any] = NO_ATTRS,
) -> Spec:
    return Spec("x", dtype(kind), shape, axes, known, attrs=attrs)


@pytest.mark.parametrize(
    ("given", "reason", "remedy"),
    [
        (spec((3, 4, 5), axes="CHW"), "holds a picture, HWC or HW, and this is CHW", "--layout HWC"),
        (spec((2, 4, 5, 3), axes="NHWC"), "this is NHWC", "-o DIR/ with --format takes it apart"),
        (spec((2, 4, 5, 3)), r"this has the shape \(2, 4, 5, 3\)", "--input-layout"),
        (spec((7,)), r"this has the shape \(7,\)", "--input-layout"),
        (spec((4, 5), axes="DK"), "this is DK", "--skip"),
        (spec(kind="float32"), "holds uint8, uint16 or bool, not float32", "--denormalize STATS"),
        (spec(kind="float16", known=(0, 1)), "not float16", "--step 'scale(uint8)'"),
        (spec(kind="float32", known=(-2.1, 2.6)), "not float32", "--denormalize STATS"),
        (spec(kind="int64"), "not int64", "--to uint8 or --to uint16"),
        (spec((0, 5, 3)), r"there are no pixels: its shape is \(0, 5, 3\)", "--skip"),
        (spec((4, 5, 0)), "there are no pixels", "--skip"),
        (spec((4, 5, 7)), "has 1, 2, 3 or 4 channels, and this has 7", "--input-layout"),
        (spec((4, 5, 4), attrs={"inks": True}), r"these are inks \(CMYK\)", "--channels rgb"),
        (spec((1, 1_000_001)), "1000001x1 pixels, and a PNG has at most 1,000,000 a side", "--resize"),
    ],
)
def test_what_is_no_picture_is_refused(given: Spec, reason: str, remedy: str) -> None:
    with pytest.raises(TconvError, match=reason) as caught:
        PngWriter([given], Extra("data"))
    assert caught.value.tensor == "x"
    assert remedy in caught.value.remedy


def test_several_pictures_are_none() -> None:
    with pytest.raises(TconvError, match="a PNG holds one picture, and there are 2; -o DIR/"):
        PngWriter([spec(), spec()], Extra("data"))


def test_bgr_is_written_as_rgb(tmp_path: Path) -> None:
    x = photo()
    for suffix, deep in ((".png", False), (".png", True), (".tiff", True), (".webp", False)):
        path = tmp_path / f"{deep}{suffix}"
        wide = x.astype(np.uint16) * 257 if deep else x
        writer = write(path, wide, {"channels": "BGR"})
        got = tensor_of(path)
        np.testing.assert_array_equal(got.source.read(0, x.size).reshape(x.shape), wide[..., ::-1])
        assert writer.rereading.channels == "bgr"


def test_what_a_container_holds_besides_is_left_out() -> None:
    writer = PngWriter([spec()], Extra("data", metadata={"author": "x"}))
    assert writer.left_out == ("metadata 'author'",)


@pytest.mark.parametrize(
    ("kind", "known", "told"),
    [
        (
            "uint16",
            (0, 4095),
            ["x: its white is 4095, and in the file it is 65535: the values are kept, and look dark"],
        ),
        ("uint16", (0, 65535), []),
        ("uint16", None, []),
        ("uint8", (0, 1), []),
    ],
)
def test_samples_that_do_not_reach_white_are_told(kind: str, known: Range | None, told: list[str]) -> None:
    notes = PngWriter([spec(kind=kind, known=known)], Extra("data")).notes
    assert [note.partition(";")[0] for note in notes] == told


def test_the_size_is_the_most_until_it_is_known(tmp_path: Path) -> None:
    for channels in (1, 3, 4):
        x = np.random.default_rng(channels).integers(0, 256, (300, 200, channels), np.uint8)
        for suffix in (".png", ".tiff", ".webp"):
            path = tmp_path / f"{channels}{suffix}"
            row_size = PngWriter([spec(x.shape)], Extra("data")).size
            writer = write(path, x)
            assert writer.compresses
            assert path.stat().st_size == writer.size <= row_size


def test_what_an_encoder_stumbles_over_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = WebpWriter([spec()], Extra("data"))

    def broken(*_args: object, **_options: object) -> None:
        raise ValueError("no\nmore")

    monkeypatch.setattr(Image.Image, "save", broken)
    writer.open(tmp_path / "x.webp")
    writer.write(0, 0, np.zeros(60, np.uint8))
    with pytest.raises(TconvError, match="x: cannot be written as WebP: no more"):
        writer.commit()
    writer.abort()
