"""The pipelines that come with tconv do what the libraries do that they name; PARITY.md says how closely."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from tconv.cli.app import run
from tconv.recipes import recipe, recipe_files
from tests.parity_table import PATH, render
from tests.peers.make_expected import EXPECTED
from tests.peers.ours import apart, converted, largest
from tests.peers.references import PHOTOS, REFERENCES, ROOT, Reference, photo

CASES = [(library, reference) for library, found in REFERENCES.items() for reference in found]
each = pytest.mark.parametrize(("library", "reference"), CASES, ids=[reference.name for _, reference in CASES])
WEIGHTS = {"half", "half-keep-norms", "bf16", "int8-weights"}


@each
def test_it_is_what_the_library_was_seen_to_make(library: str, reference: Reference, tmp_path: Path) -> None:
    for name, difference in largest(library, reference, tmp_path).items():
        assert difference <= reference.within, name


@pytest.mark.slow
@pytest.mark.parametrize("reference", REFERENCES["keras"], ids=lambda reference: reference.name)
@pytest.mark.parametrize("name", PHOTOS)
def test_it_is_what_keras_and_tensorflow_make_now(reference: Reference, name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("tensorflow", reason="the answers are its own")
        theirs = reference.make(photo(name))
    assert apart(converted(reference, name, tmp_path), theirs) <= reference.within


@pytest.mark.peers
@pytest.mark.parametrize(
    "reference", REFERENCES["torchvision"] + REFERENCES["transformers"], ids=lambda reference: reference.name
)
@pytest.mark.parametrize("name", PHOTOS)
def test_it_is_what_the_peers_make_now(reference: Reference, name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(reference.library, reason="the answers are its own")
    assert apart(converted(reference, name, tmp_path), reference.make(photo(name))) <= reference.within


def test_every_pipeline_is_compared_and_says_with_what() -> None:
    compared = {reference.argv[1] for _, reference in CASES if reference.argv[0] == "--pipeline"}
    assert compared | WEIGHTS == {path.stem for path in recipe_files()}


def test_the_page_says_how_far_apart_they_are() -> None:
    assert PATH.read_text(encoding="utf8") == render(), "python -m tests.parity_table writes it anew"


def test_what_was_written_down_is_small() -> None:
    assert sum(path.stat().st_size for path in EXPECTED.iterdir()) < 200_000


# ---------------------------------------------------------------------------------------------- checkpoints
def model() -> Any:
    """The model of examples/tiny.pt, in PyTorch."""
    torch = pytest.importorskip("torch", reason="the answers are its own")
    nn = torch.nn
    layers = [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(128, 10),
    ]
    made = nn.Sequential(*layers)
    made.load_state_dict(torch.load(ROOT / "examples" / "tiny.pt", weights_only=True)["state_dict"])
    return made


def made_by(pipeline: str, folder: Path) -> Any:
    torch = importlib.import_module("torch")
    path = folder / "made.pt"
    assert run([str(ROOT / "examples" / "tiny.pt"), "--pipeline", pipeline, "-o", str(path), "-q"]) == 0
    return torch.load(path, weights_only=True)["state_dict"]


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert ours[name].dtype == value.dtype, name
        assert ours[name].equal(value), name


@pytest.mark.parametrize(("pipeline", "method"), [("half", "half"), ("bf16", "bfloat16")])
def test_checkpoints_are_cast_as_modules_are(pipeline: str, method: str, tmp_path: Path) -> None:
    theirs = getattr(model(), method)().state_dict()
    assert_same(made_by(pipeline, tmp_path), theirs)


def test_normalization_layers_are_kept(tmp_path: Path) -> None:
    whole = model()
    torch = importlib.import_module("torch")
    for layer in whole:
        if not isinstance(layer, torch.nn.BatchNorm2d):
            layer.half()
    assert_same(made_by("half-keep-norms", tmp_path), whole.state_dict())


def test_weights_are_quantized_as_pytorch_does_by_channel(tmp_path: Path) -> None:
    torch = importlib.import_module("torch")
    ours, theirs = made_by("int8-weights", tmp_path), model().state_dict()
    quantized = [name for name, value in theirs.items() if value.is_floating_point() and value.dim() > 1]
    assert sorted(set(ours) - set(theirs)) == sorted(f"{name}.scale" for name in quantized)
    for name, value in theirs.items():
        if name not in quantized:
            assert ours[name].equal(value), name
            continue
        scale = value.abs().amax(dim=tuple(range(1, value.dim()))) / 127
        assert ours[f"{name}.scale"].equal(scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch has moved this to torchao
            zeros = torch.zeros_like(scale, dtype=torch.int64)
            wanted = torch.quantize_per_channel(value, scale, zeros, 0, torch.qint8).int_repr()
        apart = (ours[name].int() - wanted.int()).abs()
        assert apart.max() <= 1  # it multiplies by 1 / scale, which is off by one where that is near a tie
        assert (apart != 0).sum() <= 2


# ---------------------------------------------------------------------------------------------- variables
@pytest.mark.parametrize(
    ("name", "given", "chain"),
    [
        ("imagenet", {"size": "288"}, "resize(288x288) | scale | normalize(imagenet) | permute(CHW) | cast(float32)"),
        (
            "imagenet-eval", {"resize": "232", "dtype": "half"},
            "resize(232) | crop(224) | scale | normalize(imagenet) | permute(CHW) | cast(float16)",
        ),
        (
            "clip", {"size": "336"},
            "resize(336, method=bicubic) | crop(336) | scale | normalize(clip) | permute(CHW) | cast(float32)",
        ),
        (
            "tflite-representative", {"mean": "127.5", "std": "127.5"},
            "resize(224x224) | normalize(mean=127.5, std=127.5) | cast(float32)",
        ),
        (
            "keras-mobilenet", {"method": "bilinear"},
            "resize(224x224) | scale | normalize(mean=0.5, std=0.5) | cast(float32)",
        ),
    ],
)  # fmt: skip
def test_sizes_are_variables(name: str, given: dict[str, str], chain: str) -> None:
    assert " | ".join(map(str, recipe(name, given).steps)) == chain
