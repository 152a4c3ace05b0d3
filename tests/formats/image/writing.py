"""What every writer of images must do: the conformance suite for pictures, which a file holds one of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from tconv import registry
from tconv.dtypes import DTYPES
from tconv.errors import TconvError
from tconv.tensor import NO_ATTRS, Extra, Spec, Stream
from tconv.writer import WriteOptions, Writer
from tests.formats.conformance import Writing, all_values, assert_same, random_bits

if TYPE_CHECKING:
    from tconv.ops import Array

SIZES = ((1, 1), (1, 9), (9, 1), (16, 17))


class ImageWriting(Writing):
    """``channels``: which numbers of channels there are, by dtype; ``reference`` gives them in RGB, always 3-D."""

    names: ClassVar[tuple[str, ...]] = ("x",)
    channels: ClassVar[Mapping[str, tuple[int, ...]]]
    dtypes: ClassVar[frozenset[str]] = frozenset()

    def examples(self) -> dict[str, Array]:
        return {"x": random_bits("uint8", (6, 7, 3))}

    def again(self, path: Path, x: Array) -> Stream:
        """The file read as its writer says that it is to be."""
        row = registry.by_suffix(Path(f"x{self.suffix}"))
        assert row is not None
        return registry.reader(row)(path, "x", self.writer([spec_of(x)]).rereading)

    @pytest.mark.parametrize("shape", SIZES, ids=str)
    @pytest.mark.parametrize("dtype", list(DTYPES))
    def test_a_dtype_is_kept_bit_for_bit_or_refused_by_name(
        self, tmp_path: Path, dtype: str, shape: tuple[int, ...]
    ) -> None:
        if dtype not in self.channels:
            with pytest.raises(TconvError, match=dtype) as caught:
                self.writer([Spec("x", DTYPES[dtype], (*shape, 1))])
            assert caught.value.tensor == "x"
            assert "--" in caught.value.remedy
            return
        for channels in self.channels[dtype]:
            x = random_bits(dtype, (*shape, channels), channels)
            path = self.write(tmp_path / f"{channels}{self.suffix}", {"x": x})
            assert_same(self.reference(path), {"x": x})
            assert_same(all_values(self.again(path, x)), {"x": x})

    def test_channels_that_it_has_not_are_refused(self) -> None:
        for dtype, held in self.channels.items():
            for channels in {1, 2, 3, 4, 5} - set(held):
                with pytest.raises(TconvError, match=f"and this has {channels}") as caught:
                    self.writer([Spec("x", DTYPES[dtype], (4, 5, channels))])
                assert "--" in caught.value.remedy

    def test_a_picture_without_channels_has_one(self, tmp_path: Path) -> None:
        x = random_bits("uint8", (5, 6))
        path = self.write(tmp_path / f"x{self.suffix}", {"x": x})
        assert self.reference(path)["x"].shape == (5, 6, 1)


def spec_of(x: Array, axes: str | None = None, attrs: Mapping[str, Any] = NO_ATTRS) -> Spec:
    return Spec("x", DTYPES[x.dtype.name], x.shape, axes, attrs=attrs)


def write(path: Path, x: Array, attrs: Mapping[str, Any] = NO_ATTRS, **options: Any) -> Writer:
    """The picture ``x`` in a file of the format that its suffix names."""
    row = registry.by_suffix(path, output=True)
    assert row is not None
    writer = registry.writer(row).planned([spec_of(x, attrs=attrs)], Extra("data"), WriteOptions(**options))
    writer.open(path)
    writer.write(0, 0, x.reshape(-1))
    writer.commit()
    return writer


def three_axes(x: Array) -> Array:
    return x if x.ndim == 3 else x[..., None]


def by_opencv(path: Path) -> Array:
    """What OpenCV reads, in RGB."""
    import cv2

    x = three_axes(np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED)))
    return x if x.shape[2] == 1 else x[..., [2, 1, 0, 3][: x.shape[2]]]
