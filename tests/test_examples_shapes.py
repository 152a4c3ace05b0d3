"""The class folders in examples/shapes are what examples/make_shapes.py draws, and small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_the_script_draws_the_same_pixels(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", str(EXAMPLES / "make_shapes.py"), str(tmp_path / "shapes")], check=True)
    names = [path.relative_to(EXAMPLES) for path in sorted(EXAMPLES.glob("shapes/*/*.png"))]
    assert len(names) == 8
    assert names == [path.relative_to(tmp_path) for path in sorted(tmp_path.glob("shapes/*/*.png"))]
    for name in names:
        with Image.open(EXAMPLES / name) as kept, Image.open(tmp_path / name) as made:
            assert np.array_equal(np.asarray(kept), np.asarray(made))
    assert (EXAMPLES / "shapes.csv").read_text() == (tmp_path / "shapes.csv").read_text()
    assert sum((EXAMPLES / name).stat().st_size for name in names) < 20_000
