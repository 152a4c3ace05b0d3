"""SavedModels as TensorFlow Lite: the converter is fed what the pipeline makes, and its model agrees with the first."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError, UsageError
from tconv.models.route import How, route_for
from tconv.models.samples import Batches
from tconv.tensor import Tensor
from tests.cli.conftest import Ran
from tests.memory import tensor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # importing TensorFlow takes seconds, and warns

Tconv = Callable[..., Ran]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """image (any, 16, 16, 3) to ten logits."""
    tf: Any = pytest.importorskip("tensorflow", reason="compares with TensorFlow: pip install 'tconv[tensorflow]'")
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in [(3, 3, 3, 8), (8, 10), (10,)]]

    class Net(tf.Module):  # type: ignore[misc]  # it comes without types
        def __init__(self) -> None:
            self.conv, self.fc, self.bias = (tf.Variable(w) for w in weights)

        def __call__(self, image: Any) -> Any:
            maps = tf.nn.relu(tf.nn.conv2d(image, self.conv, 1, "SAME"))
            return {"logits": tf.reduce_mean(maps, [1, 2]) @ self.fc + self.bias}

    net = Net()
    given = tf.TensorSpec((None, 16, 16, 3), tf.float32, name="image")
    path = tmp_path_factory.mktemp("tf") / "net"
    tf.saved_model.save(net, str(path), signatures=tf.function(net.__call__).get_concrete_function(given))
    return path


def samples(count: int, seed: int = 0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [tensor(rng.uniform(0, 1, (16, 16, 3)).astype(np.float32), f"{n}.png", axes="HWC") for n in range(count)]


def test_what_a_model_takes(model: Path) -> None:
    wanted = route_for(model, 1).wanted
    assert (wanted.name, wanted.shape, wanted.dtype) == ("image", (None, 16, 16, 3), "float32")


@pytest.mark.parametrize("io", [None, "float32", "int8", "uint8"])
def test_all_operators_are_int8_and_the_outputs_near(model: Path, tmp_path: Path, io: str | None) -> None:
    tf: Any = importlib.import_module("tensorflow")
    route = route_for(model, 2)
    out = tmp_path / "m.tflite"
    route.quantize(Batches(samples(30), 1, 2), How(io=io), out)
    interpreter = tf.lite.Interpreter(model_path=str(out))
    interpreter.allocate_tensors()
    assert {d["dtype"] for d in interpreter.get_input_details()} == {np.dtype(io or "float32").type}
    kinds = {d["dtype"] for d in interpreter.get_tensor_details()}
    assert np.int8 in kinds
    run, x = route.reopened(out), samples(5, seed=1)
    before = np.concatenate([route.run(batch)["logits"] for batch in Batches(x, 1, 1)])
    after = np.concatenate([run(batch)["logits"] for batch in Batches(x, 1, 1)])
    assert after.dtype == np.float32
    assert 20 < 10 * np.log10(np.square(before).sum() / np.square(after - before).sum()) < 80


def test_the_whole_command(tconv: Tconv, model: Path) -> None:
    Path("d").mkdir()
    for n in range(12):
        Image.fromarray(np.random.default_rng(n).integers(0, 256, (20, 24, 3), np.uint8)).save(f"d/{n}.png")
    argv = ("quantize-model", model, "--calibrate", "d", "--resize", "16x16", "--normalize", "--io", "int8")
    ran = tconv(*argv, "-o", "m.tflite", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert found["output"] == "m.tflite"
    assert found["outputs"]["logits"]["samples"] == 2
    assert "calibrated on 10 samples" in ran.err
    assert "delegate" not in ran.err  # what TensorFlow says to itself
    assert {p.name for p in Path().iterdir()} == {"d", "m.tflite"}
    ran = tconv(*argv, "--layout", "CHW", "-o", "n.tflite")
    assert (ran.code, ran.out) == (1, "")
    assert "end the pipeline with permute(HWC)" in ran.err
    ran = tconv(*argv, "-o", "n.onnx")
    assert (ran.code, ran.out) == (2, "")
    assert "what is written is .tflite" in ran.err
    Path("d/3.png").write_bytes(Path("d/3.png").read_bytes()[:-30] + bytes(30))
    ran = tconv(*argv, "-o", "n.tflite")
    assert (ran.code, ran.out) == (1, "")
    assert "d/3.png" in ran.err
    assert "Traceback" not in ran.err
    assert not Path("n.tflite").exists()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (How("entropy"), "--method is for ONNX"),
        (How(activations="int8"), "--activations is for ONNX"),
        (How(per_channel=False), "--per-tensor is for ONNX"),
    ],
)
def test_choices_that_there_are_not(model: Path, how: How, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        route_for(model, 1).check(how)


def test_what_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="it is TensorFlow that says so")
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x07garbage" * 40)
    with pytest.raises(TconvError, match="is no SavedModel that TensorFlow loads"):
        route_for(tmp_path, 1)


def saved(path: Path, make: Callable[[Any, Any], Any], name: str = "serving_default") -> Path:
    """A SavedModel of one layer, and of what ``make`` makes of TensorFlow and its output."""
    tf: Any = pytest.importorskip("tensorflow", reason="compares with TensorFlow: pip install 'tconv[tensorflow]'")
    module = tf.Module()
    module.kernel = tf.Variable(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32))
    given = tf.TensorSpec((None, 4, 4, 3), tf.float32, name="image")
    call = tf.function(lambda image: make(tf, tf.reduce_mean(image, [1, 2]) @ module.kernel))
    tf.saved_model.save(module, str(path), signatures={name: call.get_concrete_function(given)})
    return path


def test_a_class_as_output_stays_one(tmp_path: Path) -> None:
    route = route_for(saved(tmp_path / "net", lambda tf, y: {"logits": y, "class": tf.argmax(y, 1)}), 1)
    rng = np.random.default_rng(0)
    some = [tensor(rng.uniform(0, 1, (4, 4, 3)).astype(np.float32), f"{n}.png", axes="HWC") for n in range(8)]
    route.quantize(Batches(some, 1, 1), How(), tmp_path / "q.tflite")
    made = route.reopened(tmp_path / "q.tflite")(Batches(some, 1, 1)[0])
    assert made["class"].dtype == np.int64
    assert made["class"].tolist() == [int(made["logits"].argmax())]


def test_without_its_signature_it_says_how_to_get_one(tmp_path: Path) -> None:
    path = saved(tmp_path / "net", lambda _, y: {"y": y}, "other")
    with pytest.raises(TconvError, match="it has no signature serving_default, but other; say signatures="):
        route_for(path, 1)


def test_what_tensorflow_cannot_run_is_no_traceback(model: Path) -> None:
    with pytest.raises(TconvError, match="TensorFlow cannot run it: "):
        route_for(model, 1).run(np.zeros((1, 16, 16, 4), np.float32))


def test_the_representative_pipeline_gives_the_model_that_tensorflow_makes_by_hand(tconv: Tconv, model: Path) -> None:
    """Byte for byte, with the converter fed by Keras' loader as its documentation has it."""
    tf: Any = importlib.import_module("tensorflow")
    Path("d").mkdir()
    for n in range(12):
        Image.fromarray(np.random.default_rng(n).integers(0, 256, (20, 24, 3), np.uint8)).save(f"d/{n}.png")
    given = ("--pipeline", "tflite-representative", "--set", "size=16", "--json", "--io", "int8", "-o", "m.tflite")
    found = json.loads(tconv("quantize-model", model, "--calibrate", "d", *given).out)

    def representative_dataset() -> Any:
        for path in found["calibrated_on"]:
            image = tf.keras.utils.load_img(path, target_size=(16, 16), interpolation="bilinear")
            yield [tf.keras.utils.img_to_array(image)[None] / 255]

    converter = tf.lite.TFLiteConverter.from_saved_model(str(model))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = representative_dataset
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    assert Path("m.tflite").read_bytes() == converter.convert()


