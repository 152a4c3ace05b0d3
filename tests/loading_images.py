"""The same photos through the loaders of other libraries: ``python loading_images.py NAME FOLDER OUT.npy``.

A script of its own, for it is run by the Python that has them (see ``bench_images``): each takes the files of a folder
to one float32 array (N, 3, 224, 224), normalized as for ImageNet and saved as .npy, by a worker a core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIDE, BATCH = 224, 64
CORES = len(os.sched_getaffinity(0))


def by_torchvision(files: list[str]) -> Iterator[Any]:
    import torch
    from torch.utils.data import DataLoader
    from torchvision.io import decode_image
    from torchvision.transforms import v2

    steps = v2.Compose(
        [v2.Resize((SIDE, SIDE), antialias=True), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    )

    class Photos(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(files)

        def __getitem__(self, index: int) -> Any:
            return steps(decode_image(files[index], "RGB"))

    torch.set_num_threads(1)
    yield from (batch.numpy() for batch in DataLoader(Photos(), BATCH, num_workers=CORES))


def by_tf_data(files: list[str]) -> Iterator[Any]:
    import tensorflow as tf

    mean, std = tf.constant(MEAN), tf.constant(STD)

    def photo(path: Any) -> Any:
        pixels = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        resized = tf.image.resize(pixels, (SIDE, SIDE), antialias=True)
        return tf.transpose((resized / 255 - mean) / std, (2, 0, 1))

    loaded = tf.data.Dataset.from_tensor_slices(files).map(photo, num_parallel_calls=CORES, deterministic=True)
    yield from loaded.batch(BATCH).prefetch(2).as_numpy_iterator()


def by_dali(files: list[str]) -> Iterator[Any]:
    from nvidia.dali import fn, pipeline_def, types  # type: ignore[import-not-found]  # tests do not bring it along

    @pipeline_def(batch_size=BATCH, num_threads=CORES, device_id=None)  # type: ignore[untyped-decorator]  # DALI's
    def photos() -> Any:
        read, _ = fn.readers.file(files=files, labels=[0] * len(files), name="photos")
        pixels = fn.decoders.image(read, device="cpu")
        resized = fn.resize(pixels, size=(SIDE, SIDE), interp_type=types.INTERP_TRIANGULAR, antialias=True)
        return fn.crop_mirror_normalize(
            resized, output_layout="CHW", mean=[255 * m for m in MEAN], std=[255 * s for s in STD]
        )

    made = photos()
    made.build()
    for start in range(0, len(files), BATCH):
        (batch,) = made.run()
        yield batch.as_array()[: len(files) - start]


def save(batches: Iterable[Any], count: int, out: str) -> None:
    made = np.lib.format.open_memmap(out, "w+", np.float32, (count, 3, SIDE, SIDE))
    start = 0
    for batch in batches:
        made[start : start + len(batch)] = batch
        start += len(batch)


LOADERS = {"torchvision": by_torchvision, "tf.data": by_tf_data, "DALI": by_dali}

if __name__ == "__main__":
    name, folder, out = sys.argv[1:]
    photos = sorted(str(path) for path in Path(folder).iterdir())
    save(LOADERS[name](photos), len(photos), out)
