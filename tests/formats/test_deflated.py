"""Elements of deflated members: any part, in any order, from any thread, each byte decoded once if that is possible."""

from __future__ import annotations

import random
import threading
import tracemalloc
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.formats import deflated, inflate
from tconv.formats.deflated import Cursor, DeflatedSource
from tconv.formats.raw import opened
from tconv.formats.unzip import Entry, entries
from tconv.tensor import Sequential

if TYPE_CHECKING:
    from tconv.ops import Array


def member(folder: Path, data: bytes) -> tuple[Path, Entry]:
    """A zip archive of one deflated member between two others."""
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("before", b"before" * 10)
        made.writestr("x", data)
        made.writestr("after", b"after" * 10)
    with opened(path) as file:
        return path, entries(file)[1]


def source(folder: Path, values: Array, lead: bytes = b"", order: tuple[int, ...] | None = None) -> DeflatedSource:
    stored = values if order is None else values.transpose(order)
    cursor = Cursor(*member(folder, lead + np.ascontiguousarray(stored).tobytes() + b"more"))
    return DeflatedSource(dtype(values.dtype.name), values.shape, cursor, len(lead), order=order)


class Decoded:
    """Counts the bytes that are decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        readinto = inflate.Inflated.readinto

        def counting(content: inflate.Inflated, buffer: Any) -> int:
            count = readinto(content, buffer)
            self.bytes += count
            return count

        monkeypatch.setattr(inflate.Inflated, "readinto", counting)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    return Decoded(monkeypatch)


VALUES = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8).view(np.int16)


@given(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12))
def test_any_parts_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, size: int, parts: list[tuple[int, int]]
) -> None:
    values = np.arange(size, dtype=np.int16)
    got = source(tmp_path_factory.mktemp("deflated"), values, b"header")
    for bounds in parts:
        lo, hi = sorted(min(b, size) for b in bounds)
        assert got.read(lo, hi).tolist() == values[lo:hi].tolist()


def test_parts_in_order_are_decoded_once(tmp_path: Path, decoded: Decoded) -> None:
    got = source(tmp_path, VALUES, b"header")
    for _ in range(2):  # a second pass begins again
        decoded.bytes = 0
        for lo in range(0, VALUES.size, 777):
            hi = min(lo + 777, VALUES.size)
            assert got.read(lo, hi).tolist() == VALUES[lo:hi].tolist()
        assert decoded.bytes == len(b"header") + VALUES.nbytes


@pytest.mark.parametrize("reach", [2, 8])
def test_parts_out_of_order_are_decoded_once_if_no_more_than_a_few_are_under_way(
    tmp_path: Path, decoded: Decoded, reach: int
) -> None:
    """As threads ask for them that are handed pieces in order."""
    got = source(tmp_path, VALUES)
    chosen = random.Random(0)
    waiting, given = list[int](), iter(range(0, VALUES.size, 500))
    while True:
        while len(waiting) < reach and (lo := next(given, None)) is not None:
            waiting.append(lo)
        if not waiting:
            break
        lo = waiting.pop(chosen.randrange(len(waiting)))
        assert got.read(lo, lo + 500).tolist() == VALUES[lo : lo + 500].tolist()
    assert decoded.bytes == VALUES.nbytes
    assert got.cursor._kept == []


def test_a_part_that_nobody_asks_for_holds_up_nobody(tmp_path: Path) -> None:
    got = source(tmp_path, VALUES)
    assert got.read(0, 10).tolist() == VALUES[:10].tolist()
    assert got.read(20, 30).tolist() == VALUES[20:30].tolist()  # nobody took 10 to 20
    assert got.read(0, 30).tolist() == VALUES[:30].tolist()
    assert got.read(5, 15).tolist() == VALUES[5:15].tolist()


def test_threads_that_read_different_parts(tmp_path: Path) -> None:
    got = source(tmp_path, VALUES)
    wrong = list[int]()

    def work(first: int) -> None:
        for lo in range(first * 100, VALUES.size, 400):
            if got.read(lo, lo + 100).tolist() != VALUES[lo : lo + 100].tolist():
                wrong.append(lo)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_kept_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deflated, "MAX_KEPT", 1000)
    got = source(tmp_path, VALUES)
    for lo in (40_000, 100, 49_000, 30_000):
        assert got.read(lo, lo + 300).tolist() == VALUES[lo : lo + 300].tolist()
        assert sum(kept.size for _, kept in got.cursor._kept) <= 1000


def test_two_tensors_of_one_storage_are_decoded_once(tmp_path: Path, decoded: Decoded) -> None:
    cursor = Cursor(*member(tmp_path, VALUES.tobytes()))
    one, two = (DeflatedSource(dtype("int16"), (25_000,), cursor, offset) for offset in (0, 50_000))
    assert one.read(0, 25_000).tolist() == VALUES[:25_000].tolist()
    assert two.read(0, 25_000).tolist() == VALUES[25_000:].tolist()
    assert decoded.bytes == VALUES.nbytes
    assert cursor._kept == []


def test_a_broken_part_breaks_what_comes_after_and_nothing_before(tmp_path: Path) -> None:
    path, entry = member(tmp_path, VALUES.tobytes())
    data = bytearray(path.read_bytes())
    data[entry.start + entry.compressed - 100] ^= 0xFF
    path.write_bytes(bytes(data))
    got = DeflatedSource(dtype("int16"), VALUES.shape, Cursor(path, entry), 0)
    for _ in range(3):
        assert got.read(0, 1000).tolist() == VALUES[:1000].tolist()
        with pytest.raises(TconvError, match=r"compressed bytes are broken|bad CRC-32|truncated") as caught:
            got.read(1000, VALUES.size)
        assert caught.value.file == str(path)


def test_a_wrong_checksum_is_told_with_the_last_byte(tmp_path: Path) -> None:
    path, entry = member(tmp_path, VALUES.tobytes())
    wrong = Entry(entry.name, entry.start, entry.size, entry.compressed, entry.crc ^ 1, entry.method, False)
    got = DeflatedSource(dtype("int16"), VALUES.shape, Cursor(path, wrong), 0)
    got.read(0, VALUES.size - 1)
    with pytest.raises(TconvError, match=r"bad CRC-32"):
        got.read(VALUES.size - 1, VALUES.size)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_other_orders_of_axes(tmp_path: Path, order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    got = source(tmp_path, values, b"header", order)
    assert not got.seekable
    for chunk in (1 << 20, 28, 1):
        monkeypatch.setattr(deflated, "CHUNK", chunk)
        assert got.read(0, 120).tolist() == values.reshape(-1).tolist()
        assert got.read(7, 90).tolist() == values.reshape(-1)[7:90].tolist()


def test_other_orders_of_axes_take_the_memory_of_the_result_only(tmp_path: Path) -> None:
    values = np.zeros((1000, 2000), np.float64)
    got = source(tmp_path, values, order=(1, 0))
    out = np.empty(values.size, np.float64)
    tracemalloc.start()
    got.read(0, values.size, out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20  # bytes, of 16 MB


def test_it_says_that_it_decodes_from_the_beginning_on(tmp_path: Path) -> None:
    assert isinstance(source(tmp_path, VALUES), Sequential)