def test_sides_of_any_length_are_those_of_the_samples(tconv: Tconv, tmp_path: Path) -> None:
    """The sides in the file are 1, on which a convolution of 3x3 pixels ends the process. What is made lies in the
    folder of the model, and is no part of what it was made of.
    """
    tf: Any = importlib.import_module("tensorflow")

    class Net(tf.Module):  # type: ignore[misc]  # it comes without types
        def __init__(self) -> None:
            self.conv = tf.Variable(np.random.default_rng(0).standard_normal((3, 3, 3, 4)).astype(np.float32))

        def __call__(self, image: Any) -> Any:
            return {"means": tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, self.conv, 1, "VALID")), [1, 2])}

    net, given = Net(), tf.TensorSpec((None, None, None, 3), tf.float32, name="image")
    tf.saved_model.save(net, "net", signatures=tf.function(net.__call__).get_concrete_function(given))
    size = sum(path.stat().st_size for path in Path("net").rglob("*") if path.is_file())
    np.save("x.npy", np.random.default_rng(1).uniform(0, 1, (10, 16, 16, 3)).astype(np.float32))
    ran = tconv("quantize-model", "net", "--calibrate", "x.npy", "--range", "0,1", "-o", "net/q.tflite", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["outputs"]["means"]["sqnr_db"] > 20
    assert told["bytes"] == {"before": size, "after": Path("net/q.tflite").stat().st_size}
