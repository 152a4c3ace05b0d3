"""Quantized weights as compressed-tensors lays them out, for transformers and vLLM: safetensors and a config.json.

A layer ``L`` has, instead of ``L.weight``: ``L.weight_scale`` and, of integers, ``L.weight_packed`` (int32 words along
the rows, each number plus half their range, the first in the lowest bits), ``L.weight_shape`` and, affine,
``L.weight_zero_point``; float8 stays ``L.weight``. Layout: "pack-quantized" and "naive-quantized" of
https://github.com/vllm-project/compressed-tensors, version 0.20.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from tconv.dtypes import DTYPES, DType
from tconv.errors import TconvError, raise_all
from tconv.formats import packed, safetensors
from tconv.formats.positional import pwrite
from tconv.formats.raw import RawSource
from tconv.memory import ArraySource
from tconv.quant import noted
from tconv.tensor import Extra, Source, Spec, Stream, Tensor
from tconv.writer import ReadOptions

if TYPE_CHECKING:
    from tconv.ops import Array

WORD = 32  # bits
_LAYER = ".weight"
_ATTR = "compressed"  # of the tensor that holds a layer's numbers: its Scheme
_EMBEDDING = re.compile(r"(embed[^.]*|^wte|\.wte|^wpe|\.wpe|^shared|\.shared)\.weight$")
_FORMATS = {"int": "pack-quantized", "float": "naive-quantized"}
_TAKEN = {"int8": ("int", 8), "int4": ("int", 4), "float8_e4m3fn": ("float", 8)}


class Scheme(NamedTuple):
    """How a layer is quantized, in the words of the library's ``QuantizationArgs``."""

    type: str
    num_bits: int
    symmetric: bool
    strategy: str
    group_size: int | None

    @property
    def is_packed(self) -> bool:
        return self.type == "int"


class CompressedWriter(safetensors.SafetensorsWriter):
    """A .safetensors file of that layout. Its specs are those that ``arranged`` makes."""

    folder: ClassVar[bool] = True
    reader: ClassVar[str] = "tconv.formats.compressed:read"

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        self._bits = {i: s.dtype.bits for i, s in enumerate(specs) if _is_packed(s)}
        self._halves = {i: packed.Packer(specs[i].size) for i, bits in self._bits.items() if bits == 4}
        super().__init__([_stored(spec) if i in self._bits else spec for i, spec in enumerate(specs)], extra)

    @classmethod
    def arranged(cls, stream: Stream) -> Stream:
        """Every quantized tensor, and the numbers beside it, with the names and shapes of the layout.

        Raises ``TconvError``, naming all of them, for tensors of which it has none.
        """
        said = noted.told(stream.extra.metadata)
        there = {tensor.spec.name: tensor for tensor in stream.tensors}
        layers: dict[str, list[Tensor]] = {}
        problems = []
        for name in said:
            try:
                if name in there:
                    layers[name] = _layer(there, name, said[name])
            except TconvError as problem:
                problems.append(problem.at(file=there[name].source.path, tensor=name))
        raise_all(problems, remedy="--keep leaves tensors as they are" if problems else "")
        if not layers:
            raise TconvError("nothing in it is quantized, and compressed-tensors is for what is", remedy=_QUANTIZE)
        spent = {f"{name}{suffix}" for name in layers for suffix in noted.BESIDE}
        made: list[Tensor] = []
        for name, tensor in there.items():
            made += layers.get(name, [] if name in spent else [tensor])
        extra = replace(stream.extra, metadata=noted.noting(stream.extra.metadata, {}))
        return replace(stream.with_tensors(made), extra=extra)

    @classmethod
    def config(cls, specs: Sequence[Spec], old: bytes | None) -> bytes | None:
        """``old`` with what is to be known of these tensors in it, as the library reads it."""
        try:
            found = json.loads(old) if old else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise TconvError("its config.json is broken", remedy="fetch the model again")
        if "quantization_config" in found:
            raise TconvError("its config.json says that it is quantized already", remedy="take the model before that")
        found["quantization_config"] = _quantization(specs)
        return (json.dumps(found, indent=2) + "\n").encode()

    def write(self, i: int, lo: int, array: Array) -> None:
        bits = self._bits.get(i)
        if bits is None:
            super().write(i, lo, array)
            return
        at, data = self._halves[i].pack(lo, array) if bits == 4 else (lo, array.reshape(-1).view(np.uint8))
        flipped = np.bitwise_xor(data, _flip(bits))
        pwrite(self._fd, memoryview(flipped.data), self.offsets[i] + at)


