"""Going through values: every one once, in pieces, with what cannot be read told."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv import evaluate
from tconv.errors import TconvError
from tconv.scan import scan
from tests.memory import ArraySource, tensor

if TYPE_CHECKING:
    from tconv.ops import Array
    from tconv.tensor import Tensor


@pytest.mark.parametrize("seekable", [True, False])
def test_every_value_is_seen_once_with_its_place(monkeypatch: pytest.MonkeyPatch, seekable: bool) -> None:
    monkeypatch.setattr(evaluate, "PIECE", 7)
    arrays: list[Array] = [np.arange(100.0).reshape(4, 25), np.arange(3, dtype=np.uint8), np.zeros((2, 0)), np.array(5)]
    tensors = [replace(tensor(x), source=ArraySource(x, seekable=seekable)) for x in arrays]
    seen: list[Array] = [np.full(x.size, 255, x.dtype) for x in arrays]
    lock = threading.Lock()

    def visit(i: int, lo: int, values: Array) -> None:
        with lock:
            assert values.size <= 7 or not seekable
            seen[i][lo : lo + values.size] = values

    assert scan(tensors, visit) == []
    for got, want in zip(seen, arrays, strict=True):
        np.testing.assert_array_equal(got, want.reshape(-1))


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scan([tensor(np.ones(3))], lambda i, lo, values: None)
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_in_a_visit_ends_it() -> None:
    def visit(i: int, lo: int, values: Array) -> None:
        raise TconvError("enough")

    with pytest.raises(TconvError, match="enough"):
        scan([tensor(np.ones(3))], visit)


def test_a_tensor_larger_than_memory_is_seen_in_little(tmp_path: Path) -> None:
    """A file of 64 GB that is all holes; the first quarter of a gigabyte, to spare time."""
    from tconv import registry
    from tconv.writer import ReadOptions

    path = tmp_path / "big.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 34,)})
        file.truncate(file.tell() + (1 << 36))
    (big,) = registry.reader(registry.detect(path))(path, "big", ReadOptions()).tensors
    most = 0

    class Enough(Exception):  # noqa: N818  # not an error
        pass

    def visit(i: int, lo: int, values: Array) -> None:
        nonlocal most
        most = max(most, values.nbytes)
        assert not values.any()
        if lo > 1 << 26:
            raise Enough

    tensors: list[Tensor] = [big]
    with pytest.raises(Enough):
        scan(tensors, visit)
    assert most == 4 << 20
