"""TensorFlow's SavedModels as TensorFlow Lite, by its own converter: all operators int8."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tconv.errors import TconvError, UsageError
from tconv.models.quiet import hushed
from tconv.models.route import How, Route, theirs
from tconv.models.wanted import Wanted
from tconv.quant.grid import grid

if TYPE_CHECKING:
    from tconv.models.route import Run
    from tconv.models.samples import Batches
    from tconv.ops import Array

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors only, of which it tells when it raises them, too


with hushed():
    import tensorflow as tf

SIGNATURE = "serving_default"


class TfliteRoute(Route):
    """See ``Route``. What the model was is said by its signature ``serving_default``."""

    suffix: ClassVar[str] = ".tflite"
    largest: ClassVar[int | None] = 1

    def __init__(self, path: Path, workers: int) -> None:
        self._path = path
        self._workers = workers
        try:
            with hushed():
                self._model = tf.saved_model.load(str(path))
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as problem:
            raise theirs("is no SavedModel that TensorFlow loads", problem, path) from problem
        if SIGNATURE not in self._model.signatures:
            there = ", ".join(self._model.signatures) or "none"
            raise TconvError(
                f"it has no signature {SIGNATURE}, but {there}",
                remedy=f"say signatures={{'{SIGNATURE}': …}} to tf.saved_model.save; Keras' export does",
                file=path,
            )
        self._signature = self._model.signatures[SIGNATURE]

    def check(self, how: How) -> None:
        for option, given in (
            ("--method", how.method != "minmax"),
            ("--activations", how.activations),
            ("--per-tensor", not how.per_channel),
        ):
            if given:
                raise UsageError(f"{option} is for ONNX: TensorFlow's converter has its own way", remedy="leave it out")

    @property
    def files(self) -> Sequence[Path]:
        return [path for path in self._path.rglob("*") if path.is_file()]

    @property
    def wanted(self) -> Wanted:
        _, inputs = self._signature.structured_input_signature
        if len(inputs) != 1:
            names = ", ".join(inputs) or "none"
            raise TconvError(f"it has {len(inputs)} inputs ({names}), and samples are for just one", file=self._path)
        ((name, spec),) = inputs.items()
        if spec.shape.rank is None:
            raise TconvError("its signature does not say how many axes its input has", file=self._path)
        return Wanted(name, tuple(spec.shape), spec.dtype.name)

    def run(self, batch: Array) -> Mapping[str, Array]:
        try:
            made = self._signature(**{self.wanted.name: tf.constant(batch)})
        except (ValueError, TypeError, tf.errors.OpError) as problem:
            raise theirs("TensorFlow cannot run it", problem, self._path) from problem
        return {name: np.asarray(values) for name, values in made.items()}

    def quantize(self, batches: Batches, how: How, path: Path) -> None:
        failed: list[BaseException] = []
        name = self.wanted.name

        def representative() -> Iterator[dict[str, Array]]:
            try:
                for batch in batches:
                    yield {name: batch}
            except BaseException as problem:  # the converter would make an error of its own of it
                failed.append(problem)

        converter = tf.lite.TFLiteConverter.from_saved_model(str(self._path), signature_keys=[SIGNATURE])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ((SIGNATURE, sample) for sample in representative())
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = getattr(tf, how.io or "float32")
        try:
            with hushed():
                made = converter.convert()
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as problem:
            if not failed:
                raise theirs("TensorFlow cannot quantize it", problem, self._path) from problem
        if failed:
            raise failed[0]
        path.write_bytes(made)

    def reopened(self, path: Path) -> Run:
        name = self.wanted.name
        try:
            with hushed():
                interpreter = tf.lite.Interpreter(model_path=str(path), num_threads=self._workers)
                runner = interpreter.get_signature_runner(SIGNATURE)
                into, out = runner.get_input_details()[name], runner.get_output_details()
        except (ValueError, RuntimeError) as problem:
            raise theirs("TensorFlow Lite cannot run it", problem, self._path) from problem

        first = [hushed()]  # only that run talks, and a terminal shows how the others go on

        def run(batch: Array) -> Mapping[str, Array]:
            # The interpreter is what the runner lies in, and must live as long.
            assert interpreter is not None
            try:
                with first.pop() if first else contextlib.nullcontext():
                    made = runner(**{name: _numbers(batch, into)})
            except (ValueError, RuntimeError) as problem:
                raise theirs("TensorFlow Lite cannot run it", problem, self._path) from problem
            return {key: _values(values, out[key]) for key, values in made.items()}

        return run


def _numbers(x: Array, detail: Mapping[str, Any]) -> Array:
    """Floats as the model takes them."""
    dtype = np.dtype(detail["dtype"])
    if dtype == x.dtype:
        return x
    scale, zero = detail["quantization"]
    made = np.empty(x.shape, dtype)
    grid(dtype.name, "affine").quantize(x.astype(np.float32), np.float32(scale), np.float32(zero), made)
    return made


def _values(q: Array, detail: Mapping[str, Any]) -> Array:
    """What the model gives, as floats where it is quantized."""
    scale, zero = detail["quantization"]
    if not scale:  # a class or a count, which is what it is
        return q
    return grid(q.dtype.name, "affine").dequantize(q, np.float32(scale), np.float32(zero))
