"""What the ways to quantize a model have in common: how it is asked for, and what a way must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tconv.errors import TconvError
from tconv.registry import load

if TYPE_CHECKING:
    from tconv.models.samples import Batches
    from tconv.models.wanted import Wanted
    from tconv.ops import Array

    Run: TypeAlias = Callable[[Array], Mapping[str, Array]]  # a batch in, every output by its name

METHODS = ("minmax", "entropy", "percentile")


@dataclass(frozen=True)
class How:
    """``method``: which ranges of activations are taken. ``per_channel``: a scale for each output channel of weights.
    ``activations`` and ``io``: the dtypes of activations, and of inputs and outputs.
    """

    method: str = "minmax"
    percentile: float | None = None
    per_channel: bool = True
    activations: str | None = None
    io: str | None = None


class Route(ABC):
    """One way; made of a model, which it reads. Raises ``TconvError`` for what it cannot read."""

    suffix: ClassVar[str]  # of what it writes
    largest: ClassVar[int | None] = None  # how many samples the model is given at once, where that is limited

    @abstractmethod
    def __init__(self, path: Path, workers: int) -> None: ...

    @abstractmethod
    def check(self, how: How) -> None:
        """Refuse what this way has no choice in."""

    @property
    @abstractmethod
    def files(self) -> Sequence[Path]:
        """Those that the model consists of."""

    def advice(self) -> Sequence[str]:
        """What the user should know of what is done to the model, besides that it is quantized."""
        return ()

    @property
    @abstractmethod
    def wanted(self) -> Wanted:
        """What the model takes."""

    @abstractmethod
    def run(self, batch: Array) -> Mapping[str, Array]:
        """What the model makes of a batch."""

    @abstractmethod
    def quantize(self, batches: Batches, how: How, path: Path) -> None:
        """Write the quantized model to ``path``; files beside it are taken away by the caller."""

    @abstractmethod
    def reopened(self, path: Path) -> Run:
        """What the quantized model at ``path`` makes of a batch, as floats."""


# By suffix, none for a folder: the class, and the extra that installs what it needs.
_ROUTES = {
    ".onnx": ("tconv.models.onnx:OnnxRoute", "onnx"),
    "": ("tconv.models.tflite:TfliteRoute", "tensorflow"),
    ".pt2": ("tconv.models.pt2e:Pt2eRoute", "pt2e"),
}


def route_for(path: Path, workers: int) -> Route:
    """The way for the model at ``path``: .onnx, .pt2, or the folder of a SavedModel."""
    if path.is_dir() and not (path / "saved_model.pb").is_file():
        raise TconvError("is a folder, and holds no saved_model.pb", remedy=_KNOWN, file=path)
    if not path.exists():
        raise TconvError("there is no such file or folder", file=path)
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix not in _ROUTES:
        raise TconvError("is no model that tconv quantizes as a whole", remedy=_WAYS.get(suffix, _KNOWN), file=path)
    target, extra = _ROUTES[suffix]
    try:
        kind: type[Route] = load(target)
    except ImportError as problem:
        raise TconvError(
            f"{problem.name or extra} is not installed, which quantizes such models",
            remedy=f"pip install 'tconv[{extra}]'",
            file=path,
        ) from problem
    return kind(path, workers)


def theirs(what: str, problem: Exception, path: Path, staged: Path | None = None) -> TconvError:
    """An error of a library, of which the first line says most; ``staged``: a file of which no user knows."""
    text = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    text = text.replace(str(staged), "it") if staged else text
    return TconvError(f"{what}: {text[:200]}", file=path)


_KNOWN = (
    "an .onnx file, a .pt2 of torch.export or the folder of a TensorFlow SavedModel is; of weights it is tconv WEIGHTS "
    "--quantize int8"
)
_KERAS = "keras.saving.load_model(FILE).export(FOLDER) makes a SavedModel of it, which is one"
_TORCH = "torch.export.save makes a .pt2 of a module, which is one; of weights it is tconv WEIGHTS --quantize int8"
_WAYS = {".keras": _KERAS, ".h5": _KERAS, ".hdf5": _KERAS, ".pt": _TORCH, ".pth": _TORCH, ".ckpt": _TORCH}
