"""What every format must do: test classes inherit ``Reading`` and ``Writing`` and say how files are made.

    class TestNpy(Reading, Writing):
        suffix = ".npy"
        ...

Expected values come from the format's own library, through the hooks ``sample`` and ``reference``.
"""

from __future__ import annotations

import os
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from tconv import registry
from tconv.dtypes import DTYPES, from_numpy
from tconv.errors import TconvError, raise_all
from tconv.tensor import Extra, Spec, Stream, Tensor
from tconv.writer import ReadOptions, Writer

if TYPE_CHECKING:
    from tconv.ops import Array

    Arrays = Mapping[str, Array]

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (0, 3), (1,), (2, 3), (3, 1, 5))
FLIPS = 300  # damaged files a format is tried on


def random_bits(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values of any bit pattern: NaNs with payloads, infinities and subnormal numbers among them."""
    np_dtype = DTYPES[dtype].numpy
    count = int(np.prod(shape))
    bits = np.random.default_rng(seed).integers(0, 256, count * np_dtype.itemsize, np.uint8)
    used = {"bool": 1, "int4": 15, "uint4": 15, "float4_e2m1fn": 15}.get(dtype, 255)
    return (bits & used).view(np_dtype).reshape(shape)


def values(tensor: Tensor) -> Array:
    """All of a tensor that nothing is to be done to, read at once."""
    assert tensor.ops == ()
    return tensor.source.read(0, tensor.spec.size).reshape(tensor.spec.shape)


def all_values(stream: Stream) -> dict[str, Array]:
    """What a conversion would read; it refuses what is no tensor."""
    raise_all(stream.others)
    return {tensor.spec.name: values(tensor) for tensor in stream.tensors}


def same(got: Array, want: Array) -> bool:
    """Equal dtype, shape and bits; any non-zero byte of a bool is True."""
    if got.shape != want.shape or from_numpy(got.dtype) is not from_numpy(want.dtype):
        return False
    if want.dtype == np.bool_:
        want = want.astype(np.uint8) != 0
    native = want.astype(want.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(native).tobytes()


def same_arrays(got: Arrays, want: Arrays) -> bool:
    return sorted(got) == sorted(want) and all(same(got[name], want[name]) for name in want)


def assert_same(got: Arrays, want: Arrays) -> None:
    assert sorted(got) == sorted(want)
    for name in want:
        assert same(got[name], want[name]), f"{name}: got {got[name]!r}, want {want[name]!r}"


class Format(ABC):
    """What reading and writing have in common."""

    suffix: ClassVar[str]

    @abstractmethod
    def reference(self, path: Path) -> Arrays:
        """What the format's own library makes of a file; raises whatever it raises on a broken one."""

    def read(self, path: Path) -> Stream:
        row = registry.by_suffix(Path(f"x{self.suffix}"))
        assert row is not None
        return registry.reader(row)(path, "x", ReadOptions())


class Reading(Format):
    """Reading: lazily, any part of it, from any thread, and never anything but the truth or a ``TconvError``.

    What a damaged file says, where no checksum tells that it is damaged, is what the reference makes of it.
    """

    @abstractmethod
    def sample(self, folder: Path) -> Path:
        """A small file of several kinds of tensors, made in ``folder`` by the format's own library."""

    def damaged(self, data: bytes) -> Sequence[int]:
        """Which bytes are flipped; all parts of the file alike unless a format knows better."""
        chosen = random.Random(len(data))
        return [chosen.randrange(len(data)) for _ in range(FLIPS)]

    @pytest.mark.parametrize("how", ["replaced", "written to", "cut off"])
    def test_a_file_that_changes_after_its_header_was_read(self, how: str, tmp_path: Path) -> None:
        stream = self.read(self.sample(tmp_path))
        for path in {tensor.source.path for tensor in stream.tensors}:
            before, data = path.stat(), path.read_bytes()
            if how == "replaced":
                path.rename(tmp_path / "old")  # whose inode is not given to another file
                path.write_bytes(data)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            elif how == "written to":
                path.write_bytes(data)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
            else:
                os.truncate(path, len(data) - 1)
        for tensor in stream.tensors:
            if tensor.spec.size:
                with pytest.raises(TconvError, match="changed while it was read"):
                    tensor.source.read(0, tensor.spec.size)

    def test_specs_say_what_the_values_are(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        want = self.reference(path)
        stream = self.read(path)
        assert sorted(t.spec.name for t in stream.tensors) == sorted(want)
        for tensor in stream.tensors:
            array = want[tensor.spec.name]
            assert tensor.spec.dtype is from_numpy(array.dtype)
            assert tensor.spec.shape == tensor.source.shape == array.shape
            assert tensor.spec.size == array.size
            assert tensor.spec.nbytes == array.nbytes
            assert tensor.source.dtype is tensor.spec.dtype
            assert tensor.source.path == path

    def test_values_are_those_of_the_reference(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        assert_same(all_values(self.read(path)), self.reference(path))

    def test_reading_again_gives_the_same(self, tmp_path: Path) -> None:
        stream = self.read(self.sample(tmp_path))
        assert_same(all_values(stream), all_values(stream))

    def test_values_are_native_and_flat(self, tmp_path: Path) -> None:
        for tensor in self.read(self.sample(tmp_path)).tensors:
            got = tensor.source.read(0, tensor.spec.size)
            assert got.shape == (tensor.spec.size,)
            assert got.dtype == tensor.spec.dtype.numpy

    def test_any_range_is_the_slice_of_the_whole(self, tmp_path: Path) -> None:
        chosen = random.Random(1)
        for tensor in self.read(self.sample(tmp_path)).tensors:
            size, whole = tensor.spec.size, values(tensor).reshape(-1)
            for _ in range(30):
                lo, hi = sorted((chosen.randint(0, size), chosen.randint(0, size)))
                assert same(tensor.source.read(lo, hi), whole[lo:hi])
                out = np.zeros(hi - lo, tensor.spec.dtype.numpy)
                assert tensor.source.read(lo, hi, out) is out
                assert same(out, whole[lo:hi])

    def test_threads_read_the_same(self, tmp_path: Path) -> None:
        stream = self.read(self.sample(tmp_path))
        want = self.reference(stream.tensors[0].source.path)
        with ThreadPoolExecutor(4) as pool:
            for got in pool.map(lambda _: all_values(stream), range(8)):
                assert_same(got, want)

    def test_the_input_stays_as_it_was(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        path.chmod(0o444)
        before = path.read_bytes(), path.stat().st_mtime_ns
        for array in all_values(self.read(path)).values():
            if array.flags.writeable:
                array.fill(0)
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before

    def test_a_file_cut_anywhere_is_refused(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        data, want = path.read_bytes(), self.reference(path)
        for size in range(len(data)):
            got = self.outcome(self.written(tmp_path, data[:size]))
            assert got is None or same_arrays(got, want), f"cut to {size} of {len(data)} bytes"

    def test_bytes_too_many_are_refused_or_mean_nothing(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        data, want = path.read_bytes(), self.reference(path)
        for more in (b"\0", b"\n", b"garbage" * 100, data):
            got = self.outcome(self.written(tmp_path, data + more))
            assert got is None or same_arrays(got, want), f"{more[:10]!r} appended"

    def test_a_flipped_bit_never_passes_for_the_truth(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        data, whole = path.read_bytes(), self.reference(path)
        chosen = random.Random(2)
        for at in self.damaged(data):
            flipped = bytearray(data)
            flipped[at] ^= 1 << chosen.randrange(8)
            path = self.written(tmp_path, bytes(flipped))
            got = self.outcome(path)
            assert got is None or same_arrays(got, self.reference_or(path, whole)), f"byte {at} is {flipped[at]}"

    def test_random_bytes_are_refused(self, tmp_path: Path) -> None:
        chosen = random.Random(3)
        start = self.sample(tmp_path).read_bytes()[:16]
        for size in (1, 2, 7, 8, 9, 30, 100, 1000):
            for data in (chosen.randbytes(size), start[:size] + chosen.randbytes(size), bytes(size), b"\xff" * size):
                path = self.written(tmp_path, data)
                got = self.outcome(path)
                assert got is None or same_arrays(got, self.reference(path)), f"made of {data!r}"

    def test_an_empty_file_is_called_empty(self, tmp_path: Path) -> None:
        path = self.written(tmp_path, b"")
        with pytest.raises(TconvError, match=r"the file is empty \(0 bytes\)") as caught:
            self.read(path)
        assert caught.value.file == str(path)

    def test_what_is_no_file_is_refused_by_name(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "missing"):
            with pytest.raises(TconvError) as caught:
                self.read(path)
            assert caught.value.file == str(path)

    def test_a_file_that_vanishes_before_it_is_read(self, tmp_path: Path) -> None:
        path = self.sample(tmp_path)
        stream = self.read(path)
        path.unlink()
        for tensor in stream.tensors:
            if tensor.spec.size:
                with pytest.raises(TconvError) as caught:
                    tensor.source.read(0, tensor.spec.size)
                assert caught.value.file == str(path)

    def written(self, folder: Path, data: bytes) -> Path:
        path = folder / f"broken{self.suffix}"
        path.write_bytes(data)
        return path

    def outcome(self, path: Path) -> Arrays | None:
        """The values, or None for a ``TconvError``, which must name the file."""
        try:
            return all_values(self.read(path))
        except TconvError as problem:
            message = str(problem)
        assert str(path) in message
        return None

    def reference_or(self, path: Path, otherwise: Arrays) -> Arrays:
        """The reference's values; where it is stricter and refuses the file, what was in it before."""
        try:
            return self.reference(path)
        except Exception:  # whatever it stumbles over
            return otherwise


class Writing(Format):
    """Writing: exact, positional, from any thread in any order, into a file that must not be there before."""

    dtypes: ClassVar[frozenset[str]]
    names: ClassVar[tuple[str, ...]] = ("w", "layer.0/b", "höhe 整")

    def writer(self, specs: Sequence[Spec], extra: Extra | None = None) -> Writer:
        return registry.writer(registry.by_name(self.suffix))(specs, extra or Extra("data"))

    def write(self, path: Path, arrays: Arrays, extra: Extra | None = None) -> Path:
        """The arrays written whole, one after the other."""
        writer = self.writer(specs_of(arrays), extra)
        writer.open(path)
        for i, array in enumerate(arrays.values()):
            writer.write(i, 0, array.reshape(-1))
        writer.commit()
        assert path.stat().st_size == writer.size
        return path

    def examples(self) -> Arrays:
        """Arrays of as many dtypes as the file can hold."""
        if len(self.names) == 1:
            return {self.names[0]: random_bits("float32", (5, 7))}
        made = {name: random_bits("float32", (5, 7), n) for n, name in enumerate(self.names)}
        for n, dtype in enumerate(sorted(self.dtypes)):
            made[f"{dtype}.x"] = random_bits(dtype, (3, n + 1), n)
        return made

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    @pytest.mark.parametrize("dtype", list(DTYPES))
    def test_a_dtype_is_kept_bit_for_bit_or_refused_by_name(
        self, tmp_path: Path, dtype: str, shape: tuple[int, ...]
    ) -> None:
        if dtype not in self.dtypes:
            spec = Spec(self.names[0], DTYPES[dtype], shape)
            with pytest.raises(TconvError, match=dtype) as caught:
                self.writer([spec])
            assert caught.value.tensor == spec.name
            assert "--to" in caught.value.remedy
            return
        arrays = {name: random_bits(dtype, shape, n) for n, name in enumerate(self.names)}
        path = self.write(tmp_path / f"x{self.suffix}", arrays)
        assert_same(self.reference(path), arrays)
        assert_same(all_values(self.read(path)), arrays)

    def test_pieces_in_any_order_give_the_same_file(self, tmp_path: Path) -> None:
        arrays = self.examples()
        want = self.write(tmp_path / f"whole{self.suffix}", arrays).read_bytes()
        for seed in range(5):
            path = tmp_path / f"{seed}{self.suffix}"
            writer = self.writer(specs_of(arrays))
            writer.open(path)
            pieces = cut(arrays, seed)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda piece: writer.write(*piece), pieces))  # noqa: B023  # used within the turn
            writer.commit()
            assert path.read_bytes() == want

    def test_nothing_is_there_before_open(self, tmp_path: Path) -> None:
        self.writer(specs_of(self.examples()))
        assert list(tmp_path.iterdir()) == []

    def test_an_existing_file_is_never_opened(self, tmp_path: Path) -> None:
        path = tmp_path / f"x{self.suffix}"
        path.write_bytes(b"precious")
        with pytest.raises(FileExistsError):
            self.writer(specs_of(self.examples())).open(path)
        assert path.read_bytes() == b"precious"

    def test_abort_at_any_time_lets_go_of_the_file(self, tmp_path: Path) -> None:
        arrays = self.examples()
        before = open_files()
        for n, stop in enumerate(("planned", "opened", "half written", "committed")):
            writer = self.writer(specs_of(arrays))
            if stop != "planned":
                writer.open(tmp_path / f"{n}{self.suffix}")
            if stop in ("half written", "committed"):
                for i, array in enumerate(arrays.values()):
                    if i == 0 or stop == "committed":
                        writer.write(i, 0, array.reshape(-1))
            if stop == "committed":
                writer.commit()
            writer.abort()
            writer.abort()
        assert open_files() == before

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
    def test_the_umask_gives_the_mode(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            path = self.write(tmp_path / f"x{self.suffix}", self.examples())
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o640

    def test_the_same_content_gives_the_same_file(self, tmp_path: Path) -> None:
        one, two = (self.write(tmp_path / f"{n}{self.suffix}", self.examples()) for n in range(2))
        assert one.read_bytes() == two.read_bytes()


def specs_of(arrays: Arrays) -> list[Spec]:
    specs = []
    for name, array in arrays.items():
        dtype = from_numpy(array.dtype)
        assert dtype is not None
        specs.append(Spec(name, dtype, array.shape))
    return specs


def cut(arrays: Arrays, seed: int) -> list[tuple[int, int, Array]]:
    """The arguments of ``Writer.write`` for pieces of a few elements, shuffled."""
    chosen, pieces = random.Random(seed), list[tuple[int, int, "Array"]]()
    for i, array in enumerate(arrays.values()):
        flat, lo = array.reshape(-1), 0
        while lo < flat.size:
            hi = min(flat.size, lo + chosen.randint(1, 7))
            pieces.append((i, lo, flat[lo:hi]))
            lo = hi
    chosen.shuffle(pieces)
    return pieces


def open_files() -> int:
    """How many files this process has open, where the system tells; 0 elsewhere."""
    with suppress(OSError):
        return len(list(Path("/proc/self/fd").iterdir()))
    return 0
