"""ONNX models by onnxruntime's own static quantization: quantize and dequantize nodes (QDQ) around its operators."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import onnx
import onnxruntime
from onnxruntime import quantization

from tconv.errors import TconvError, UsageError
from tconv.models import onnx_file
from tconv.models.quiet import hushed
from tconv.models.route import How, Route, theirs
from tconv.models.wanted import Wanted

if TYPE_CHECKING:
    from tconv.models.route import Run
    from tconv.models.samples import Batches
    from tconv.ops import Array

LARGE = 1 << 30  # bytes of a model of which the values are not put into one file with its graph: it holds 2 GiB at most
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
        self._session = _session(path, workers, "is no model that onnxruntime runs", path)
        self._model = onnx_file.described(path)
        onnx_file.refuse_quantized(self._model, path)

    @property
    def files(self) -> Sequence[Path]:
        return onnx_file.files(self._model, self._path)

    def check(self, how: How) -> None:
        if how.io is not None:
            raise UsageError("--io is for TensorFlow Lite: ONNX models keep their inputs and outputs as they are")
        if how.activations not in (None, "uint8", "int8"):
            raise UsageError(f"there are no activations of {how.activations}", remedy="choose uint8 or int8")

    def advice(self) -> Sequence[str]:
        version = onnx_file.operators(self._model)
        if version >= onnx_file.BY_CHANNEL:
            return ()
        return (f"its operators, of version {version}, become those of {onnx_file.BY_CHANNEL}, with scales by channel",)

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
        with tempfile.TemporaryDirectory(dir=path.parent) as folder, _temporary_files_in(folder), hushed():
            prepared = Path(folder) / "prepared.onnx"
            large = sum(part.stat().st_size for part in self.files) > LARGE
            source = self._in_one_file(Path(folder) / "whole.onnx", apart=large)
            try:
                quantization.quant_pre_process(
                    str(source),
                    str(prepared),
                    skip_symbolic_shape=True,
                    save_as_external_data=large,
                    all_tensors_to_one_file=True,
                )
                quantization.quantize_static(
                    str(prepared),
                    str(path),
                    _Reader(self.wanted.name, batches),
                    quant_format=quantization.QuantFormat.QDQ,
                    per_channel=how.per_channel,
                    activation_type=kinds.QInt8 if how.activations == "int8" else kinds.QUInt8,
                    weight_type=kinds.QInt8,
                    use_external_data_format=large,
                    calibrate_method=quantization.CalibrationMethod[_METHODS[how.method]],
                    calibration_providers=PROVIDERS,
                    extra_options=options,
                )
            except (TconvError, OSError, MemoryError):
                raise
            except Exception as problem:  # it has no errors of its own, but those of everything that it uses
                raise theirs("onnxruntime cannot quantize it", problem, self._path) from problem
            if large:
                onnx.save(onnx.load(path), path)

    def _in_one_file(self, path: Path, *, apart: bool) -> Path:
        """The model as onnxruntime quantizes it: if there is anything to change, as ``path``, its values ``apart``."""
        if not self.advice() and len(self.files) == 1:
            return self._path
        model = onnx_file.whole(self._model, self._path)
        onnx.save(model, path, save_as_external_data=apart, location="whole.data")
        return path

    def reopened(self, path: Path) -> Run:
        what = "what onnxruntime made of it does not run"
        return partial(_run, _session(path, self._workers, what, self._path), self._path)


@contextlib.contextmanager
def _temporary_files_in(folder: str) -> Iterator[None]:
    """Those of onnxruntime, which nobody else would sweep after a kill."""
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        yield
    finally:
        tempfile.tempdir = before


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


def _session(path: Path, workers: int, what: str, model: Path) -> Any:
    """``what`` is said of ``model`` where there can be none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong it raises, too
    options.intra_op_num_threads = workers
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=PROVIDERS)
    except MemoryError:
        raise
    except Exception as problem:
        raise theirs(what, problem, model, staged=path) from problem


def _run(session: Any, path: Path, batch: Array) -> dict[str, Array]:
    names = [one.name for one in session.get_outputs()]
    try:
        found = session.run(names, {session.get_inputs()[0].name: batch})
    except MemoryError:
        raise
    except Exception as problem:
        raise theirs("onnxruntime cannot run it", problem, path) from problem
    return dict(zip(names, found, strict=True))
