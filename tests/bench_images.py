"""How long images take beside others: ``python -m tests.bench_images [FOLDER [PYTHON]]``.

Beside Pillow and decoding alone; and beside the loaders of torchvision (whose CUDA build of PyTorch the tests do not
bring along), TensorFlow and DALI, as far as ``PYTHON`` has them. Prints tables, of what ``--fast`` changes too, and
asserts nothing. Images are crops of the photos in a folder, or of the shared data, with a sensor's noise, as ImageNet
has them; and whole photos of 12 megapixels. TMPDIR says where they and the results are written. tconv flushes what it
has written to the disk before it puts it in place; the others leave that to the system.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps

from tconv.errors import TconvError
from tconv.evaluate import evaluate, shrink_of
from tconv.formats.image.reader import read
from tconv.pipeline import steps_from_text
from tconv.table import table
from tconv.writer import ReadOptions
from tests.shared_data import SHARED
from tests.side_by_side import TCONV, Row, compare, report

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Tensor

PILLOW = """
import sys, numpy as np
from pathlib import Path
from PIL import Image
mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
made = []
for path in sorted(Path(sys.argv[1]).iterdir()):
    image = Image.open(path).convert("RGB").resize((224, 224), Image.BILINEAR)
    made.append(((np.asarray(image, np.float32) / 255 - mean) / std).transpose(2, 0, 1))
np.save(sys.argv[2], np.stack(made))
"""
DECODING = """
import sys, cv2, os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
cv2.setNumThreads(1)
with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    list(pool.map(lambda path: cv2.imread(path) is None, map(str, Path(sys.argv[1]).iterdir())))
"""
OPTIONS = ("--resize", "224x224", "--normalize", "--stats", "imagenet", "--layout", "CHW", "--force")
ROUNDS = 5
SMALL, LARGE = 1000, 40  # images
TWELVE = (3000, 4000)  # height and width of 12 megapixels


def main() -> None:
    photos = list(_photos(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "data" / "images"))
    if not photos:
        sys.exit("there is no photo of at least 500x500 in that folder; name one that has some")
    with tempfile.TemporaryDirectory() as folder:
        rows = [*_small(Path(folder), photos), *_large(Path(folder), photos)]
    for line in (*report(rows), "", *_differences(photos)):
        sys.stdout.write(f"{line}\n")


def _photos(folder: Path) -> Iterator[Path]:
    """The JPEGs of a photo's size."""
    for path in sorted(folder.rglob("*.jp*g")):
        with suppress(TconvError):  # what is broken on purpose
            (tensor,) = read(path, "x", ReadOptions()).tensors
            evaluate(tensor)
            if min(tensor.spec.shape[:2]) >= 500:
                yield path


def _small(folder: Path, photos: Sequence[Path]) -> Iterator[Row]:
    """Crops of about 470x400, as ImageNet has them."""
    source, out = folder / "small", str(folder / "out.npy")
    source.mkdir()
    rng = np.random.default_rng(0)
    whole = [_upright(path) for path in photos]
    for n in range(SMALL):
        x = whole[n % len(whole)]
        height, width = (int(side) for side in np.clip(rng.normal((400, 470), 85), 120, x.shape[:2]))
        top, left = rng.integers(0, x.shape[0] - height + 1), rng.integers(0, x.shape[1] - width + 1)
        _save(x[top : top + height, left : left + width], source / f"{n:05}.jpg", rng, noise=4)
    rivals = _rivals(source, out) | _loaders(source, out)
    yield from compare(f"{SMALL} JPEGs to 224x224", (*TCONV, str(source), *OPTIONS, "-o", out), rivals, ROUNDS)


def _large(folder: Path, photos: Sequence[Path]) -> Iterator[Row]:
    source, out = folder / "large", str(folder / "out.npy")
    source.mkdir()
    rng = np.random.default_rng(0)
    for n in range(LARGE):
        image = Image.fromarray(_upright(photos[n % len(photos)]))
        _save(np.asarray(image.resize(TWELVE[::-1], Image.Resampling.BICUBIC)), source / f"{n:05}.jpg", rng, noise=2)
    exact = (*TCONV, str(source), *OPTIONS, "-o", out)
    work = f"{LARGE} photos of 12 MP to 224x224"
    yield from compare(work, exact, _rivals(source, out), ROUNDS)
    yield from compare(f"{work}, --fast", (*exact, "--fast"), {"tconv without --fast": exact}, ROUNDS)


def _rivals(source: Path, out: str) -> dict[str, Sequence[str]]:
    return {
        "Pillow and NumPy, one by one": (sys.executable, "-c", PILLOW, str(source), out),
        "decoding alone, OpenCV, a thread a core": (sys.executable, "-c", DECODING, str(source)),
    }


def _loaders(source: Path, out: str) -> dict[str, Sequence[str]]:
    """By the Python that was named, those that it has."""
    if len(sys.argv) <= 2:
        return {}
    modules = {"torchvision": "torchvision", "tf.data": "tensorflow", "DALI": "nvidia.dali"}
    script = str(Path(__file__).with_name("loading_images.py"))
    return {
        name: (sys.argv[2], script, name, str(source), out)
        for name, module in modules.items()
        if subprocess.run((sys.argv[2], "-c", f"import {module}"), check=False, capture_output=True).returncode == 0
    }


def _upright(path: Path) -> Array:
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def _save(x: Array, path: Path, rng: np.random.Generator, noise: float) -> None:
    """With the noise of a sensor, so that there is as much to decode as in a photo."""
    noisy = x + rng.normal(0, noise, (*x.shape[:2], 1)).astype(np.float32)
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(path, quality=90)


def _differences(photos: Sequence[Path]) -> Iterator[str]:
    """By how much the 8-bit values of a resized photo differ with ``--fast``."""
    rows, found = [], []
    for path in photos:
        for size in (224, 96, 64):
            fast, exact = (_resized(path, size, fast) for fast in (True, False))
            if (shrink := shrink_of(fast)) == 1:
                continue
            (a, _), (b, _) = evaluate(fast), evaluate(exact)
            found.append(np.abs(a.astype(int) - b.astype(int)))
            height, width = exact.source.shape[:2]
            rows.append([path.name, f"{height}x{width}", f"resize({size})", f"1/{shrink}", *_largest(found[-1])])
    yield "what --fast changes in 8-bit values"
    together = ["together", "", "", "", *_largest(np.concatenate([one.reshape(-1) for one in found]))]
    yield from table(("photo", "size", "step", "decoded at", "most", "mean"), [*rows, together], right=[4, 5])


def _largest(difference: Array) -> tuple[str, str]:
    return f"{difference.max()}", f"{difference.mean():.2f}"


def _resized(path: Path, size: int, fast: bool) -> Tensor:
    stream = read(path, "x", ReadOptions(fast=fast))
    for step in steps_from_text([f"resize({size})"]):
        stream = step.apply(stream)
    (tensor,) = stream.tensors
    return tensor


if __name__ == "__main__":
    main()
