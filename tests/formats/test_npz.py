"""NumPy's .npz against numpy.load, numpy.savez and zipfile."""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats.npz import NpzWriter, read
from tconv.tensor import Extra, Ref, Spec, Stream
from tconv.writer import ReadOptions
from tests.formats.conformance import Reading, Writing, all_values, assert_same, random_bits, specs_of, values
from tests.formats.test_npy import NUMPY_DTYPES
from tests.shared_data import manifest, shared

if TYPE_CHECKING:
    from tconv.ops import Array


def load(path: Path) -> dict[str, Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)


def read_npz(path: Path) -> Stream:
    return read(path, "x", ReadOptions())


def npy_bytes(array: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array))
    return buffer.getvalue()


def archive(path: Path, members: Sequence[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as made:
        warnings.simplefilter("ignore")  # of two members of one name
        for name, data in members:
            made.writestr(name, data)
    return path


def refusal(path: Path) -> TconvError:
    with pytest.raises(TconvError) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)
    return caught.value


def arrays() -> dict[str, Any]:
    return {
        "c order": random_bits("float32", (3, 4)),
        "fortran": np.asfortranarray(random_bits("int16", (3, 4, 2))),
        "big/endian": np.arange(5.0).astype(">f8"),
        "big fortran": np.asfortranarray(np.arange(6).reshape(2, 3).astype(">u4")),
        "höhe": random_bits("bool", (7,)),
        "scalar": np.array(3 + 4j, np.complex64),
        "empty": np.zeros((0, 3), np.float16),
    }


class Archive(Reading):
    suffix = ".npz"

    def reference(self, path: Path) -> Mapping[str, Array]:
        return load(path)


class TestStored(Archive, Writing):
    dtypes = NUMPY_DTYPES
    names: ClassVar[tuple[str, ...]] = ("w", "layer.0/b", "höhe 整", "", "../up", "/abs", "file", "x.npy.npz")

    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npz"
        np.savez(path, **arrays())
        return path


class TestDeflated(Archive):
    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npz"
        np.savez_compressed(path, **arrays())
        return path


class TestWrittenByTconv(Archive):
    """What the writer makes is as hard to damage unnoticed as what NumPy makes."""

    def sample(self, folder: Path) -> Path:
        path = folder / "sample.npz"
        made = arrays()
        writer = NpzWriter(specs_of(made), Extra("data"))
        writer.open(path)
        for i, array in enumerate(made.values()):
            writer.write(i, 0, np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).reshape(-1))
        writer.commit()
        return path


def test_a_flipped_bit_in_a_value_is_noticed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros((10, 100)), f=np.zeros((10, 100), order="F"))
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    data[9500] ^= 1
    path.write_bytes(bytes(data))
    c_order, fortran = (t.source for t in read_npz(path).tensors)
    assert (c_order.read(0, 50) == 0).all()
    with pytest.raises(TconvError, match=r"not those that were written \(bad CRC-32\)"):
        c_order.read(50, 1000)
    with pytest.raises(TconvError, match=r"bad CRC-32"):
        c_order.read(0, 50)
    with pytest.raises(TconvError, match=r"bad CRC-32"):
        fortran.read(0, 1)


def test_pieces_read_by_threads_are_checked_together(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(10_000))
    data = bytearray(path.read_bytes())
    data[40_000] ^= 1
    path.write_bytes(bytes(data))
    source = read_npz(path).tensors[0].source
    problems = list[TconvError]()

    def work(first: int) -> None:
        try:
            for lo in range(first * 100, 10_000, 400):
                source.read(lo, lo + 100)
        except TconvError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems
    assert all("bad CRC-32" in str(problem) for problem in problems)


def test_arrays_are_data_with_the_ranges_of_their_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, image=np.zeros((2, 2), np.uint8), x=np.zeros(1))
    stream = read_npz(path)
    assert stream.extra == Extra("data")
    assert [t.spec.range for t in stream.tensors] == [(0, 255), None]
    assert [t.spec.axes for t in stream.tensors] == [None, None]
    assert stream.notes == ()


