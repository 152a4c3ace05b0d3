"""Draws the class folders in examples/shapes: circles and squares, and beside them a table of their widths.

Usage: python examples/make_shapes.py [FOLDER]   (NumPy and Pillow only; the same pixels every time)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIDE, EACH = 32, 4  # pixels, and pictures of a class


def shape(kind: str, radius: int, x: int, y: int, colour: tuple[int, int, int]) -> Image.Image:
    """One shape on grey paper, ``2 * radius + 1`` pixels wide."""
    picture = Image.new("RGB", (SIDE, SIDE), (232, 230, 225))
    draw = ImageDraw.Draw(picture)
    paint = draw.ellipse if kind == "circle" else draw.rectangle
    paint((x - radius, y - radius, x + radius, y + radius), fill=colour)
    return picture


def main(folder: Path) -> None:
    random = np.random.RandomState(7)  # whose streams NumPy has frozen
    rows = ["path,label"]
    for kind in ("circle", "square"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for n in range(1, EACH + 1):
            radius = int(random.randint(4, 10))
            x, y = (int(random.randint(radius, SIDE - radius)) for _ in range(2))
            red, green, blue = (int(c) for c in random.randint(30, 200, 3))
            shape(kind, radius, x, y, (red, green, blue)).save(folder / kind / f"{n}.png", optimize=True)
            rows.append(f"{kind}/{n}.png,{2 * radius + 1}")
    folder.with_suffix(".csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "shapes")
