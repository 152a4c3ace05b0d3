"""Makes spirals.npz, points in the plane and the class of each, for the examples: floats beside integer labels.

python examples/make_spirals.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    """Three arms of 30 points each: ``points`` float64 (90, 2), ``label`` int64 (90,)."""
    turn = np.linspace(0, 2 * np.pi, 30)
    angles = [turn + 2 * np.pi * arm / 3 for arm in range(3)]
    points = np.concatenate([np.stack([turn * np.cos(a), turn * np.sin(a)], axis=1) for a in angles])
    np.savez(folder / "spirals.npz", points=points, label=np.repeat(np.arange(3), 30))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