def test_an_archive_of_nothing(tmp_path: Path) -> None:
    assert read_npz(archive(tmp_path / "x.npz", [])).tensors == ()
    writer = NpzWriter([], Extra("data"))
    writer.open(tmp_path / "y.npz")
    writer.commit()
    assert load(tmp_path / "y.npz") == {}


def test_other_members_are_noted_as_ignored(tmp_path: Path) -> None:
    members = [("a.npy", npy_bytes([1, 2])), ("readme.txt", b"hello"), ("dir/", b""), ("b", npy_bytes(3)), ("c", b"")]
    path = archive(tmp_path / "x.npz", members, zipfile.ZIP_DEFLATED)
    stream = read_npz(path)
    assert {name: array.tolist() for name, array in all_values(stream).items()} == {"a": [1, 2], "b": 3}
    assert stream.notes == (f"{path}: ignored readme.txt, dir/, c, which hold no array",)


def test_bytes_after_the_archive_are_told_and_ignored(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes([1, 2]))])
    path.write_bytes(path.read_bytes() + b"garbage" * 200)
    stream = read_npz(path)
    assert values(stream.tensors[0]).tolist() == [1, 2]
    assert stream.notes == (f"{path}: the 1,400 bytes after the end of the archive are ignored",)


def test_a_cut_off_archive_is_said_to_be_truncated(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes(np.zeros(100)))])
    path.write_bytes(path.read_bytes()[:500])
    assert refusal(path).reason == "truncated: the directory at the end of its zip archive is missing"


def test_a_member_called_npy_that_is_none_is_refused(tmp_path: Path) -> None:
    problem = refusal(archive(tmp_path / "x.npz", [("a.npy", b"hello, world")]))
    assert problem.tensor == "a"
    assert "not an .npy file" in problem.reason


@pytest.mark.parametrize("names", [("a.npy", "a.npy"), ("a", "a.npy")])
def test_two_members_of_one_name_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    problem = refusal(archive(tmp_path / "x.npz", [(name, npy_bytes(n)) for n, name in enumerate(names)]))
    assert problem.tensor == "a"
    assert "two members have this name" in problem.reason


def test_every_member_that_is_no_tensor_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    objects = np.array([None, 1.5], dtype=object)
    np.savez(path, good=np.zeros(3), bad=objects, text=np.array(["a"]))
    found = read_npz(path)
    assert [t.spec.name for t in found.tensors] == ["good"]
    bad, text = map(str, found.others)
    assert bad.startswith(f"{path}: bad: the array holds Python objects (dtype object)")
    assert text.startswith(f"{path}: text: an array of text (dtype '<U1')")


def test_names_are_just_names(tmp_path: Path) -> None:
    names = ["../../etc/passwd", "/abs", "a\\b", "C:x", "-o", "*"]
    path = archive(tmp_path / "x.npz", [(f"{n}.npy", npy_bytes(i)) for i, n in enumerate(names)])
    assert [t.spec.name for t in read_npz(path).tensors] == names


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes(1))])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(bytes(data))
    assert "encrypted" in refusal(path).reason


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path: Path, method: int) -> None:
    path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes(1))], method)
    assert f"compressed by method {method}" in refusal(path).reason


def test_a_bomb_of_overlapping_members_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes(1)), ("b.npy", npy_bytes(2))])
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\1\2")
    struct.pack_into("<I", data, second + 42, 0)  # its local header is said to be that of the first
    path.write_bytes(bytes(data))
    with pytest.raises(TconvError):
        read_npz(path)


