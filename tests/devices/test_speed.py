"""Measuring: what is measured is done, and the fastest time counts. How fast anything is no test says."""

from __future__ import annotations

import math

import pytest

from tconv.devices import timing


def test_the_fastest_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.5, 0.25, 0.125, 0.25, 0.25])
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def work() -> None:
        now[0] += next(times)

    assert timing.rate(work, 10.0) == 80.0  # until a second has passed
    assert next(times) == 0.25


def test_what_is_quick_is_made_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(timing, "rate", lambda work, amount: work() or amount)

    def work(size: int) -> object:
        return lambda: sizes.append(size)

    found = timing.growing(work, 4, 64, lambda n: n / 1e4)  # type: ignore[arg-type]  # as one is that is called
    assert sizes == [4]
    assert found == 4e-4


def test_torch_is_measured_in_all_there_is_to_measure() -> None:
    pytest.importorskip("torch")
    from tconv.devices import speed

    pairs = (("float32", "float16"), ("float16", "float32"))
    assert set(speed.casts("cpu", pairs, 1000)) == set(pairs)
    assert all(0 < v < math.inf for v in speed.casts("cpu", pairs, 1000).values())
    assert set(speed.products("cpu", ("float32",))) == {"float32"}
    assert speed.transfers("cpu") is None
