"""NumPy's .npy against numpy.load and numpy.save."""

from __future__ import annotations

import io
import os
import struct
import sys
import tracemalloc
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tconv.dtypes import DTYPES, dtype
from tconv.errors import TconvError
from tconv.formats.npy import NpyWriter, read
from tconv.tensor import Extra, Ref, Spec
from tconv.writer import ReadOptions
from tests.formats.conformance import Reading, Writing, assert_same, random_bits, same, values
from tests.shared_data import manifest, shared

if TYPE_CHECKING:
    from tconv.ops import Array

NUMPY_LACKS = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"}
NUMPY_DTYPES = frozenset(DTYPES) - NUMPY_LACKS - {"int4", "uint4"}


def load(path: Path) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        array: Array = np.load(path, allow_pickle=False)
    return array


def read_array(path: Path) -> Array:
    (tensor,) = read(path, "x", ReadOptions()).tensors
    return values(tensor)


def npy(descr: object, shape: object, data: bytes, *, fortran: object = False, version: int = 1) -> bytes:
    """A file with any header, right or wrong."""
    return with_header(f"{{'descr': {descr!r}, 'fortran_order': {fortran!r}, 'shape': {shape!r}, }}", data, version)


def with_header(text: str, data: bytes = b"", version: int = 1) -> bytes:
    encoded = (text + "\n").encode("utf8" if version == 3 else "latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(encoded))
    return b"\x93NUMPY" + bytes([version, 0]) + size + encoded + data


def refusal(tmp_path: Path, data: bytes) -> TconvError:
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(TconvError) as caught:
        read(path, "x", ReadOptions())
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)
    return caught.value


class OneArray(Reading):
    suffix = ".npy"

    def reference(self, path: Path) -> Mapping[str, Array]:
        return {"x": load(path)}


class TestCOrder(OneArray, Writing):
    names: ClassVar[tuple[str, ...]] = ("x",)
    dtypes = NUMPY_DTYPES

    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, random_bits("float32", (3, 4, 5)))
        return path


class TestFortranOrder(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, np.asfortranarray(random_bits("float64", (3, 4, 5))))
        return path


class TestBigEndian(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, np.arange(-30, 30, dtype=">i2").reshape(5, 12))
        return path


class TestBigEndianFortranOrder(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, np.asfortranarray(random_bits("complex64", (2, 3, 2, 2)).astype(">c8")))
        return path


class TestBool(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, random_bits("bool", (40,)))
        return path


class TestScalar(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, np.array(-2.5, ">f8"))
        return path


class TestEmpty(OneArray):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npy"
        np.save(path, np.zeros((2, 0, 3), np.float16, order="F"))
        return path


@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_versions(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy("<i2", (2, 2), b"\1\0\2\0\3\0\xff\xff", version=version))
    assert read_array(path).tolist() == [[1, 2], [3, -1]]


def test_literal_bytes_of_a_big_endian_fortran_array(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(">u2", (2, 3), b"\0\1\0\4\0\2\0\5\0\3\1\0", fortran=True))
    assert read_array(path).tolist() == [[1, 2, 3], [4, 5, 256]]


@pytest.mark.parametrize("shape", ["(2L, 3L)", "(2, 3L)", "(2L, 3L,)"])
def test_long_integers_of_python_2(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(with_header(f"{{'descr': u'<u1', 'fortran_order': False, 'shape': {shape}, }}", b"abcdef"))
    assert read_array(path).tolist() == [[97, 98, 99], [100, 101, 102]]


@pytest.mark.parametrize("descr", ["u1", "|u1", "<u1", ">u1", "=u1"])
def test_byte_orders_of_a_single_byte(tmp_path: Path, descr: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(descr, (2,), b"\x80\7"))
    assert read_array(path).tolist() == [128, 7]


@pytest.mark.parametrize("descr", ["|b1", "?"])
def test_any_other_byte_of_a_bool_is_true_and_becomes_1(tmp_path: Path, descr: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(descr, (2, 2), b"\0\2\xff\1", fortran=True))
    assert read_array(path).tobytes() == b"\0\xff\2\1".replace(b"\xff", b"\1").replace(b"\2", b"\1")


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("bool", (0, 1)),
        ("uint8", (0, 255)),
        ("uint16", (0, 65535)),
        ("int8", None),
        ("uint32", None),
        ("float32", None),
    ],
)
def test_ranges_promised_by_the_dtype(tmp_path: Path, name: str, promised: tuple[float, float] | None) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(3, name))
    stream = read(path, "named", ReadOptions())
    (tensor,) = stream.tensors
    assert tensor.spec == Spec("named", dtype(name), (3,), axes=None, range=promised)
    assert stream.extra == Extra("data")
    assert stream.notes == ()


