"""The safetensors format against the safetensors library, and against literal bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import deserialize

from tconv.dtypes import DTYPES, dtype
from tconv.errors import NotTensor, TconvError
from tconv.formats.safetensors import SafetensorsWriter, read
from tconv.tensor import Extra, Range, Ref, Spec, Stream
from tconv.writer import ReadOptions
from tests.formats.conformance import Reading, Writing, all_values, assert_same, random_bits, specs_of, values
from tests.shared_data import manifest, shared

if TYPE_CHECKING:
    from tconv.ops import Array

CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float4_e2m1fn": "F4",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}

TORCH = sorted(set(CODES) - {"float4_e2m1fn"})  # those that PyTorch has one element at a time of


def library(path: Path) -> dict[str, Array]:
    """What the library makes of a file, as arrays of NumPy and ml_dtypes."""
    names = {code: name for name, code in CODES.items()}
    found = {}
    hidden = json.loads((metadata_of(path) or {}).get("tconv.packed", "{}"))
    for name, tensor in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]  # the library has no types
        true = hidden.get(name, {"dtype": names[tensor["dtype"]], "shape": tensor["shape"]})
        if DTYPES[true["dtype"]].bits == 4:
            found[name] = halves(tensor["data"], DTYPES[true["dtype"]].numpy, true["shape"])
            continue
        array = np.frombuffer(tensor["data"], DTYPES[names[tensor["dtype"]]].numpy)
        found[name] = array.reshape(tensor["shape"])
    return found


def halves(data: bytes, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Elements of 4 bits, the first in the lower half of the first byte; a half that is left over is 0."""
    text = "".join(f"{byte:02x}"[::-1] for byte in data)
    count = int(np.prod(shape))
    assert text[count:] in ("", "0")
    return np.array([int(digit, 16) for digit in text[:count]], np.uint8).view(dtype).reshape(shape)


