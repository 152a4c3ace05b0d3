"""A small network trained on scikit-learn's digits, quantized by every route, and how often it is right then."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tconv.cli.app import run

if TYPE_CHECKING:
    from tconv.ops import Array

HELD_OUT = 500  # of 1797 digits
EPOCHS = 12
SAMPLES = 300
CHAIN = ("--range", "0,16", "--normalize", "--input-layout")  # the digits are floats in 0…16


@dataclass(frozen=True)
class Row:
    """``before`` and ``after``: shares of held-out digits that are classified right; ``size``: of the float file."""

    route: str
    scheme: str
    before: float
    after: float
    size: float


class Digits:
    """The images as floats in 0…16, (count, 1, 8, 8), and their labels; the same division each time."""

    def __init__(self) -> None:
        datasets: Any = importlib.import_module("sklearn.datasets")
        found = datasets.load_digits()
        order = np.random.default_rng(0).permutation(len(found.images))
        images = found.images[order].astype(np.float32)[:, None]
        labels = found.target[order]
        self.train, self.test = images[HELD_OUT:], images[:HELD_OUT]
        self.train_labels, self.test_labels = labels[HELD_OUT:], labels[:HELD_OUT]

    def right(self, logits: Array) -> float:
        """Of the held-out digits the share for which the largest number is at the right place."""
        return float((logits.argmax(axis=1) == self.test_labels).mean())


def network() -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )


def trained(digits: Digits) -> torch.nn.Sequential:
    """The network after some seconds of training, the same each time on one machine."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so little more only wait for each other, and sum up in another order
    net = network()
    x, y = torch.from_numpy(digits.train / 16), torch.from_numpy(digits.train_labels)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(x)), 64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    torch.set_num_threads(threads)
    return net.eval()


def logits(net: torch.nn.Module, digits: Digits) -> Array:
    with torch.no_grad():
        made: Array = net(torch.from_numpy(digits.test / 16)).numpy()
    return made


def tconv(*argv: str | Path) -> None:
    """A command that must succeed; what it says is nobody's business here."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        code = run([str(word) for word in argv])
    if code:
        raise RuntimeError(f"tconv {' '.join(map(str, argv))}: {said.getvalue()}")


def of_weights(folder: Path, net: torch.nn.Sequential, digits: Digits) -> Iterator[Row]:
    """tconv's own quantization of weights, and dequantized again for the network to run."""
    torch.save(net.state_dict(), folder / "net.pt")
    before, size = digits.right(logits(net, digits)), _weights_size(folder / "net.pt", folder)
    for text in ("int8", "int8, axis=None", "uint8", "float8_e4m3fn", "int4"):
        small, back = folder / "q.safetensors", folder / "back.pt"
        tconv(folder / "net.pt", "--quantize", text, "-o", small, "-f")
        tconv(small, "--step", "dequantize", "-o", back, "-f")
        copy = network().eval()
        copy.load_state_dict(torch.load(back))
        yield Row("weights", text, before, digits.right(logits(copy, digits)), small.stat().st_size / size)


def _weights_size(path: Path, folder: Path) -> int:
    """As .safetensors, to compare like with like."""
    tconv(path, "--to", "float32", "-o", folder / "float.safetensors", "-f")
    return (folder / "float.safetensors").stat().st_size


def of_onnx(folder: Path, net: torch.nn.Sequential, digits: Digits) -> Iterator[Row]:
    """onnxruntime's static quantization, run by onnxruntime."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    model = folder / "net.onnx"
    torch.onnx.export(
        net, (torch.zeros(1, 1, 8, 8),), str(model), input_names=["image"], output_names=["logits"],
        dynamic_axes={"image": {0: "N"}, "logits": {0: "N"}}, dynamo=False,
    )  # fmt: skip
    np.save(folder / "train.npy", digits.train)

    def run_model(path: Path) -> Array:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        made: Array = session.run(None, {"image": digits.test / 16})[0]
        return made

    before = digits.right(run_model(model))
    for method in ("minmax", "entropy", "percentile"):
        small = folder / f"{method}.onnx"
        quantized(model, folder / "train.npy", "NCHW", small, "--method", method)
        after = digits.right(run_model(small))
        yield Row("ONNX", f"int8, {method}", before, after, small.stat().st_size / model.stat().st_size)


def quantized(model: Path, samples: Path, layout: str, target: Path, *options: str) -> None:
    """By ``tconv quantize-model``."""
    counted = ("--samples", str(SAMPLES), "--held-back", "100")
    tconv("quantize-model", model, "--calibrate", samples, *CHAIN, layout, *counted, *options, "-o", target, "-f")


def of_tflite(folder: Path, net: torch.nn.Sequential, digits: Digits) -> Iterator[Row]:
    """TensorFlow Lite, from the same network with its axes as TensorFlow has them."""
    tf: Any = importlib.import_module("tensorflow")
    from tconv.models.tflite import TfliteRoute

    model, small = folder / "saved_model", folder / "net.tflite"
    _save_as_tensorflow(tf, net, model)
    np.save(folder / "train-last.npy", digits.train.transpose(0, 2, 3, 1))
    route = TfliteRoute(model, 1)
    images = np.ascontiguousarray(digits.test.transpose(0, 2, 3, 1) / 16)
    before = digits.right(np.asarray(route.run(images)["logits"]))
    plain = len(tf.lite.TFLiteConverter.from_saved_model(str(model)).convert())
    for dtype in ("int8", "float32"):
        quantized(model, folder / "train-last.npy", "NHWC", small, "--io", dtype)
        call: Callable[[Array], Any] = route.reopened(small)
        made = np.concatenate([call(image[None])["logits"] for image in images])
        yield Row("TensorFlow Lite", f"int8, io {dtype}", before, digits.right(made), small.stat().st_size / plain)


def _save_as_tensorflow(tf: Any, net: torch.nn.Sequential, path: Path) -> None:
    state = {name: x.numpy() for name, x in net.state_dict().items()}
    kernels = [state[f"{n}.weight"].transpose(2, 3, 1, 0) for n in (0, 3)]
    dense = state["7.weight"].reshape(10, 32, 2, 2).transpose(2, 3, 1, 0).reshape(128, 10)

    class Net(tf.Module):  # type: ignore[misc]  # it comes without types
        def __init__(self) -> None:
            self.kernels = [tf.Variable(kernel) for kernel in kernels]
            self.biases = [tf.Variable(state[f"{n}.bias"]) for n in (0, 3, 7)]
            self.dense = tf.Variable(dense)

        def __call__(self, image: Any) -> Any:
            x = image
            for kernel, bias in zip(self.kernels, self.biases[:2], strict=True):
                x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias), 2, 2, "VALID")
            return {"logits": tf.reshape(x, (-1, 128)) @ self.dense + self.biases[2]}

    made = Net()
    given = tf.TensorSpec((None, 8, 8, 1), tf.float32, name="image")
    tf.saved_model.save(made, str(path), signatures=tf.function(made.__call__).get_concrete_function(given))


ROUTES = (of_weights, of_onnx, of_tflite)
