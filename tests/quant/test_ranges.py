"""Ranges of several tensors: pools, each tensor read once, memory within bounds, refusals by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.quant import ranges as module
from tconv.quant.grid import grid
from tconv.quant.observe import channels
from tconv.quant.ranges import Asked, Calibration, ranges
from tests.memory import tensor
from tests.quant.fitted import SCANNER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tconv.account import Account
    from tconv.ops import Array
    from tconv.step import Visit
    from tconv.tensor import Tensor


class Counting:
    """A scan that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, tensors: Sequence[Tensor], detail: bool) -> Sequence[Account]:
        return SCANNER(tensors, detail)

    def values(self, tensors: Sequence[Tensor], visit: Visit) -> None:
        self.asked.append([t.spec.name for t in tensors])
        SCANNER.values(tensors, visit)


def asked(array: Array, name: str, axis: int | None, pool: str) -> Asked:
    made = tensor(array, name)
    return Asked(made, grid("int8"), channels(made.spec, axis, None), pool)


X = np.array([[1, -2, 3], [4, 5, -60]], np.float32)


def test_a_pool_has_the_bounds_of_all_in_it() -> None:
    some = [asked(X, "a", 0, "p"), asked(-X, "b", 0, "p"), asked(X, "c", None, "q")]
    (low, high, *_), again, (least, most, *_) = ranges(some, SCANNER, Calibration())
    assert (low.tolist(), high.tolist()) == ([-3, -60], [3, 60])
    assert again.low is low
    assert (least.tolist(), most.tolist()) == ([-60], [5])


def test_a_tensor_that_is_asked_for_twice_is_read_once() -> None:
    scan = Counting()
    one = tensor(X, "a")
    some = [Asked(one, grid("int8"), channels(one.spec, axis, None), str(axis)) for axis in (None, 0, 1)]
    found = ranges(some, scan, Calibration("percentile", 100.0))
    assert scan.asked == [["a"], ["a"]]
    assert [one.high.tolist() for one in found] == [[5], [3, 5], [4, 5, 3]]


def test_distributions_are_made_for_so_many_pools_as_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2 * 8 * X.size)
    scan = Counting()
    some = [asked(X * n, f"w{n}", None, f"w{n}") for n in range(1, 6)]
    found = ranges(some, scan, Calibration("percentile", 100.0))
    assert scan.asked == [["w1", "w2", "w3", "w4", "w5"], ["w1", "w2"], ["w3", "w4"], ["w5"]]
    assert [one.low.item() for one in found] == [-60, -120, -180, -240, -300]


def test_the_percentile_of_a_pool_is_that_of_all_its_values() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((20, 50)).astype(np.float32) for _ in range(3)]
    found = ranges([asked(x, str(n), None, "p") for n, x in enumerate(parts)], SCANNER, Calibration("percentile", 90.0))
    want = np.percentile(np.stack(parts).astype(np.float64), [5, 95])
    for one in found:
        np.testing.assert_allclose([one.low.item(), one.high.item()], want, rtol=1e-12)
        every = np.stack(parts)
        assert (one.least.item(), one.greatest.item()) == (every.min(), every.max())


def test_all_that_is_refused_is_told_once_and_by_name() -> None:
    bad = np.array([[np.nan, np.inf, 1]], np.float32)
    some = [asked(bad, "a", None, "a"), asked(X, "b", None, "b"), asked(np.array([[1e39]]), "c", None, "c")]
    some.append(Asked(some[0].tensor, grid("int8"), channels(some[0].tensor.spec, 1, None), "a by channel"))
    with pytest.raises(TconvError) as caught:
        ranges(some, SCANNER, Calibration())
    first, second = str(caught.value).splitlines()
    assert "a: 1 NaN and 1 inf of 3 values: what is not finite has no scale" in first
    assert "c: it has values beyond ±3.4e+38, the range of float32" in second


def test_unlike_tensors_share_no_scales() -> None:
    some = [asked(X, "a", 1, "p"), asked(X[:, :2], "b", 1, "p")]
    with pytest.raises(TconvError, match=r"b: 2 channels, and a has 3: they cannot share scales"):
        ranges(some, SCANNER, Calibration())


def test_a_search_for_too_many_scales_is_refused() -> None:
    some = [asked(np.zeros(((1 << 16) + 1, 1), np.float32), "a", 0, "a")]
    assert ranges(some, SCANNER, Calibration())[0][0].size == (1 << 16) + 1
    with pytest.raises(TconvError, match="it has 65,537 scales, and mse searches for 65,536 at most"):
        ranges(some, SCANNER, Calibration("mse"))