@given(
    hnp.arrays(
        st.sampled_from(["<f4", ">i8", "|u1", ">c16"]), hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
    ),
    st.booleans(),
    st.data(),
)
def test_a_range_of_any_array(tmp_path_factory: pytest.TempPathFactory, array: Array, fortran: bool, data: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "x.npy"
    np.save(path, np.asfortranarray(array) if fortran and array.ndim else array)
    (tensor,) = read(path, "x", ReadOptions()).tensors
    hi = data.draw(st.integers(0, array.size))
    lo = data.draw(st.integers(0, hi))
    assert same(tensor.source.read(lo, hi), array.reshape(-1)[lo:hi])


def test_a_part_of_a_large_fortran_array_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    array = np.asfortranarray(np.arange(8_000_000, dtype=np.int32).reshape(4000, 2000))
    np.save(path, array)
    (tensor,) = read(path, "x", ReadOptions()).tensors
    tracemalloc.start()
    got = tensor.source.read(4_000_123, 4_010_456)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (got == np.arange(4_000_123, 4_010_456)).all()
    assert peak < 10_000_000  # a window or two of the 32 MB


def array_of(*items: object) -> np.ndarray[Any, np.dtype[Any]]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


REFUSED: dict[str, tuple[Any, str]] = {
    "objects": (array_of(1.5, None), "dtype object.*would need pickle, which executes code"),
    "text": (np.array(["a", "bc"]), "array of text.*<U2"),
    "bytes": (np.array([b"a", b"bc"]), "array of text.*S2"),
    "datetime": (np.array(["2020-01-01"], "M8[ns]"), r"array of dates or times.*<M8\[ns\].*int64"),
    "timedelta": (np.array([5], "m8[s]"), r"array of dates or times.*<m8\[s\].*int64"),
    "void": (np.zeros(2, "V3"), "bytes of unknown meaning.*V3.*float32.*safetensors"),
    "fields": (np.zeros(2, [("x", "<f4"), ("höhe", "<i4", (2,)), ("整", "u1")]), "structured.* x, höhe, 整 "),
    "titles": (np.zeros(2, [(("long title", "x"), "<f4"), ("y", "<f4")]), "structured.* x, y "),
    "padding": (np.zeros(2, np.dtype([("a", "u1"), ("b", "<f8")], align=True)), "structured.* a, b "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_tensor_is_refused_by_name(tmp_path: Path, case: str) -> None:
    array, message = REFUSED[case]
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the version that names beyond latin-1 need
        np.save(buffer, array)
    problem = refusal(tmp_path, buffer.getvalue())
    with pytest.raises(TconvError, match=f"(?s){message}"):
        raise problem


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_what_numpy_saves_of_dtypes_that_it_lacks(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(4, DTYPES[name].numpy))
    assert "bytes of unknown meaning" in str(refusal(tmp_path, buffer.getvalue()))


@pytest.mark.parametrize("descr", ["<f16", "<c32", "<f12"])
def test_extended_precision_is_refused(tmp_path: Path, descr: str) -> None:
    assert f"dtype '{descr}', as float128" in str(refusal(tmp_path, npy(descr, (1,), bytes(32))))


HEADERS = {
    "not a dictionary": "[1, 2]",
    "a call": "{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os').getcwd()}",
    "a key less": "{'descr': '<f4', 'shape': (1,)}",
    "a key more": "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
    "a set": "{'descr', 'fortran_order', 'shape'}",
    "an unhashable key": "{[]: 1}",
    "order a number": "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
    "a list for a shape": "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
    "a float in the shape": "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}",
    "a bool in the shape": "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
    "a negative size": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}",
    "an overflow": "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
    "an empty array of huge sizes": "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
    "an integer beyond floats": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 4000},)}}",
    "an integer of many digits": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 9000},)}}",
    "too many axes": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1,' * 65})}}",
    "no dtype": "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
    "a dtype of numpy's, not of a file": "{'descr': 'bfloat16', 'fortran_order': False, 'shape': (1,)}",
    "several dtypes": "{'descr': 'f4,f4', 'fortran_order': False, 'shape': (1,)}",
    "a dtype with a shape": "{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,)}",
    "a dtype that is a number": "{'descr': 4, 'fortran_order': False, 'shape': (1,)}",
    "no fields": "{'descr': [], 'fortran_order': False, 'shape': (1,)}",
    "odd fields": "{'descr': [1, (), ((),), (b'x', 2)], 'fortran_order': False, 'shape': (1,)}",
    "parentheses": "(" * 5000,
    "minus signs": "-" * 9000 + "1",
    "nothing": "",
    "a NUL": "\0",
    "an open string": "{'descr': '<f4",
    "longer than numpy allows": "{" + " " * 20_000 + "}",
}


