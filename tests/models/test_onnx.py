"""ONNX models: onnxruntime's quantizer is fed what the pipeline makes, batch by batch, and reproducibly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tconv.errors import TconvError, UsageError
from tconv.models.onnx import OnnxRoute
from tconv.models.route import How, route_for
from tconv.models.samples import Batches
from tconv.tensor import Tensor
from tests.memory import ArraySource, tensor
from tests.models.networks import addition, convolution

if TYPE_CHECKING:
    from tconv.ops import Array


def samples(count: int, seed: int = 0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [tensor(rng.uniform(0, 1, (3, 16, 16)).astype(np.float32), f"{n}.png", axes="CHW") for n in range(count)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    convolution(tmp_path / "net.onnx", ["N", 3, 16, 16])
    return tmp_path / "net.onnx"


def made(model: Path, how: How, target: Path | None = None) -> onnx.ModelProto:
    target = target or model.with_name("out.onnx")
    OnnxRoute(model, 1).quantize(Batches(samples(20), 4, 2), how, target)
    found = onnx.load(target)
    target.unlink()
    return found


def test_what_a_model_takes(tmp_path: Path, model: Path) -> None:
    wanted = OnnxRoute(model, 1).wanted
    assert (wanted.name, wanted.shape, wanted.dtype) == ("image", (None, 3, 16, 16), "float32")
    convolution(tmp_path / "fixed.onnx", [2, 3, 8, 9], "uint8")
    wanted = OnnxRoute(tmp_path / "fixed.onnx", 1).wanted
    assert (wanted.shape, wanted.dtype, wanted.batch) == ((2, 3, 8, 9), "uint8", 2)
    addition(tmp_path / "two.onnx")
    with pytest.raises(TconvError, match=r"it has 2 inputs \(a, b\), and samples are for just one"):
        _ = OnnxRoute(tmp_path / "two.onnx", 1).wanted


def test_it_becomes_a_model_of_quantize_and_dequantize_nodes(model: Path) -> None:
    found = made(model, How())
    kinds = [node.op_type for node in found.graph.node]
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= set(kinds)
    weights = {one.name: numpy_helper.to_array(one) for one in found.graph.initializer}
    assert weights["conv.weight_quantized"].dtype == np.int8
    assert weights["conv.weight_scale"].shape == (8,)
    assert weights["image_zero_point"].dtype == np.uint8
    found = made(model, How(per_channel=False, activations="int8"))
    weights = {one.name: numpy_helper.to_array(one) for one in found.graph.initializer}
    assert weights["conv.weight_scale"].shape == ()
    assert weights["image_zero_point"].dtype == np.int8


def test_ranges_of_minmax_are_those_of_the_samples(model: Path) -> None:
    weights = {one.name: numpy_helper.to_array(one) for one in made(model, How()).graph.initializer}
    every = np.stack([t.source.read(0, t.spec.size) for t in samples(20)])
    low, high = min(0.0, float(every.min())), float(every.max())
    assert weights["image_scale"] == pytest.approx((high - low) / 255, rel=1e-5)
    assert int(weights["image_zero_point"]) == 0


@pytest.mark.parametrize("how", [How("entropy"), How("percentile"), How("percentile", 90.0)])
def test_other_methods_take_other_ranges(model: Path, how: How) -> None:
    plain = {one.name: numpy_helper.to_array(one) for one in made(model, How()).graph.initializer}
    other = {one.name: numpy_helper.to_array(one) for one in made(model, how).graph.initializer}
    assert other["relu_scale"] <= plain["relu_scale"] * 1.01
    if how.percentile == 90:
        assert other["relu_scale"] < plain["relu_scale"] * 0.9


def test_what_it_was_fed_is_made_one_batch_at_a_time(model: Path) -> None:
    told: list[int] = []
    OnnxRoute(model, 1).quantize(
        Batches(samples(10), 4, 2, tell=told.append), How("entropy"), model.with_name("o.onnx")
    )
    assert told == [4, 4, 2]
    assert {p.name for p in model.parent.iterdir()} == {"net.onnx", "o.onnx"}


def test_a_second_run_gives_the_same_bytes(model: Path) -> None:
    """In another process, in which sets have another order."""
    code = (
        "import sys; from pathlib import Path; from tconv.models.route import How;"
        "from tests.models.test_onnx import made;"
        "sys.stdout.buffer.write(made(Path(sys.argv[1]), How('entropy')).SerializeToString(deterministic=True))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(model)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert onnx.load_from_string(runs[0]).graph.node


def test_both_models_are_run(model: Path) -> None:
    route = OnnxRoute(model, 1)
    out = model.with_name("out.onnx")
    route.quantize(Batches(samples(40), 8, 2), How(), out)
    x = Batches(samples(5, seed=1), 5, 2)[0]
    before, after = route.run(x)["logits"], route.reopened(out)(x)["logits"]
    assert before.shape == after.shape == (5, 10)
    assert 25 < 10 * np.log10(np.square(before).sum() / np.square(after - before).sum()) < 80


def test_nothing_is_printed(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made(model, How("entropy"))
    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_with_a_sample_is_told_as_that(model: Path) -> None:
    class Broken(ArraySource):
        def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
            raise TconvError("truncated", file="bad.png")

    good = tensor(np.zeros((3, 16, 16), np.float32), "bad.png")
    bad = Tensor(good.spec, Broken(np.zeros((3, 16, 16), np.float32)))
    with pytest.raises(TconvError, match=r"bad\.png: truncated"):
        OnnxRoute(model, 1).quantize(Batches([bad], 1, 1), How(), model.with_name("o.onnx"))


def test_choices_that_there_are_not(model: Path) -> None:
    route = OnnxRoute(model, 1)
    route.check(How("entropy", activations="int8"))
    with pytest.raises(UsageError, match="--io is for TensorFlow Lite"):
        route.check(How(io="int8"))


@pytest.mark.parametrize("content", [b"", b"\x08\x07garbage" * 50, b"\x00" * 100])
def test_what_is_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.onnx").write_bytes(content)
    with pytest.raises(TconvError, match=r"x\.onnx: is no model that onnxruntime runs: "):
        route_for(tmp_path / "x.onnx", 1)


def test_ways_are_known_by_what_a_path_is(tmp_path: Path, model: Path) -> None:
    assert isinstance(route_for(model, 1), OnnxRoute)
    for name, words in [("no.onnx", "there is no such file"), (".", "holds no saved_model.pb")]:
        with pytest.raises(TconvError, match=words):
            route_for(tmp_path / name, 1)
    (tmp_path / "m.pt").write_bytes(b"PK")
    with pytest.raises(TconvError, match=r"no model that tconv quantizes as a whole; .*--quantize int8"):
        route_for(tmp_path / "m.pt", 1)
    for name, way in [("m.keras", "export(FOLDER) makes a SavedModel"), ("m.pth", "torch.export.save makes a .pt2")]:
        (tmp_path / name).write_bytes(b"PK")
        with pytest.raises(TconvError) as caught:
            route_for(tmp_path / name, 1)
        assert way in caught.value.remedy


def test_without_onnxruntime_it_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tconv import registry

    registry.load.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "tconv.models.onnx")
    with pytest.raises(TconvError, match=r"onnxruntime is not installed.*; pip install 'tconv\[onnx\]'"):
        route_for(model, 1)
    registry.load.cache_clear()
