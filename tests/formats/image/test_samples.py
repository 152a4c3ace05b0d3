"""A TIFF's samples: what the tags say of them, who decodes which, and how the others are named."""

from __future__ import annotations

from typing import Any

import pytest

from tconv.errors import TconvError
from tconv.formats.image import tags
from tconv.formats.image.samples import Layout, layout
from tconv.formats.image.tags import Directory

RGB16 = Layout(7, 5, 2, 3, "uint", 16, None, 1, False, 1)


def test_what_is_not_stated_has_the_value_of_the_standard() -> None:
    directory = Directory({tags.WIDTH: (7,), tags.HEIGHT: (5,), tags.PHOTOMETRIC: (0,)})
    assert layout(directory) == Layout(7, 5, 0, 1, "uint", 1, None, 1, False, 1)


def test_all_that_is_stated() -> None:
    stated = {
        tags.WIDTH: (7,), tags.HEIGHT: (5,), tags.PHOTOMETRIC: (2,), tags.SAMPLES: (4,), tags.BITS: (32,) * 4,
        tags.FORMAT: (3,) * 4, tags.EXTRA: (2,), tags.COMPRESSION: (8,), tags.PLANAR: (2,), tags.PREDICTOR: (3,),
    }  # fmt: skip
    assert layout(Directory(stated)) == Layout(7, 5, 2, 4, "float", 32, 2, 8, True, 3)


@pytest.mark.parametrize("missing", [tags.WIDTH, tags.HEIGHT, tags.PHOTOMETRIC])
def test_what_must_be_stated(missing: int) -> None:
    stated = {tags.WIDTH: (7,), tags.HEIGHT: (5,), tags.PHOTOMETRIC: (0,)}
    del stated[missing]
    with pytest.raises(ValueError, match=f"tag {missing} is missing"):
        layout(Directory(dict(stated)))


@pytest.mark.parametrize("mixed", [{tags.BITS: (8, 8, 16)}, {tags.FORMAT: (1, 1, 3)}])
def test_samples_are_of_one_type(mixed: dict[int, tuple[int, ...]]) -> None:
    stated = {tags.WIDTH: (7,), tags.HEIGHT: (5,), tags.PHOTOMETRIC: (2,), tags.SAMPLES: (3,), tags.BITS: (8, 8, 8)}
    with pytest.raises(TconvError, match="not of one type"):
        layout(Directory(stated | mixed))


@pytest.mark.parametrize(
    ("changes", "opencv", "pillow"),
    [
        ({}, True, False),
        ({"planar": True}, True, False),
        ({"samples": 2}, False, False),
        ({"compression": 50000}, False, False),
        ({"depth": 24}, False, False),
        ({"depth": 8}, False, True),
        ({"photometric": 1, "samples": 1}, True, True),
        ({"photometric": 1, "samples": 1, "compression": 50000}, False, True),
        ({"photometric": 0, "samples": 1, "kind": "int"}, False, False),
        ({"kind": "float"}, True, False),
        ({"kind": "float", "predictor": 3}, False, False),
        ({"kind": "float", "depth": 32, "predictor": 3}, True, False),
    ],
)
def test_who_decodes_them(changes: dict[str, Any], opencv: bool, pillow: bool) -> None:
    changed = RGB16._replace(**changes)
    assert (changed.by_opencv, changed.by_pillow) == (opencv, pillow)


def test_how_they_are_named() -> None:
    refusal = RGB16._replace(planar=True, photometric=32845, compression=34676).refused()
    assert str(refusal) == (
        "a planar TIFF of photometric 32845 with 3 x uint16 a pixel (compression 34676), which tconv does not read; "
        "save it as grey or RGB of uint8, uint16 or float32"
    )
