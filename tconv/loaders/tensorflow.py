"""A tf.data.Dataset over the files that tconv wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tconv.arguments import count
from tconv.errors import TconvError
from tconv.loaders.rows import open_rows

if TYPE_CHECKING:
    from tconv.loaders.rows import Rows, Source
    from tconv.ops import Array

__all__ = ["dataset"]


def dataset(
    src: Source,
    batch_size: int | None = None,
    *,
    shuffle: bool = False,
    seed: int | None = None,
    drop_remainder: bool = False,
    images: str | None = None,
    labels: str | None = "labels",
    dtype: Any = "float32",
) -> tf.data.Dataset:
    """A ``tf.data.Dataset`` of (image, label), or of images where there are no labels: nothing is left to convert.

    ``src``, ``images``, ``labels``, ``dtype``: see ``loaders.torch.Dataset``. Images are float32 of the shape that was
    written (NHWC is TensorFlow's), labels int64. ``batch_size``: samples to a batch, which are read straight into one
    tensor, in parallel and in order, and prefetched; None for samples one by one. ``shuffle``: all samples in another
    random order each epoch, at the price of a list of numbers. ``drop_remainder``: no smaller last batch, so that the
    static shape is complete.

    The number of batches is known (``cardinality``). The data set reads files of this machine by code of this process:
    it cannot be saved, or sent to a tf.data service.

    Raises what ``loaders.torch.Dataset`` raises; and ``TconvError`` for batches of unequal shapes.
    """
    rows = open_rows(src, images, labels, dtype)
    if batch_size is not None:
        batch_size = count(batch_size, "a batch has 1 sample or more")
    if batch_size is not None and rows.shape is None:
        raise _unequal(rows)
    order = tf.data.Dataset.range(len(rows))
    if shuffle:
        order = order.shuffle(max(1, len(rows)), seed=seed, reshuffle_each_iteration=True)
    if batch_size is not None:
        order = order.batch(batch_size, drop_remainder=drop_remainder)
    read = _reading(rows, batched=batch_size is not None)
    return order.map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True).prefetch(tf.data.AUTOTUNE)


def _unequal(rows: Rows) -> TconvError:
    try:
        rows.images(range(len(rows)))  # raises before it reads: it looks at shapes first
    except TconvError as problem:
        return problem
    raise AssertionError("the shapes differ")


def _reading(rows: Rows, batched: bool) -> Any:
    """From a number, or those of a batch, to tensors, as a function of the graph."""
    example = rows.blocks[0].labels
    kinds = [tf.as_dtype(rows.dtype.numpy)]
    if example is not None:
        kinds.append(tf.as_dtype(example.dtype))

    def values(which: Array) -> list[Array]:
        numbers = np.atleast_1d(which).tolist()
        found = [rows.images(numbers), rows.labels(numbers)] if rows.labelled else [rows.images(numbers)]
        return found if batched else [part[0] for part in found]

    def read(which: Any) -> Any:
        tensors = tf.numpy_function(values, [which], kinds)
        first = which.shape if batched else tf.TensorShape([])
        tensors[0].set_shape(first.concatenate(_shape(rows)))
        if example is None:
            return tensors[0]
        tensors[1].set_shape(first.concatenate(example.shape[1:]))
        return tuple(tensors)

    return read


def _shape(rows: Rows) -> tf.TensorShape:
    """Of every sample, as far as it is the same."""
    shapes = sorted({shape for block in rows.blocks for shape in block.shapes})
    if len({len(shape) for shape in shapes}) != 1:
        return tf.TensorShape(None)
    return tf.TensorShape([sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True)])