@pytest.mark.parametrize("field", [20, 24])  # the compressed and the plain size in the directory
def test_sizes_that_cannot_be_are_refused_before_anything_is_allocated(tmp_path: Path, field: int) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = archive(tmp_path / "x.npz", [("a.npy", npy_bytes(np.zeros(1000)))], method)
        data = bytearray(path.read_bytes())
        struct.pack_into("<I", data, data.index(b"PK\1\2") + field, 0xFFFFFFF0)
        path.write_bytes(bytes(data))
        reason = refusal(path).reason
        assert "cannot come out of" in reason or "ends beyond the end of the file" in reason


def test_a_header_that_promises_more_than_its_member_is_refused(tmp_path: Path) -> None:
    data = npy_bytes(np.zeros(10)).replace(b"(10,)", b"(99,)")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = refusal(archive(tmp_path / "x.npz", [("a.npy", data)], method))
        assert problem.reason == "truncated: expected 920 bytes, found 208"
        assert problem.tensor == "a"


def test_a_deflate_stream_that_ends_early_or_goes_on_is_refused(tmp_path: Path) -> None:
    whole = npy_bytes(np.arange(100))
    for shown in (whole + b"more", whole[:-8]):
        path = archive(tmp_path / "x.npz", [("a.npy", shown)], zipfile.ZIP_DEFLATED)
        data = bytearray(path.read_bytes())
        at = data.index(b"PK\1\2")
        struct.pack_into("<I", data, at + 16, zlib.crc32(whole))
        struct.pack_into("<I", data, at + 24, len(whole))
        path.write_bytes(bytes(data))
        with pytest.raises(TconvError):
            values(read_npz(path).tensors[0])


def test_numpy_and_zipfile_find_nothing_wrong_with_what_is_written(tmp_path: Path) -> None:
    made = {f"{n}/höhe": random_bits("float64", (n, 5), n) for n in range(20)}
    writer = NpzWriter(specs_of(made), Extra("data"))
    writer.open(tmp_path / "x.npz")
    for i, array in enumerate(made.values()):
        writer.write(i, 0, array.reshape(-1))
    writer.commit()
    with zipfile.ZipFile(tmp_path / "x.npz") as found:
        assert found.testzip() is None
        assert found.namelist() == [f"{name}.npy" for name in made]
        assert {info.date_time for info in found.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert_same(load(tmp_path / "x.npz"), made)


def test_what_is_written_can_be_mapped_aligned(tmp_path: Path) -> None:
    names = ["a" * n for n in range(1, 70)]
    writer = NpzWriter([Spec(name, dtype("float64"), (3,)) for name in names], Extra("data"))
    writer.open(tmp_path / "x.npz")
    for i in range(len(names)):
        writer.write(i, 0, np.full(3, i, np.float64))
    writer.commit()
    for i, offset in enumerate(writer.offsets):
        assert offset % 64 == 0
        assert np.memmap(tmp_path / "x.npz", "<f8", "r", offset, (3,)).tolist() == [i, i, i]


def test_a_tensor_that_was_not_written_whole_is_no_archive(tmp_path: Path) -> None:
    writer = NpzWriter([Spec("a", dtype("float64"), (3,))], Extra("data"))
    writer.open(tmp_path / "x.npz")
    writer.write(0, 1, np.zeros(2))
    with pytest.raises(AssertionError, match="not written whole"):
        writer.commit()
    writer.abort()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["x", "x.npy"], "cannot hold it beside 'x.npy'"),
        (["x", "x"], "two tensors of this name"),
        (["a\0b"], "NUL"),
        (["\ud800"], "not valid Unicode"),
        (["x" * 65_532], "longer than 65,531 bytes"),
    ],
)
def test_names_that_an_npz_cannot_hold(names: list[str], reason: str) -> None:
    with pytest.raises(TconvError, match=reason):
        NpzWriter([Spec(name, dtype("int8"), ()) for name in names], Extra("data"))


