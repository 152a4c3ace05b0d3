"""Write down what a library makes of the pictures: ``python -m tests.peers.make_expected torchvision`` (or keras …).

To be run where that library is installed; tconv need not be. Made with torch 2.14, torchvision 0.29; TensorFlow 2.21,
Keras 3.15; transformers 5.24. Of every array the values at each 97th place are kept, as that tells as much as all of
them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.peers.references import PHOTOS, REFERENCES, kept, photo

EXPECTED = Path(__file__).parent / "expected"


def main(library: str) -> None:
    found: Any = {
        f"{reference.name}/{name}": kept(reference.make(photo(name)))
        for reference in REFERENCES[library]
        for name in PHOTOS
    }
    np.savez_compressed(EXPECTED / f"{library}.npz", **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