_QUANTIZE = "say --quantize int8, int4 or float8_e4m3fn"


def _is_packed(spec: Spec) -> bool:
    scheme = spec.attrs.get(_ATTR)
    return scheme is not None and scheme.is_packed


def _flip(bits: int) -> int:
    """The sign bits of a byte full of numbers: turned over, they have half of their range added."""
    return 0x88 if bits == 4 else 0x80


def _stored(spec: Spec) -> Spec:
    """As the file says it: words."""
    rows, columns = spec.shape
    return replace(spec, dtype=DTYPES["int32"], shape=(rows, columns * spec.dtype.bits // WORD))


def _layer(there: Mapping[str, Tensor], name: str, said: Any) -> list[Tensor]:
    """What stands for the quantized tensor of that name, as the file tells of it."""
    tensor, scale, zero = (there.get(f"{name}{suffix}") for suffix in ("", *noted.BESIDE))
    if tensor is None or scale is None:
        raise TconvError("its scales are not there", remedy="quantize again")
    scheme = _scheme(tensor.spec, said)
    base = name.removesuffix(_LAYER)
    alias = tensor.spec.alias_of
    target = alias.removesuffix(_LAYER) if alias else None
    rows = tensor.spec.shape[0]
    shape = {"tensor": (1,), "channel": (rows, 1)}.get(scheme.strategy, scale.spec.shape)

    def called(one: Tensor, what: str, **changes: Any) -> Tensor:
        spec = replace(one.spec, name=f"{base}{what}", alias_of=f"{target}{what}" if target else None, **changes)
        return replace(one, spec=spec)

    attrs = {**tensor.spec.attrs, _ATTR: scheme}
    numbers = called(tensor, ".weight_packed" if scheme.is_packed else _LAYER, attrs=attrs)
    made = [numbers, called(scale, ".weight_scale", shape=shape)]
    if zero is not None:
        points = _points(zero, shape, scheme)
        made.append(called(points, ".weight_zero_point", dtype=points.source.dtype, shape=points.source.shape))
    if scheme.is_packed:
        made.append(called(_made_of(scale, np.array(tensor.spec.shape, np.int64)), ".weight_shape"))
    return made


def _scheme(spec: Spec, said: Any) -> Scheme:
    """Raises ``TconvError`` for what the library has no words for."""
    if not spec.name.endswith(_LAYER) or len(spec.shape) != 2:
        raise TconvError("compressed-tensors quantizes the weights of linear layers: L.weight, of two axes")
    if _EMBEDDING.search(spec.name):
        raise TconvError("it is an embedding by its name, and who loads compressed-tensors wants these as they are")
    told = said if isinstance(said, dict) else {}
    grid, axis, group = told.get("to"), told.get("axis"), told.get("group")
    if grid not in _TAKEN or spec.dtype.name != grid:
        raise TconvError(f"compressed-tensors has no {grid or spec.dtype}", remedy=f"it has {', '.join(_TAKEN)}")
    if axis not in (None, 0):
        raise TconvError(f"its scales are along axis {axis}, and compressed-tensors has them along axis 0")
    kind, bits = _TAKEN[grid]
    if kind == "int" and spec.shape[1] * bits % WORD:
        raise TconvError(f"its rows of {spec.shape[1]} elements of {bits} bits do not fill words of {WORD} bits")
    strategy = "group" if group else "tensor" if axis is None else "channel"
    return Scheme(kind, bits, told.get("scheme") == "symmetric", strategy, group)


def _points(zero: Tensor, shape: tuple[int, ...], scheme: Scheme) -> Tensor:
    """The zero points: packed along the rows where there are rows of them."""
    values = zero.source.read(0, zero.spec.size).astype(np.int8).reshape(shape)
    if scheme.strategy == "tensor":
        return _made_of(zero, values)
    per_word = WORD // scheme.num_bits
    missing = -shape[0] % per_word
    offset = values.astype(np.int64) + (1 << (scheme.num_bits - 1))
    columns = np.pad(offset, ((0, missing), (0, 0))).reshape(-1, per_word, shape[1])
    words = (columns << (scheme.num_bits * np.arange(per_word)[None, :, None])).sum(axis=1)
    return _made_of(zero, words.astype(np.uint32).view(np.int32))


def _made_of(like: Tensor, values: Array) -> Tensor:
    """A tensor of these values, made where ``like`` was."""
    dtype = DTYPES[values.dtype.name]
    source = ArraySource(like.source.path, dtype, values.shape, values.reshape(-1))
    return Tensor(replace(like.spec, dtype=dtype, shape=values.shape), source)


def _quantization(specs: Sequence[Spec]) -> dict[str, Any]:
    """The entry ``quantization_config``: every layer by its name, and by theirs those that are as they were."""
    groups: dict[Scheme, list[str]] = {}
    plain = []
    for spec in specs:
        scheme = spec.attrs.get(_ATTR)
        if scheme is not None:
            groups.setdefault(scheme, []).append(spec.name.removesuffix("_packed").removesuffix(_LAYER))
        elif spec.name.endswith(_LAYER) and len(spec.shape) == 2:
            plain.append(spec.name.removesuffix(_LAYER))
    formats = {_FORMATS[scheme.type] for scheme in groups}
    return {
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "format": formats.pop() if len(formats) == 1 else "mixed-precision",
        "config_groups": {f"group_{n}": _group(scheme, names) for n, (scheme, names) in enumerate(groups.items())},
        "ignore": plain,
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


def _group(scheme: Scheme, layers: Sequence[str]) -> dict[str, Any]:
    return {
        "targets": list(layers),
        "weights": {**scheme._asdict(), "dynamic": False},
        "input_activations": None,
        "output_activations": None,
        "format": _FORMATS[scheme.type],
    }


def read(path: Path, name: str, options: ReadOptions) -> Stream:
    """As it was written: with numbers where the file has words. For who compares; others get the file as it is."""
    stream = safetensors.read(path, name, options)
    there = {tensor.spec.name: tensor for tensor in stream.tensors}
    made = [
        _unpacked(t, there[f"{t.spec.name.removesuffix('_packed')}_shape"]) if _words(t) else t for t in there.values()
    ]
    return stream.with_tensors(made)


def _words(tensor: Tensor) -> bool:
    return tensor.spec.name.endswith(".weight_packed") and tensor.spec.dtype.name == "int32"


def _unpacked(tensor: Tensor, shape: Tensor) -> Tensor:
    assert isinstance(tensor.source, RawSource)
    rows, columns = (int(n) for n in shape.source.read(0, 2))
    bits = WORD * tensor.spec.shape[1] // columns
    dtype = DTYPES["int4" if bits == 4 else "int8"]
    stored = tensor.source
    count = dtype.nbytes(rows * columns)
    whole = RawSource(stored.path, DTYPES["uint8"], (count,), stored.offset, seen=stored.seen)
    flipped = Flipped(whole, _flip(bits), DTYPES["uint8"] if bits == 4 else dtype, whole.shape)
    source: Source = packed.HalfBytes(flipped, dtype, (rows, columns)) if bits == 4 else flipped
    return Tensor(replace(tensor.spec, dtype=dtype, shape=(rows, columns)), source)


@dataclass(frozen=True, slots=True)
class Flipped:
    """A ``Source`` of the bytes of ``whole`` with some bits turned over, as numbers of ``dtype``."""

    whole: RawSource
    mask: int
    dtype: DType
    shape: tuple[int, ...]

    @property
    def path(self) -> Path:
        return self.whole.path

    @property
    def seekable(self) -> bool:
        return True

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        found = np.bitwise_xor(self.whole.read(lo, hi), self.mask).view(self.dtype.numpy)
        if out is None:
            return found
        np.copyto(out, found)
        return out