def test_the_longest_name(tmp_path: Path) -> None:
    name = "x" * 65_531
    writer = NpzWriter([Spec(name, dtype("int8"), ())], Extra("data"))
    writer.open(tmp_path / "x.npz")
    writer.write(0, 0, np.array([7], np.int8))
    writer.commit()
    assert load(tmp_path / "x.npz")[name] == 7


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30), unique=True))
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    kept = [name for name in names if name + ".npy" not in names]
    path = tmp_path_factory.mktemp("names") / "x.npz"
    writer = NpzWriter([Spec(name, dtype("int64"), ()) for name in kept], Extra("data"))
    writer.open(path)
    for i in range(len(kept)):
        writer.write(i, 0, np.array([i]))
    writer.commit()
    want = {name: np.array(i) for i, name in enumerate(kept)}
    assert_same(load(path), want)
    assert_same(all_values(read_npz(path)), want)


def test_a_refusal_names_the_tensor_and_the_ways_out() -> None:
    specs = [Spec("w", dtype("bfloat16"), (6,)), Spec("b", dtype("float32"), (2,))]
    with pytest.raises(TconvError) as caught:
        NpzWriter(specs, Extra("weights"))
    assert str(caught.value) == (
        "w: .npz cannot name the dtype bfloat16; --to float32 converts bfloat16 exactly, or write .safetensors"
    )


def test_several_refusals_come_at_once() -> None:
    specs = [Spec(name, dtype(name), (6,)) for name in ("bfloat16", "float32", "int4", "float8_e5m2")]
    with pytest.raises(TconvError) as caught:
        NpzWriter(specs, Extra("weights"))
    message = str(caught.value)
    assert all(f"{name}: .npz cannot name" in message for name in ("bfloat16", "int4", "float8_e5m2"))
    assert "--to float32" in message
    assert "--to int8" in message


def test_says_what_it_leaves_out() -> None:
    extra = Extra("weights", {"w": Ref("w"), "epoch": 3}, {"format": "pt"})
    assert NpzWriter([Spec("w", dtype("int8"), ())], extra).left_out == ("epoch", "metadata 'format'")


@pytest.mark.slow
def test_an_array_larger_than_4_gigabytes(tmp_path: Path) -> None:
    """Sparse where the disk allows, so that it takes little room; the fields of 64 bits are needed three ways."""
    size = (1 << 32) // 8 + 10
    specs = [Spec("large", dtype("int64"), (size,)), Spec("after", dtype("int64"), (3,))]
    writer = NpzWriter(specs, Extra("data"))
    path = tmp_path / "x.npz"
    writer.open(path)
    zeros = np.zeros(1 << 20, np.int64)
    for lo in range(0, size, zeros.size):
        writer._checksums[0].add(len(writer._headers[0]) + lo * 8, zeros[: min(zeros.size, size - lo)].view("u1").data)
    writer.write(1, 0, np.array([1, 2, 3]))
    writer.commit()
    with zipfile.ZipFile(path) as found:
        assert [info.file_size for info in found.infolist()] == [size * 8 + 128, 3 * 8 + 128]
        assert found.infolist()[1].header_offset > 1 << 32
        assert found.read("after.npy") == npy_bytes(np.array([1, 2, 3]))
    assert load_one(path, "after").tolist() == [1, 2, 3]
    large, after = read_npz(path).tensors
    assert large.source.read(size - 5, size).tolist() == [0] * 5
    assert values(after).tolist() == [1, 2, 3]


def load_one(path: Path, name: str) -> Array:
    with np.load(path) as found:
        array: Array = found[name]
    return array


FILES = [row for row in manifest() if row["path"].endswith(".npz")]


@pytest.mark.parametrize("row", FILES, ids=[row["path"] for row in FILES])
def test_real_files(row: dict[str, str]) -> None:
    path = shared(*row["path"].split("/"))
    try:
        want = load(path)
        known = all(array.dtype.name in NUMPY_DTYPES for array in want.values())
    except ValueError:
        known = False
    if known:
        assert_same(all_values(read_npz(path)), want)
        return
    with pytest.raises(TconvError, match=r"holds Python objects|an array of text|structured"):
        all_values(read_npz(path))
