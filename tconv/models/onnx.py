"""ONNX models by onnxruntime's own static quantization: quantize and dequantize nodes (QDQ) around its operators."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import onnx  # noqa: F401  # onnxruntime.quantization needs it, and says so less plainly
import onnxruntime
from onnxruntime import quantization

from tconv.errors import TconvError, UsageError
from tconv.models.route import How, Route
from tconv.models.wanted import Wanted

if TYPE_CHECKING:
    from tconv.models.route import Run
    from tconv.models.samples import Batches
    from tconv.ops import Array

PROVIDERS = ["CPUExecutionProvider"]  # what it computes with is part of the result
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
}
_METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}


class OnnxRoute(Route):
    """See ``Route``."""

    suffix: ClassVar[str] = ".onnx"

    def __init__(self, path: Path, workers: int) -> None:
        self._path = path
        self._workers = workers
        self._session = _session(path, workers)

    def check(self, how: How) -> None:
        if how.io is not None:
            raise UsageError("--io is for TensorFlow Lite: ONNX models keep their inputs and outputs as they are")
        if how.activations not in (None, "uint8", "int8"):
            raise UsageError(f"there are no activations of {how.activations}", remedy="choose uint8 or int8")

    @property
    def wanted(self) -> Wanted:
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs) or "none"
            raise TconvError(f"it has {len(inputs)} inputs ({names}), and samples are for just one", file=self._path)
        (one,) = inputs
        shape = tuple(n if isinstance(n, int) and n > 0 else None for n in one.shape or ())
        return Wanted(one.name, shape, _DTYPES.get(one.type, one.type))

    def run(self, batch: Array) -> Mapping[str, Array]:
        return _run(self._session, self._path, batch)

    def quantize(self, batches: Batches, how: How, path: Path) -> None:
        kinds = quantization.QuantType
        options: dict[str, Any] = {"CalibStridedMinMax": 1}  # else it keeps what comes of every batch
        if how.percentile is not None:
            options["CalibPercentile"] = how.percentile
        with tempfile.TemporaryDirectory(dir=path.parent) as folder, _hushed():
            prepared = Path(folder) / "prepared.onnx"
            try:
                quantization.quant_pre_process(str(self._path), str(prepared), skip_symbolic_shape=True)
                quantization.quantize_static(
                    str(prepared),
                    str(path),
                    _Reader(self.wanted.name, batches),
                    quant_format=quantization.QuantFormat.QDQ,
                    per_channel=how.per_channel,
                    activation_type=kinds.QInt8 if how.activations == "int8" else kinds.QUInt8,
                    weight_type=kinds.QInt8,
                    calibrate_method=quantization.CalibrationMethod[_METHODS[how.method]],
                    calibration_providers=PROVIDERS,
                    extra_options=options,
                )
            except (TconvError, OSError, MemoryError):
                raise
            except Exception as problem:  # it has no errors of its own, but those of everything that it uses
                raise _theirs("onnxruntime cannot quantize it", problem, self._path) from problem

    def reopened(self, path: Path) -> Run:
        return partial(_run, _session(path, self._workers), path)


class _Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # it comes without types
    """Feeds batches, each made when it is its turn."""

    def __init__(self, name: str, batches: Batches) -> None:
        self._name = name
        self._batches = batches
        self.set_range(0, len(batches))

    def get_next(self) -> dict[str, Array] | None:
        if self._at >= self._end:
            return None
        self._at += 1
        return {self._name: self._batches[self._at - 1]}

    def set_range(self, start_index: int, end_index: int) -> None:
        self._at, self._end = start_index, end_index

    def __len__(self) -> int:
        return len(self._batches)


def _session(path: Path, workers: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong it raises, too
    options.intra_op_num_threads = workers
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=PROVIDERS)
    except MemoryError:
        raise
    except Exception as problem:
        raise _theirs("is no model that onnxruntime runs", problem, path) from problem


def _run(session: Any, path: Path, batch: Array) -> dict[str, Array]:
    names = [one.name for one in session.get_outputs()]
    try:
        found = session.run(names, {session.get_inputs()[0].name: batch})
    except MemoryError:
        raise
    except Exception as problem:
        raise _theirs("onnxruntime cannot run it", problem, path) from problem
    return dict(zip(names, found, strict=True))


def _theirs(what: str, problem: Exception, path: Path) -> TconvError:
    """An error of the library, of which the first line says most."""
    text = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    return TconvError(f"{what}: {text[:200]}", file=path)


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Without what onnxruntime prints of its progress and advises: stdout is for results."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
