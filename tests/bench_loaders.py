"""What loading costs: ``python -m tests.bench_loaders [COUNT]`` prints images a second, asserts nothing.

The same COUNT images (float32, 3x224x224) and labels are read in batches of 64, all in the page cache: from what tconv
wrote, from a .pt (loaded whole, and mapped) and from TFRecord (of serialized tensors, parsed in parallel). "first" is
the time to the first batch, opening included. The ways take turns, an epoch each, in one process; every number is the
best of five, as other work on the machine only ever adds to them. "CPU" is the time of all threads for an image, which
other work changes least. Put the files on a RAM disk (``TMPDIR=/dev/shm``), or the disk is measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import torch
from torch.utils import data

import tconv

BATCH, SHAPE, EPOCHS = 64, (3, 224, 224), 5


def main() -> None:
    torch.set_num_threads(1)  # as the workers of a DataLoader do; more of them only wait for each other here
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, count)
        print(f"{count} images of {'x'.join(map(str, SHAPE))} float32, batches of {BATCH}")  # noqa: T201
        print(f"{'':44}{'first ms':>10}{'images/s':>10}{'GB/s':>7}{'CPU µs':>8}")  # noqa: T201
        for title, (first, rate, cpu) in _measured(_ways(folder), count).items():
            gigabytes = rate * 4 * np.prod(SHAPE) / 1e9
            print(f"{title:44}{1000 * first:10.1f}{rate:10.0f}{gigabytes:7.2f}{1e6 * cpu:8.0f}")  # noqa: T201


def _write(folder: Path, count: int) -> None:
    images = np.random.default_rng(0).random((count, *SHAPE), np.float32)
    labels = np.arange(count)
    np.savez(folder / "train.npz", images=images, labels=labels)
    torch.save({"images": torch.from_numpy(images), "labels": torch.from_numpy(labels)}, folder / "train.pt")
    with tf.io.TFRecordWriter(str(folder / "train.tfrecord")) as writer:
        for image, label in zip(images, labels, strict=True):
            raw = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()]))
            number = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
            features = tf.train.Features(feature={"image": raw, "label": number})
            writer.write(tf.train.Example(features=features).SerializeToString())


def _ways(folder: Path) -> dict[str, Callable[[], Iterable[Any]]]:
    npz, pt, record = folder / "train.npz", folder / "train.pt", str(folder / "train.tfrecord")
    ours = tconv.loaders

    def tensors(*, mapped: bool) -> Any:
        found = torch.load(pt, weights_only=True, mmap=mapped)
        return data.TensorDataset(found["images"], found["labels"])

    def parsed(raw: Any) -> tuple[Any, Any]:
        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
        found = tf.io.parse_single_example(raw, features)
        return tf.reshape(tf.io.decode_raw(found["image"], tf.float32), SHAPE), found["label"]

    def records(*, shuffle: bool) -> Any:
        found = tf.data.TFRecordDataset(record)
        found = found.shuffle(256) if shuffle else found
        return found.map(parsed, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)

    def loader(dataset: Any, *, shuffle: bool, collate: Any = None, workers: int = 0) -> Any:
        return data.DataLoader(dataset, BATCH, shuffle=shuffle, collate_fn=collate, num_workers=workers)

    collate = ours.torch.collate
    return {
        "tconv torch, in order": lambda: loader(ours.torch.Dataset(npz), shuffle=False, collate=collate),
        "tconv torch, shuffled": lambda: loader(ours.torch.Dataset(npz), shuffle=True, collate=collate),
        "tconv torch, shuffled, default collate": lambda: loader(ours.torch.Dataset(npz), shuffle=True),
        ".pt loaded whole, in order": lambda: loader(tensors(mapped=False), shuffle=False),
        ".pt loaded whole, shuffled": lambda: loader(tensors(mapped=False), shuffle=True),
        ".pt mapped, in order": lambda: loader(tensors(mapped=True), shuffle=False),
        ".pt mapped, shuffled": lambda: loader(tensors(mapped=True), shuffle=True),
        "tconv tensorflow, in order": lambda: ours.tensorflow.dataset(npz, BATCH),
        "tconv tensorflow, shuffled": lambda: ours.tensorflow.dataset(npz, BATCH, shuffle=True),
        "TFRecord, in order": lambda: records(shuffle=False),
        "TFRecord, shuffled (a buffer of 256)": lambda: records(shuffle=True),
    }


def _measured(ways: dict[str, Callable[[], Iterable[Any]]], count: int) -> dict[str, tuple[float, float, float]]:
    """Of each, seconds to the first batch, images a second, and seconds of the processor for an image."""
    made, first, best, least = dict[str, Iterable[Any]](), dict[str, float](), dict[str, float](), dict[str, float]()
    for title, make in ways.items():
        begin = time.perf_counter()
        made[title] = make()
        _consume(iter(made[title]), 1)
        first[title] = time.perf_counter() - begin
    for _ in range(EPOCHS):
        for title, batches in made.items():
            begin, busy = time.perf_counter(), time.process_time()
            _consume(iter(batches), None)
            best[title] = max(best.get(title, 0), count / (time.perf_counter() - begin))
            least[title] = min(least.get(title, 1e9), (time.process_time() - busy) / count)
    return {title: (first[title], best[title], least[title]) for title in ways}


def _consume(batches: Iterator[Any], most: int | None) -> None:
    for n, (images, labels) in enumerate(batches, 1):
        assert images.shape[1:] == SHAPE
        assert len(labels) == len(images)
        if n == most:
            return


if __name__ == "__main__":
    main()
