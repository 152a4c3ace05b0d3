"""The pictures in examples/photos are what examples/make_photos.py draws, and of the kinds they are there for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PHOTOS = sorted((EXAMPLES / "photos").iterdir())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as the script writes it today."""
    folder = tmp_path_factory.mktemp("photos")
    subprocess.run([sys.executable, "-B", str(EXAMPLES / "make_photos.py"), str(folder)], check=True)
    return folder


def pixels(path: Path) -> np.ndarray[Any, Any]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGBA") if image.mode == "P" else image)


def test_the_same_files_are_drawn(drawn: Path) -> None:
    assert [p.name for p in sorted(drawn.iterdir())] == [p.name for p in PHOTOS]


@pytest.mark.parametrize("path", PHOTOS, ids=lambda path: path.name)
def test_the_script_draws_the_same_pixels(path: Path, drawn: Path) -> None:
    kept, made = pixels(path), pixels(drawn / path.name)
    assert (kept.shape, kept.dtype) == (made.shape, made.dtype)
    # Sines and powers may differ in the last bit elsewhere, and lossy encoders from version to version.
    allowed = 0.001 if path.suffix == ".png" else 2.0
    assert np.abs(kept.astype(np.float64) - made.astype(np.float64)).mean() <= allowed


def test_they_are_of_the_kinds_that_photos_come_in() -> None:
    kinds = {}
    for path in PHOTOS:
        with Image.open(path) as image:
            kinds[path.name] = (image.format, image.mode, image.getexif().get(0x0112, 1))
    assert kinds == {
        "aurora.webp": ("WEBP", "RGB", 1),
        "balloon.png": ("PNG", "RGBA", 1),
        "bokeh.jpg": ("JPEG", "RGB", 1),
        "dunes.jpg": ("JPEG", "RGB", 1),
        "elevation.png": ("PNG", "I;16", 1),
        "lighthouse.jpg": ("JPEG", "RGB", 6),
        "moon.jpg": ("JPEG", "L", 1),
        "mountains.jpg": ("JPEG", "RGB", 1),
        "orange.jpg": ("JPEG", "CMYK", 1),
        "pebbles.jpg": ("JPEG", "RGB", 1),
        "poster.png": ("PNG", "P", 1),
        "waves.jpg": ("JPEG", "RGB", 1),
    }
    assert sum(path.stat().st_size for path in PHOTOS) < 300_000
