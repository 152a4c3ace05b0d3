"""PyTorch's DataLoader over what tconv wrote: with workers, shuffled, pickled, split."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tests.loaders.made import IMAGES, LABELS, photos, ragged, stacked

torch = pytest.importorskip("torch", reason="it feeds PyTorch")
data = pytest.importorskip("torch.utils.data", reason="it feeds PyTorch")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return stacked(tmp_path, "npz")


def test_a_sample_is_an_image_and_its_label(path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    assert len(dataset) == 10
    image, label = dataset[4]
    assert (image.dtype, tuple(image.shape)) == (torch.float32, (3, 4, 5))
    assert (label.dtype, tuple(label.shape), label.item()) == (torch.int64, (), 5)
    np.testing.assert_array_equal(image.numpy(), IMAGES[4])
    assert [label.item() for _, label in dataset] == LABELS.tolist()
    assert dataset.name(4).endswith("data.npz: images[4]")


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_class_folders_become_labels_with_names(tmp_path: Path, kind: str) -> None:
    shapes = Path(__file__).resolve().parents[2] / "examples" / "shapes"
    written = tconv.convert(shapes, tmp_path / f"shapes.{kind}", "scale | permute(CHW)", stack=True).path
    dataset = tconv.loaders.torch.Dataset(written)
    assert dataset.classes == ("circle", "square")
    assert [label.item() for _, label in dataset] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tuple(dataset[0][0].shape) == (3, 32, 32)
    ragged = tconv.convert(shapes, tmp_path / "each.safetensors", "scale | permute(CHW)").path
    again = tconv.loaders.torch.Dataset(ragged)
    assert [label.item() for _, label in again] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert again.name(0) == "circle/1.png"


def test_a_slice_is_a_sequence_of_samples(path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    some = dataset[7:1:-2]
    assert len(some) == 3
    assert [label.item() for _, label in some] == LABELS[7:1:-2].tolist()
    images, labels = tconv.loaders.torch.collate(some)
    np.testing.assert_array_equal(images.numpy(), IMAGES[7:1:-2])
    assert labels.tolist() == LABELS[7:1:-2].tolist()
    assert [label.item() for _, label in some[1:]] == LABELS[[5, 3]].tolist()
    assert len(dataset[99:]) == 0


@pytest.mark.parametrize("index", [1.0, "1", None, [0, 1]])
def test_what_is_no_index_is_a_type_error_that_says_so(path: Path, index: Any) -> None:
    with pytest.raises(TypeError, match="is no number of a sample; give a whole number, or a slice"):
        tconv.loaders.torch.Dataset(path)[index]


@pytest.mark.parametrize("samples", [[], None, ()])
def test_no_samples_are_no_batch(samples: Any) -> None:
    with pytest.raises(tconv.UsageError, match="are no samples; give a list of what a data set gives"):
        tconv.loaders.torch.collate(samples)


def test_files_of_other_classes_do_not_mix(tmp_path: Path) -> None:
    for n, classes in enumerate((["a", "b"], ["b", "a"])):
        np.savez(tmp_path / f"{n}.npz", images=IMAGES, labels=LABELS % 2, classes=np.array(classes))
    with pytest.raises(tconv.TconvError, match=r"1\.npz: its labels are numbers of other classes"):
        tconv.loaders.torch.Dataset(tmp_path)


def test_without_labels_it_is_an_image(tmp_path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(photos(tmp_path))
    assert tuple(dataset[0].shape) == (3, 8, 8)
    (batch,) = data.DataLoader(dataset, batch_size=12, collate_fn=tconv.loaders.torch.collate)
    np.testing.assert_array_equal(batch.numpy(), np.load(tmp_path / "photos.npy"))


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("collate", [tconv.loaders.torch.collate, None])
def test_a_loader_gives_every_sample_once(path: Path, workers: int, collate: Any) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    dataset[0]  # mapped here already: workers map for themselves
    context = "spawn" if workers else None
    loader = data.DataLoader(
        dataset, 4, shuffle=True, num_workers=workers, collate_fn=collate, multiprocessing_context=context
    )
    for _ in range(2):
        batches = list(loader)
        assert [len(images) for images, _ in batches] == [4, 4, 2]
        images, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        order = [int(np.flatnonzero((image.numpy() == IMAGES).all((1, 2, 3)))[0]) for image in images]
        assert sorted(order) == list(range(10))
        assert labels.tolist() == LABELS[order].tolist()


def test_a_subset_is_read_straight_into_its_batches(path: Path) -> None:
    subset = data.Subset(tconv.loaders.torch.Dataset(path), [9, 2, 5])
    ((images, labels),) = data.DataLoader(subset, 3, collate_fn=tconv.loaders.torch.collate)
    np.testing.assert_array_equal(images.numpy(), IMAGES[[9, 2, 5]])
    assert labels.tolist() == LABELS[[9, 2, 5]].tolist()


def test_a_batch_is_a_sequence_of_samples(path: Path) -> None:
    batch = tconv.loaders.torch.Dataset(path).__getitems__([1, 2, 3])
    assert len(batch) == 3
    assert [label.item() for _, label in batch] == LABELS[1:4].tolist()
    assert [label.item() for _, label in batch[1:]] == LABELS[2:4].tolist()


def test_writing_to_a_batch_changes_no_later_one(path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    for _ in range(2):
        for images, _ in data.DataLoader(dataset, 5, collate_fn=tconv.loaders.torch.collate):
            assert images.max() < 2
            images.fill_(7)
        dataset[0][0].fill_(7)


def test_it_is_pickled_by_its_description(path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    dataset[0]
    copy = pickle.loads(pickle.dumps(dataset))  # our own
    assert copy[3][0].equal(dataset[3][0])


def test_collate_takes_lists_too_and_names_what_does_not_match(tmp_path: Path) -> None:
    collate = tconv.loaders.torch.collate
    images, labels = collate([(torch.ones(2), torch.tensor(1)), (torch.zeros(2), torch.tensor(2))])
    assert images.tolist() == [[1, 1], [0, 0]]
    assert labels.tolist() == [1, 2]
    assert collate([torch.ones(2), torch.ones(2)]).shape == (2, 2)
    with pytest.raises(tconv.TconvError, match=r"sample 0 of it is \(2,\) and sample 1 is \(3,\)"):
        collate([torch.ones(2), torch.ones(3)])
    dataset = tconv.loaders.torch.Dataset(ragged(tmp_path))
    with pytest.raises(tconv.TconvError, match=r"0\.png is \(3, 1, 2\) and 1\.png is \(3, 2, 2\)"):
        next(iter(data.DataLoader(dataset, 2, collate_fn=collate)))
    assert [tuple(images.shape) for images, _ in data.DataLoader(dataset, 1, collate_fn=collate)] == [
        (1, 3, n + 1, 2) for n in range(4)
    ]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_workers_share_out_what_is_iterated(path: Path, workers: int) -> None:
    dataset = tconv.loaders.torch.IterableDataset(path)
    context = "spawn" if workers else None
    loader = data.DataLoader(
        dataset, 2, num_workers=workers, collate_fn=tconv.loaders.torch.collate, multiprocessing_context=context
    )
    labels = [label for _, labels in loader for label in labels.tolist()]
    assert sorted(labels) == sorted(LABELS.tolist())
    if not workers:
        assert labels == LABELS.tolist()


def test_what_does_not_fit_is_refused_before_training(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(3), b=np.ones(4))
    for kind in (tconv.loaders.torch.Dataset, tconv.loaders.torch.IterableDataset):
        with pytest.raises(tconv.TconvError, match="which of its fields are the images"):
            kind(tmp_path / "x.npz")
    assert len(tconv.loaders.torch.Dataset(tmp_path / "x.npz", images="b", labels=None, dtype="float64")) == 4


def test_without_torch_the_loader_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import tconv\n"
        "try: tconv.loaders.torch\n"
        "except tconv.TconvError as problem: print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch is not installed; pip install torch\n"


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")  # of threads here
def test_workers_live_on_from_epoch_to_epoch(path: Path, context: str) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    dataset[0]  # a file that is open here
    loader = data.DataLoader(
        dataset, 4, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context=context,
        collate_fn=tconv.loaders.torch.collate,
    )  # fmt: skip
    for _ in range(3):
        assert sorted(label for _, labels in loader for label in labels.tolist()) == sorted(LABELS.tolist())


def test_samplers_of_parallel_training_shuffle_it_by_epoch(path: Path) -> None:
    dataset = tconv.loaders.torch.Dataset(path)
    samplers = [data.DistributedSampler(dataset, 2, rank, shuffle=True, seed=1) for rank in range(2)]

    def epoch(number: int) -> list[list[int]]:
        for sampler in samplers:
            sampler.set_epoch(number)
        loaders = [data.DataLoader(dataset, 2, sampler=s, collate_fn=tconv.loaders.torch.collate) for s in samplers]
        return [[label for _, labels in loader for label in labels.tolist()] for loader in loaders]

    assert sorted([*epoch(0)[0], *epoch(0)[1]]) == sorted(LABELS.tolist())
    assert epoch(0) == epoch(0) != epoch(1)


@pytest.mark.slow
def test_an_error_of_a_worker_says_the_same(tmp_path: Path) -> None:
    dataset, collate = tconv.loaders.torch.Dataset(ragged(tmp_path)), tconv.loaders.torch.collate
    loader = data.DataLoader(dataset, 2, num_workers=1, collate_fn=collate, multiprocessing_context="spawn")
    with pytest.raises(tconv.TconvError, match=r"0\.png is \(3, 1, 2\) and 1\.png is \(3, 2, 2\)"):
        list(loader)


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([1, 2], "a sample is an image, or"),
        ([(torch.ones(2), 1, 2)], "a sample is an image, or"),
        ([(torch.ones(2), 1), torch.ones(2)], "all of a batch are alike"),
        ([np.ones(2)], "of which the image is a tensor"),
    ],
)
def test_what_are_no_samples(samples: Any, says: str) -> None:
    with pytest.raises(tconv.TconvError, match=says):
        tconv.loaders.torch.collate(samples)


def test_labels_of_others_may_be_numbers() -> None:
    images, labels = tconv.loaders.torch.collate([(torch.zeros(2), 3), (torch.ones(2), 1)])
    assert images.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert labels.tolist() == [3, 1]
    assert labels.dtype == torch.int64
