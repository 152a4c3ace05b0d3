"""tf.data over what tconv wrote: static shapes, order, shuffling, cardinality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tests.loaders.made import IMAGES, LABELS, photos, ragged, stacked

tf = pytest.importorskip("tensorflow", reason="it feeds TensorFlow")


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_batches_in_order_with_static_shapes(tmp_path: Path, kind: str) -> None:
    dataset = tconv.loaders.tensorflow.dataset(stacked(tmp_path, kind), 4)
    assert dataset.cardinality().numpy() == 3
    assert dataset.element_spec == (
        tf.TensorSpec((None, 3, 4, 5), tf.float32),
        tf.TensorSpec((None,), tf.int64),
    )
    batches = list(dataset.as_numpy_iterator())
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([images for images, _ in batches]), IMAGES)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in batches]), LABELS)


def test_a_batch_has_a_whole_number_of_samples(tmp_path: Path) -> None:
    path, dataset = stacked(tmp_path, "npz"), getattr(tconv.loaders.tensorflow, "dataset")  # noqa: B009  # of any type
    for size in ("2", 2.5, True):
        with pytest.raises(tconv.UsageError, match="a batch has 1 sample or more, not"):
            dataset(path, size)


def test_whole_batches_only(tmp_path: Path) -> None:
    dataset = tconv.loaders.tensorflow.dataset(stacked(tmp_path, "npz"), 4, drop_remainder=True)
    assert dataset.element_spec[0].shape == (4, 3, 4, 5)
    assert dataset.cardinality().numpy() == 2


def test_samples_one_by_one_without_labels(tmp_path: Path) -> None:
    dataset = tconv.loaders.tensorflow.dataset(photos(tmp_path))
    assert dataset.element_spec == tf.TensorSpec((3, 8, 8), tf.float32)
    np.testing.assert_array_equal(np.stack(list(dataset.as_numpy_iterator())), np.load(tmp_path / "photos.npy"))


def test_shuffled_otherwise_each_epoch_and_alike_by_seed(tmp_path: Path) -> None:
    path = stacked(tmp_path, "npz", np.arange(100, dtype=np.float32)[:, None], np.arange(100))

    def epochs() -> list[list[int]]:
        dataset = tconv.loaders.tensorflow.dataset(path, 8, shuffle=True, seed=3)
        return [np.concatenate([labels for _, labels in dataset.as_numpy_iterator()]).tolist() for _ in range(2)]

    first, second = epochs()
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert first != list(range(100))
    assert epochs() == [first, second]
    for images, labels in tconv.loaders.tensorflow.dataset(path, 8, shuffle=True).as_numpy_iterator():
        np.testing.assert_array_equal(images[:, 0], labels)


def test_ragged_images_one_by_one(tmp_path: Path) -> None:
    path = ragged(tmp_path)
    found = list(tconv.loaders.tensorflow.dataset(path).as_numpy_iterator())
    assert [(image.shape, int(label)) for image, label in found] == [((3, n + 1, 2), n) for n in range(4)]
    with pytest.raises(tconv.TconvError, match=r"0\.png is \(3, 1, 2\) and 1\.png is \(3, 2, 2\)"):
        tconv.loaders.tensorflow.dataset(path, 2)


def test_a_model_is_trained_on_it(tmp_path: Path) -> None:
    dataset = tconv.loaders.tensorflow.dataset(stacked(tmp_path, "npz"), 5, shuffle=True)
    weights = tf.Variable(tf.zeros((60, 10)))
    losses = []
    for _ in range(30):
        for images, labels in dataset:
            with tf.GradientTape() as tape:
                logits = tf.reshape(images, (-1, 60)) @ weights
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
            losses.append(float(loss))
    assert losses[-1] < losses[0] / 2


def test_words_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(tconv.UsageError, match="a batch has 1 sample or more, not 0"):
        tconv.loaders.tensorflow.dataset(stacked(tmp_path, "npz"), 0)


@pytest.mark.parametrize("size", [-1, 2.5, "4", True])
def test_what_is_no_size_of_a_batch(tmp_path: Path, size: Any) -> None:
    with pytest.raises(tconv.UsageError, match="a batch has 1 sample or more, not"):
        tconv.loaders.tensorflow.dataset(stacked(tmp_path, "npz"), size)


def test_of_ragged_images_the_static_shape_has_what_they_share(tmp_path: Path) -> None:
    image, label = tconv.loaders.tensorflow.dataset(ragged(tmp_path)).element_spec
    assert image.shape.as_list() == [3, None, 2]
    assert label.shape.as_list() == []
    batches = tconv.loaders.tensorflow.dataset(stacked(tmp_path, "npz"), np.int64(4))
    assert batches.element_spec[0].shape.as_list() == [None, 3, 4, 5]
    assert int(batches.cardinality()) == 3