@pytest.mark.parametrize("case", HEADERS)
def test_broken_headers_are_refused(tmp_path: Path, case: str) -> None:
    assert len(str(refusal(tmp_path, with_header(HEADERS[case], bytes(64))))) < 500


def test_a_field_name_with_an_escape_sequence_is_shown_harmless(tmp_path: Path) -> None:
    problem = refusal(tmp_path, npy([("\x1b[31m\r\n", "<f4")], (1,), bytes(4)))
    assert str(problem).isprintable()


def test_other_versions_are_refused(tmp_path: Path) -> None:
    assert "version 4.0" in str(refusal(tmp_path, npy("<f4", (1,), bytes(4), version=4)))


def test_a_header_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    assert "not UTF-8" in str(refusal(tmp_path, b"\x93NUMPY\3\0\4\0\0\0\xff\xff\xff\xff"))


def test_a_header_length_beyond_the_file_is_not_allocated(tmp_path: Path) -> None:
    data = b"\x93NUMPY\2\0\xff\xff\xff\xff{}"
    assert "truncated: expected 4,294,967,307 bytes, found 14" in str(refusal(tmp_path, data))


def test_a_huge_header_is_refused(tmp_path: Path) -> None:
    data = with_header("{}" + " " * (1 << 21), version=2)
    assert "header of 2,097,155 bytes" in str(refusal(tmp_path, data))


def test_a_short_file_is_told_with_both_sizes(tmp_path: Path) -> None:
    data = npy("<f4", (1000, 1000), bytes(100))
    assert f"truncated: expected {len(data) - 100 + 4_000_000:,} bytes, found {len(data)}" in str(
        refusal(tmp_path, data)
    )


def test_a_second_array_in_the_file_is_not_dropped_in_silence(tmp_path: Path) -> None:
    one = npy("<f4", (2,), bytes(8))
    assert f"{len(one)} bytes too many" in str(refusal(tmp_path, one + one))


def test_text_that_is_no_npy(tmp_path: Path) -> None:
    assert "not an .npy file" in str(refusal(tmp_path, b"version https://git-lfs.github.com/spec/v1\n"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(TconvError, match="not a regular file"):
        read(tmp_path / "x.npy", "x", ReadOptions())


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_shrinks_after_its_header_was_read(tmp_path: Path, order: Any) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.ones((50, 20), order=order))
    (tensor,) = read(path, "x", ReadOptions()).tensors
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TconvError, match="changed while it was read"):
        tensor.source.read(0, 1000)


@pytest.mark.parametrize("name", sorted(NUMPY_DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (1,) * 32])
def test_writes_what_numpy_save_writes_byte_for_byte(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    array = random_bits(name, shape)
    writer = NpyWriter([Spec("x", dtype(name), shape)], Extra("data"))
    writer.open(tmp_path / "x.npy")
    writer.write(0, 0, array.reshape(-1))
    writer.commit()
    want = io.BytesIO()
    np.save(want, array)
    assert (tmp_path / "x.npy").read_bytes() == want.getvalue()


def test_what_was_written_can_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    writer = NpyWriter([Spec("x", dtype("float32"), (2, 3))], Extra("data"))
    writer.open(path)
    writer.write(0, 3, np.array([4, 5, 6], np.float32))
    writer.write(0, 0, np.array([1, 2, 3], np.float32))
    writer.commit()
    mapped = np.load(path, mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert mapped.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("count", [0, 2])
def test_holds_just_one_array(count: int) -> None:
    specs = [Spec(f"x{n}", dtype("float32"), ()) for n in range(count)]
    with pytest.raises(TconvError, match=f"one array, and there are {count}; .*safetensors"):
        NpyWriter(specs, Extra("data"))


def test_says_what_it_leaves_out() -> None:
    tree = {"model": {"w": Ref("model.w"), "epochs": 3}, "args": {"lr": 0.1}, "log": [1, 2]}
    writer = NpyWriter([Spec("model.w", dtype("int8"), ())], Extra("weights", tree, {"format": "pt"}))
    assert writer.left_out == ("model.epochs", "args", "log", "metadata 'format'")


FILES = [row for row in manifest() if row["path"].endswith(".npy")]


@pytest.mark.parametrize("row", FILES, ids=[row["path"] for row in FILES])
def test_real_files(row: dict[str, str]) -> None:
    path = shared(*row["path"].split("/"))
    try:
        want = load(path)
        known = want.dtype.name in NUMPY_DTYPES
    except ValueError:
        known = False
    if known:
        assert_same({"x": read_array(path)}, {"x": want})
        return
    with pytest.raises(TconvError, match=r"objects|structured|text|dates"):
        read(path, "x", ReadOptions())
