"""PyTorch data sets over the files that tconv wrote, and how their samples become batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.utils import data

from tconv.arguments import WrongType, shown
from tconv.arrays import of_torch
from tconv.errors import TconvError
from tconv.loaders.rows import Rows, open_rows

if TYPE_CHECKING:
    from tconv.loaders.rows import Source

__all__ = ["Dataset", "IterableDataset", "collate"]

# An image, or where there are labels (image, label): which it is the files tell, and no type checker knows.
Sample: TypeAlias = Any


class Dataset(data.Dataset[Sample]):
    """Images and labels by index, out of files that stay open: a training loop converts nothing.

    ``src``: an .npy, .npz or .safetensors file, a folder or a glob of such, or several; their samples follow each other
    in natural order. A sample is (image, label) where a file has labels, else an image: a float32 tensor of the shape
    that was written (CHW, say), and an int64 tensor of shape () (float32 if labels are floats).

    Of a file, the images are the rows of ``images``, or of its only array besides the labels, or each of its arrays if
    it holds one an image (as a folder of images becomes, ragged sizes included); ``labels`` has one for each.

    ``images``, ``labels``: their names in the files; ``labels=None`` leaves labels alone, and another name than
    ``"labels"`` has to be there. ``dtype``: of images; floats
    are cast to it as they are read, None gives what is stored, uint8 for example. Integer images are refused
    otherwise, as nobody has said their range.

    Samples are copies, read out of the page cache, so that nothing that is done to one changes a file or another epoch.
    The data set is pickled by its description, and each worker opens its files for itself. A file that has changed
    since the data set was made is refused when a sample of it is asked for.

    Raises ``TconvError`` for files that cannot be read row by row (deflated, of other formats, weights), without labels
    beside such with labels, and for fields of which nobody said which are the images.

    >>> train = Dataset("train.npz")
    >>> loader = DataLoader(train, batch_size=64, shuffle=True, num_workers=4, collate_fn=collate)
    """

    def __init__(
        self,
        src: Source,
        *,
        images: str | None = None,
        labels: str | None = "labels",
        dtype: Any = "float32",
    ) -> None:
        self._rows = open_rows(src, images, labels, dtype)

    def __len__(self) -> int:
        """The number of samples."""
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """One sample, or of a slice a sequence of samples, each read when it is looked at. Raises ``IndexError`` beyond
        the last.
        """
        if isinstance(index, slice):
            return Batch(self._rows, range(len(self))[index])
        return _sample(self._rows, index)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitems__(self, indices: list[int]) -> Batch:
        """Several samples, as a ``DataLoader`` asks for them; ``collate`` reads them straight into one tensor."""
        return Batch(self._rows, indices)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, by number, if the files have them, as those made of class folders do."""
        return self._rows.blocks[0].classes

    @property
    def channels(self) -> str:
        """``"BGR"`` or ``"CMYK"`` if the files say that their images are, else nothing: RGB or grey."""
        return self._rows.blocks[0].channels

    def name(self, index: int) -> str:
        """What a sample is called: its name in its file, or file, array and row."""
        return self._rows.name(index)


class IterableDataset(data.IterableDataset[Sample]):
    """The same samples in order, each once: the workers of a ``DataLoader`` share them out, a run of samples each.

    The parameters are those of ``Dataset``. For random order take that one.
    """

    def __init__(
        self,
        src: Source,
        *,
        images: str | None = None,
        labels: str | None = "labels",
        dtype: Any = "float32",
    ) -> None:
        self._rows = open_rows(src, images, labels, dtype)

    def __iter__(self) -> Iterator[Sample]:
        worker = data.get_worker_info()
        mine, all_of_them = (worker.id, worker.num_workers) if worker else (0, 1)
        count = len(self._rows)
        for index in range(count * mine // all_of_them, count * (mine + 1) // all_of_them):
            yield _sample(self._rows, index)


class Batch(Sequence[Sample]):
    """Samples that are read when they are looked at, one by one or (by ``collate``) together."""

    def __init__(self, rows: Rows, indices: Sequence[int]) -> None:
        self._rows, self._indices = rows, indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, n: Any) -> Any:
        if isinstance(n, slice):
            return Batch(self._rows, self._indices[n])
        return _sample(self._rows, self._indices[n])

    def together(self) -> Sample:
        images = of_torch.make(self._rows.images(self._indices), None, None)
        if not self._rows.labelled:
            return images
        return images, of_torch.make(self._rows.labels(self._indices), None, None)


def collate(samples: Sequence[Sample]) -> Sample:
    """A batch of samples: (images, labels), or images, stacked along a new axis in front; for ``collate_fn``.

    Samples of a ``Dataset`` are read straight into the batch; labels of others may be numbers. Raises ``TconvError``
    for images of unequal shapes, naming two of them, and for what are no samples.
    """
    if isinstance(samples, Batch) and len(samples):
        return samples.together()
    if not isinstance(samples, Sequence) or not samples:
        raise WrongType(f"{shown(samples)} are no samples", remedy="give a list of what a data set gives, one at least")
    pairs = [sample if isinstance(sample, tuple | list) else (sample,) for sample in samples]
    count = len(pairs[0])
    if any(len(pair) != count or not isinstance(pair[0], torch.Tensor) for pair in pairs) or count not in (1, 2):
        raise TconvError(
            "a sample is an image, or (image, label), of which the image is a tensor, and all of a batch are alike",
            remedy="torch.utils.data.default_collate takes others",
        )
    images = _stacked([pair[0] for pair in pairs])
    return images if count == 1 else (images, torch.stack([torch.as_tensor(pair[1]) for pair in pairs]))


def _stacked(images: Sequence[Any]) -> torch.Tensor:
    for n, image in enumerate(images):
        if image.shape != images[0].shape:
            raise TconvError(
                f"a batch holds equals only, but sample 0 of it is {tuple(images[0].shape)} and sample {n} is "
                f"{tuple(image.shape)}",
                remedy="convert them to one size (resize), or take batches of 1",
            )
    return torch.stack(list(images))


def _sample(rows: Rows, index: int) -> Sample:
    image = of_torch.make(rows.image(index), None, None)
    label = rows.label(index)
    return image if label is None else (image, of_torch.make(label, None, True))