def file_bytes(header: object, data: bytes = b"") -> bytes:
    """A file with any header, right or wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(code: str, shape: Sequence[object], start: object, end: object) -> dict[str, object]:
    return {"dtype": code, "shape": list(shape), "data_offsets": [start, end]}


def put(folder: Path, data: bytes) -> Path:
    path = folder / "x.safetensors"
    path.write_bytes(data)
    return path


def read_file(path: Path) -> Stream:
    return read(path, "x", ReadOptions())


def refusal(tmp_path: Path, data: bytes) -> TconvError:
    path = put(tmp_path, data)
    with pytest.raises(TconvError) as caught:
        read_file(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


def write(path: Path, arrays: Mapping[str, Array], extra: Extra, specs: Sequence[Spec] | None = None) -> Path:
    writer = SafetensorsWriter(specs or specs_of(arrays), extra)
    writer.open(path)
    for i, array in enumerate(arrays.values()):
        writer.write(i, 0, array.reshape(-1))
    writer.commit()
    assert path.stat().st_size == writer.size
    return path


def metadata_of(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__")


class TestSafetensors(Reading, Writing):
    suffix = ".safetensors"
    dtypes = frozenset(CODES) | {"int4", "uint4"}
    names: ClassVar[tuple[str, ...]] = ("w", "layer.0/b", "höhe 整", "", "../up", "a\0\n\"'\\", "__metadata")

    def reference(self, path: Path) -> Mapping[str, Array]:
        return library(path)

    def sample(self, folder: Path) -> Path:
        safetensors = pytest.importorskip("safetensors.numpy")
        path = folder / "sample.safetensors"
        arrays = {
            "float": random_bits("float32", (3, 4)),
            "höhe": random_bits("bool", (7,)),
            "wide": random_bits("int64", (2, 1, 2)),
            "half": random_bits("float16", (5,)),
            "scalar": np.array(3 + 4j, np.complex64),
            "empty": np.zeros((0, 3), np.float64),
        }
        safetensors.save_file(arrays, path, {"format": "np", "note": "größer"})
        return path


def test_literal_bytes(tmp_path: Path) -> None:
    header = (
        b'{"a":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]}}'
    )
    path = put(tmp_path, b"\x6d\0\0\0\0\0\0\0" + header + b"\1\0\xff\xff\x49\x40")
    a, b = read_file(path).tensors
    assert values(a).tolist() == [[1, -1]]
    assert float(values(b)) == 3.140625
    assert a.spec == Spec("a", dtype("int16"), (1, 2))
    assert b.spec == Spec("b", dtype("bfloat16"), ())


def test_tensors_come_in_the_order_of_the_header(tmp_path: Path) -> None:
    header = {"b": entry("U8", [1], 1, 2), "a": entry("U8", [1], 0, 1), "0": entry("U8", [0], 1, 1)}
    path = put(tmp_path, file_bytes(header, b"\7\x08"))
    assert [(t.spec.name, values(t).tolist()) for t in read_file(path).tensors] == [("b", [8]), ("a", [7]), ("0", [])]


def test_a_tensor_at_an_odd_offset(tmp_path: Path) -> None:
    header = {"a": entry("U8", [1], 0, 1), "b": entry("F64", [2], 1, 17)}
    path = put(tmp_path, file_bytes(header, b"\7" + struct.pack("<2d", 1.5, -2.5)))
    assert values(read_file(path).tensors[1]).tolist() == [1.5, -2.5]


def test_4_bits_by_literal_bytes(tmp_path: Path) -> None:
    x = {"q": np.array([[-8, 7, 0], [-1, 1, 5]], np.int8), "r": np.array([1, 2, 15], np.uint8)}
    arrays = {"q": x["q"].astype(DTYPES["int4"].numpy), "r": x["r"].astype(DTYPES["uint4"].numpy)}
    path = write(tmp_path / "x.safetensors", arrays, Extra("weights"))
    data = {name: bytes(tensor["data"]) for name, tensor in deserialize(path.read_bytes())}  # type: ignore[no-untyped-call]  # no types
    assert data == {"q": b"\x78\xf0\x51", "r": b"\x21\x0f"}
    note = {"q": {"dtype": "int4", "shape": [2, 3]}, "r": {"dtype": "uint4", "shape": [3]}}
    assert json.loads(metadata_of(path)["tconv.packed"]) == note


def test_pytorch_reads_float4_of_even_rows(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.torch").load_file
    arrays = {"q": np.array([[0.5, -6, 1.5, 2]], DTYPES["float4_e2m1fn"].numpy)}
    path = write(tmp_path / "x.safetensors", arrays, Extra("weights"))
    found = load_file(path)["q"]
    assert found.dtype == torch.float4_e2m1fn_x2
    assert found.view(torch.uint8).tolist() == [[0xF1, 0x43]]


PACKED = {
    "no JSON": ("{", "a broken tconv.packed"),
    "a tensor that is not there": ('{"b": {"dtype": "int4", "shape": [4]}}', "there is no such tensor"),
    "another size": ('{"a": {"dtype": "int4", "shape": [5]}}', "takes 3 bytes of uint8, and it has uint8 (2,)"),
    "a dtype of 8 bits": ('{"a": {"dtype": "int8", "shape": [2]}}', "neither a 4-bit dtype nor a shape"),
    "a negative size": ('{"a": {"dtype": "int4", "shape": [-4]}}', "neither a 4-bit dtype nor a shape"),
    "a list": ('["a"]', "a broken tconv.packed"),
    "sizes beyond all bounds": (
        f'{{"a": {{"dtype": "int4", "shape": [{2**70}]}}}}',
        "neither a 4-bit dtype nor a shape",
    ),
    "a shape too large for any array": (
        f'{{"a": {{"dtype": "int4", "shape": [{2**61}, 0, {2**61}]}}}}',
        "x.safetensors: a: a shape too large for any memory (3 axes)",
    ),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_wrong_note_on_packed_bytes_is_refused(tmp_path: Path, kind: str) -> None:
    text, message = PACKED[kind]
    header = {"__metadata__": {"tconv.packed": text}, "a": entry("U8", [2], 0, 2)}
    assert message in str(refusal(tmp_path, file_bytes(header, bytes(2))))


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("int4", [2, 2]), ("uint4", [2, 2]), ("float4_e2m1fn", [4]), ("float4_e2m1fn", [4, 1]), ("float4_e2m1fn", [2, 3])],
)
def test_a_note_that_contradicts_the_header_is_refused(tmp_path: Path, dtype: str, shape: list[int]) -> None:
    note = json.dumps({"a": {"dtype": dtype, "shape": shape}})
    header = {"__metadata__": {"tconv.packed": note}, "a": entry("F4", [2, 2], 0, 2)}
    message = f"a: a broken tconv.packed: it says {dtype} {tuple(shape)}, and the header float4_e2m1fn (2, 2)"
    assert message in str(refusal(tmp_path, file_bytes(header, bytes(2))))


def test_a_note_that_says_what_the_header_says_is_no_matter(tmp_path: Path) -> None:
    note = json.dumps({"a": {"dtype": "float4_e2m1fn", "shape": [1, 2]}})
    header = {"__metadata__": {"tconv.packed": note}, "a": entry("F4", [1, 2], 0, 1)}
    (tensor,) = read_file(put(tmp_path, file_bytes(header, b"\xf1"))).tensors
    assert values(tensor).astype(np.float32).tolist() == [[0.5, -6]]


def test_any_other_byte_of_a_bool_is_true_and_becomes_1(tmp_path: Path) -> None:
    path = put(tmp_path, file_bytes({"a": entry("BOOL", [4], 0, 4)}, b"\0\1\2\xff"))
    assert values(read_file(path).tensors[0]).tobytes() == b"\0\1\1\1"


def test_no_tensors(tmp_path: Path) -> None:
    for header in (b"{}", b"{}      ", b'{"__metadata__":{}}', b'{"__metadata__":null}'):
        stream = read_file(put(tmp_path, file_bytes(header)))
        assert stream == Stream((), Extra("weights"))


BROKEN: dict[str, tuple[object, bytes, str]] = {
    "a hole": ({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, bytes(3), "1 bytes between"),
    "a hole at the start": ({"a": entry("U8", [1], 4, 5)}, bytes(5), "4 bytes between"),
    "an overlap": ({"a": entry("U8", [4], 0, 4), "b": entry("U8", [2], 2, 4)}, bytes(4), "2 bytes shared"),
    "the same bytes": ({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 0, 4)}, bytes(4), "4 bytes shared"),
    "an empty one inside another": ({"a": entry("U8", [4], 0, 4), "b": entry("U8", [0], 2, 2)}, bytes(4), "2 bytes sh"),
    "a wrong size": ({"a": entry("F32", [3], 0, 8)}, bytes(8), "takes 12 bytes and its data_offsets leave 8"),
    "offsets backwards": ({"a": entry("U8", [1], 1, 0)}, bytes(1), "not a beginning and an end"),
    "a negative offset": ({"a": entry("U8", [1], -1, 0)}, bytes(1), "not a beginning and an end"),
    "three offsets": ({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 0, 1]}}, bytes(1), "not a beginning"),
    "offsets of floats": ({"a": entry("U8", [1], 0.0, 1.0)}, bytes(1), "not a beginning and an end"),
    "a negative size": ({"a": entry("U8", [-1, -1], 0, 1)}, bytes(1), "not a list of sizes"),
    "a size of a float": ({"a": entry("U8", [1.0], 0, 1)}, bytes(1), "not a list of sizes"),
    "a size of a bool": ({"a": entry("U8", [True], 0, 1)}, bytes(1), "not a list of sizes"),
    "a shape of text": ({"a": {"dtype": "U8", "shape": "1", "data_offsets": [0, 1]}}, bytes(1), "not a list of sizes"),
    "an overflow": ({"a": entry("U8", [2**32, 2**32], 0, 0)}, b"", "too large for any memory"),
    "an empty overflow": ({"a": entry("U8", [0, 2**62, 2**62], 0, 0)}, b"", "too large for any memory"),
    "a size of many digits": ({"a": entry("U8", [10**4000], 0, 0)}, b"", "not a list of sizes"),
    "an offset of many digits": ({"a": entry("U8", [1], 10**4000, 10**4000 + 1)}, b"", "not a beginning and an end"),
    "too many axes": ({"a": entry("U8", [1] * 65, 0, 1)}, bytes(1), "65 axes"),
    "a missing field": ({"a": {"dtype": "U8", "shape": [1]}}, bytes(1), "data_offsets is missing"),
    "no object": ({"a": 3}, b"", "is missing"),
    "an unknown dtype": ({"a": entry("F128", [1], 0, 16)}, bytes(16), "an unknown dtype: F128"),
    "a dtype that is a list": ({"a": {"dtype": [], "shape": [], "data_offsets": [0, 1]}}, bytes(1), "unknown dtype"),
    "a 4-bit overlap": ({"a": entry("F4", [4], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3), "1 bytes shared"),
    "a hole after 6 bits": (
        {"a": entry("F6_E2M3", [4], 0, 3), "b": entry("U8", [1], 4, 5)},
        bytes(5),
        "1 bytes between",
    ),
    "half a byte": ({"a": entry("F4", [3], 0, 1)}, bytes(1), "elements of 4 bits do not fill its last byte"),
    "a quarter of a byte": ({"a": entry("F6_E3M2", [1], 0, 1)}, bytes(1), "elements of 6 bits do not fill its last"),
    "a wrong size of 4 bits": ({"a": entry("F4", [4], 0, 4)}, bytes(4), "takes 2 bytes and its data_offsets leave 4"),
    "an overflow of 4 bits": ({"a": entry("F4", [2**32, 2**32], 0, 0)}, b"", "too large for any memory"),
    "a list": ([], b"", "not a JSON object"),
    "nothing": (b"", b"", "not JSON"),
    "no JSON": (b"{'a': 1}", b"", "not JSON at character 1"),
    "no UTF-8": (b'{"\xff": 1}', b"", "not UTF-8"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), b"", "not UTF-8"),
    "half a character": (b'{"\\ud800":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', bytes(1), "not valid Unicode"),
    "more after it": (b"{} {}", b"", "not JSON"),
    "NUL after it": (b"{}\0\0\0", b"", "not JSON"),
    "NaN": (b'{"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,1]}}', bytes(1), "NaN is no JSON"),
    "a number of many digits": (b'{"a":' + b"1" * 100_000 + b"}", b"", "a number too long"),
    "deep nesting": (b'{"a":' * 100_000, b"", "nesting too deep|not JSON"),
    "a name twice": (b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}}', b"", "'a' is there twice"),
    "a field twice": (b'{"a":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}}', b"", "'dtype' is there"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b"", "must be a map of strings"),
    "metadata of a list": ({"__metadata__": []}, b"", "must be a map of strings"),
    "metadata twice": (b'{"__metadata__":{},"__metadata__":{}}', b"", "'__metadata__' is there twice"),
    "bytes too few": ({"a": entry("U8", [4], 0, 4)}, bytes(3), "truncated: expected 72 bytes, found 71"),
    "bytes too many": ({"a": entry("U8", [4], 0, 4)}, bytes(9), "5 bytes too many: expected 72 bytes, found 77"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused(tmp_path: Path, case: str) -> None:
    header, data, message = BROKEN[case]
    problem = refusal(tmp_path, file_bytes(header, data))
    with pytest.raises(TconvError, match=message):
        raise problem


def test_a_refusal_names_the_tensor(tmp_path: Path) -> None:
    header = {"good": entry("U8", [1], 0, 1), "bad": entry("F32", [2], 1, 2), "worse": entry("X", [], 2, 3)}
    message = str(refusal(tmp_path, file_bytes(header, bytes(3))))
    assert "bad: a broken header: its shape takes 8 bytes" in message
    assert "worse: an unknown dtype: X" in message
    assert "good" not in message


def test_a_dtype_that_only_the_library_reads_is_refused_by_the_name_of_the_tensor(tmp_path: Path) -> None:
    header = {
        "e8m0": entry("F8_E8M0", [3], 0, 3),
        "w": entry("I16", [2], 3, 7),
        "f4": entry("F4", [2, 3], 7, 10),
        "f6": entry("F6_E2M3", [4], 10, 13),
        "g6": entry("F6_E3M2", [0], 13, 13),
        "b": entry("U8", [1], 13, 14),
    }
    path = put(tmp_path, file_bytes(header, b"???\1\0\2\0??????\7"))
    deserialize(path.read_bytes())  # type: ignore[no-untyped-call]  # the library takes it
    stream = read_file(path)
    assert {t.spec.name: values(t).tolist() for t in stream.tensors} == {
        "w": [1, 2],
        "f4": [[-6, 1.5, -6], [1.5, -6, 1.5]],
        "b": [7],
    }
    assert [(o.tensor, o.file) for o in stream.others] == [(name, str(path)) for name in ("e8m0", "f6", "g6")]
    assert [o.reason for o in stream.others[:2]] == [
        f"a tensor of dtype {code}, which tconv cannot read" for code in ("F8_E8M0", "F6_E2M3")
    ]
    assert all(isinstance(o, NotTensor) and o.remedy for o in stream.others)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\2", "truncated: expected 8 bytes, found 1"),
        (b"\2\0\0\0\0\0\0", "truncated: expected 8 bytes, found 7"),
        (b"\2\0\0\0\0\0\0\0{", "truncated: expected 10 bytes, found 9"),
        (struct.pack("<Q", 100_000_001) + b"{}", "a header of 100,000,001 bytes, and at most 100,000,000 are allowed"),
        (b"\xff" * 8 + b"{}", "a header of 18,446,744,073,709,551,615 bytes"),
    ],
)
def test_wrong_lengths_are_told_with_numbers(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in str(refusal(tmp_path, data))


def test_metadata_are_carried_along(tmp_path: Path) -> None:
    metadata = {"format": "tf", "größe": "整\n", "": ""}
    path = write(tmp_path / "x.safetensors", {"a": np.zeros(2)}, Extra("weights", metadata=metadata))
    assert metadata_of(path) == metadata
    assert read_file(path).extra == Extra("weights", metadata=metadata)


def test_weights_without_a_format_get_the_one_of_torch(tmp_path: Path) -> None:
    path = write(tmp_path / "x.safetensors", {"a": np.zeros(2)}, Extra("weights", metadata={"x": "1"}))
    assert metadata_of(path) == {"x": "1", "format": "pt"}


@pytest.mark.parametrize(
    ("axes", "ranges", "mark"),
    [
        ((None, None), (None, None), {"kind": "data"}),
        (("HWC", "HWC"), ((0, 255), (0, 255)), {"kind": "data", "axes": "HWC", "range": [0, 255]}),
        (("HWC", "CHW"), ((0, 1), None), {"kind": "data", "axes": {"a": "HWC", "b": "CHW"}, "range": {"a": [0, 1]}}),
        (
            (None, "HWC"),
            ((0, 0.5), (-1, 1)),
            {"kind": "data", "axes": {"b": "HWC"}, "range": {"a": [0, 0.5], "b": [-1, 1]}},
        ),
    ],
)
def test_the_mark_of_data(
    tmp_path: Path, axes: Sequence[str | None], ranges: Sequence[Range | None], mark: object
) -> None:
    specs = [Spec(n, dtype("uint8"), (2, 2, 3), axes=a, range=r) for n, a, r in zip("ab", axes, ranges, strict=True)]
    arrays = {name: random_bits("uint8", (2, 2, 3)) for name in "ab"}
    extra = Extra("data", metadata={"note": "kept"})
    path = write(tmp_path / "x.safetensors", arrays, extra, specs)
    written = metadata_of(path)
    assert json.loads(written.pop("tconv")) == mark
    assert written == {"note": "kept"}
    stream = read_file(path)
    assert stream.extra == extra
    assert [t.spec for t in stream.tensors] == specs
    assert stream.notes == ()
    assert_same(all_values(stream), arrays)


@pytest.mark.parametrize(("clear", "mark"), [("ab", True), ("b", {"b": True}), ("", None)])
def test_the_mark_tells_whose_last_channel_is_opacity(tmp_path: Path, clear: str, mark: object) -> None:
    specs = [Spec(n, dtype("uint8"), (2, 2, 4), attrs={"alpha": True} if n in clear else {}) for n in "ab"]
    arrays = {name: random_bits("uint8", (2, 2, 4)) for name in "ab"}
    path = write(tmp_path / "x.safetensors", arrays, Extra("data"), specs)
    assert json.loads(metadata_of(path)["tconv"]).get("alpha") == mark
    assert [t.spec for t in read_file(path).tensors] == specs


@pytest.mark.parametrize(
    "mark",
    [
        "",
        "data",
        "[]",
        "{}",
        '"data"',
        '{"kind":"other"}',
        '{"kind":"data","axes":"HW"}',
        '{"kind":"data","axes":3}',
        '{"kind":"data","axes":{"a":["H","W","C"]}}',
        '{"kind":"data","range":[0]}',
        '{"kind":"data","range":[1,0]}',
        '{"kind":"data","range":[0,NaN]}',
        '{"kind":"data","range":[0,true]}',
        '{"kind":"data","range":"01"}',
        '{"kind":"data","range":{"a":7}}',
        '{"kind":"data","range":[0,1' + "0" * 400 + "]}",
        "[" * 100_000,
    ],
)
def test_a_broken_mark_is_told_and_ignored(tmp_path: Path, mark: str) -> None:
    header = {"__metadata__": {"tconv": mark, "x": "1"}, "a": entry("U8", [1, 1, 1], 0, 1)}
    path = put(tmp_path, file_bytes(header, b"\7"))
    stream = read_file(path)
    assert stream.extra == Extra("weights", metadata={"x": "1"})
    assert [t.spec for t in stream.tensors] == [Spec("a", dtype("uint8"), (1, 1, 1))]
    assert stream.notes == (f"{path}: its mark of data is broken, so its tensors are taken for weights",)


def test_a_mark_that_came_with_weights_is_not_written_on(tmp_path: Path) -> None:
    extra = Extra("weights", metadata={"tconv": '{"kind":"data"}', "format": "pt"})
    assert metadata_of(write(tmp_path / "x.safetensors", {"a": np.zeros(2)}, extra)) == {"format": "pt"}


def test_every_tensor_is_aligned(tmp_path: Path) -> None:
    arrays = {f"{name}.{n}": random_bits(name, (n,)) for name in CODES for n in (1, 3, 0)}
    writer = SafetensorsWriter(specs_of(arrays), Extra("weights"))
    for offset, spec in zip(writer.offsets, writer.specs, strict=True):
        assert offset % spec.dtype.itemsize == 0


def test_writes_what_the_library_writes_byte_for_byte(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch").save
    tensors, arrays = {}, {}
    for n, name in enumerate(sorted(TORCH)):
        for shape in ((), (n + 1, 2)):
            key = f"{n % 3}.{name}.{len(shape)}.höhe"
            arrays[key] = random_bits(name, shape, n)
            raw = torch.from_numpy(arrays[key].reshape(-1).view(np.uint8).copy())
            tensors[key] = raw.view(getattr(torch, name)).reshape(shape)
        arrays[f"{name}.empty"] = np.zeros((0, 3), DTYPES[name].numpy)
        tensors[f"{name}.empty"] = torch.zeros((0, 3), dtype=getattr(torch, name))
    arrays["z4"] = np.array([[1, -0.5], [6, 3]], DTYPES["float4_e2m1fn"].numpy)
    tensors["z4"] = torch.tensor([[0x92], [0x57]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    path = write(tmp_path / "x.safetensors", arrays, Extra("weights", metadata={"format": "pt"}))
    assert path.read_bytes() == save(tensors, {"format": "pt"})


def test_torch_loads_what_is_written(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    load = pytest.importorskip("safetensors.torch").load_file
    arrays = {name: random_bits(name, (2, 3)) for name in TORCH}
    found = load(write(tmp_path / "x.safetensors", arrays, Extra("data")))
    for name, array in arrays.items():
        assert found[name].dtype is getattr(torch, name)
        assert tuple(found[name].shape) == (2, 3)
        assert found[name].reshape(-1).view(torch.uint8).numpy().tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["__metadata__"], "the format's own"),
        (["x", "x"], "two tensors of this name"),
        (["\ud800"], "not valid Unicode"),
    ],
)
def test_names_that_it_cannot_hold(names: list[str], reason: str) -> None:
    with pytest.raises(TconvError, match=reason):
        SafetensorsWriter([Spec(name, dtype("int8"), ()) for name in names], Extra("data"))


def test_metadata_that_is_no_text_is_refused() -> None:
    with pytest.raises(TconvError, match="not valid Unicode text"):
        SafetensorsWriter([], Extra("weights", metadata={"a": "\udfff"}))


def test_a_header_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TconvError, match=r"the header takes 100,000,0.. bytes, and .safetensors allows 100,000,000"):
        SafetensorsWriter([], Extra("weights", metadata={"a": "x" * 100_000_000}))


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.integers(0, 5)))
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, sizes: dict[str, int]) -> None:
    sizes.pop("__metadata__", None)
    arrays = {name: np.arange(size, dtype=np.int16) for name, size in sizes.items()}
    path = write(tmp_path_factory.mktemp("names") / "x.safetensors", arrays, Extra("data"))
    assert_same(library(path), arrays)
    assert_same(all_values(read_file(path)), arrays)


def test_complex128_is_refused_with_the_ways_out() -> None:
    with pytest.raises(TconvError) as caught:
        SafetensorsWriter([Spec("z", dtype("complex128"), (2,))], Extra("data"))
    assert str(caught.value) == (
        "z: .safetensors cannot name the dtype complex128; write .npz or .pt, or round complex128 with --to complex64"
    )


def test_says_what_it_leaves_out() -> None:
    extra = Extra("weights", {"w": Ref("w"), "epoch": 3}, {"format": "pt"})
    assert SafetensorsWriter([Spec("w", dtype("int8"), ())], extra).left_out == ("epoch",)


FILES = [row for row in manifest() if row["path"].endswith(".safetensors")]


@pytest.mark.parametrize("row", FILES, ids=[row["path"] for row in FILES])
def test_real_files(tmp_path: Path, row: dict[str, str]) -> None:
    path = shared(*row["path"].split("/"))
    want, metadata = library(path), metadata_of(path) or {}
    stream = read_file(path)
    assert_same(all_values(stream), want)
    assert stream.extra == Extra("weights", metadata=metadata)
    again = write(tmp_path / "x.safetensors", all_values(stream), stream.extra)
    assert_same(library(again), want)
    assert metadata_of(again) == {"format": "pt"} | metadata
