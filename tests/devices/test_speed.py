"""Measuring: what is measured is done, and the fastest time counts. How fast anything is no test says."""

from __future__ import annotations

import math

import pytest

from tconv.devices import timing


def test_the_fastest_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 0.5, 0.25, 0.125, 0.25, 0.25])
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def work() -> None:
        now[0] += next(times)

    assert timing.rate(work, 10.0) == 80.0  # until a second has passed, without the first time
    assert next(times) == 0.25


def test_what_is_quick_is_made_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def rate(work: object, amount: float) -> float:
        sizes.append(int(amount))
        return {4: 4e4, 8: 8e4, 16: 1.2e3, 32: 9e9}[int(amount)]  # at 16 it was disturbed

    monkeypatch.setattr(timing, "rate", rate)
    assert timing.growing(lambda size: lambda: size, 4, 64, float) == 8e4
    assert sizes == [4, 8, 16]
    assert timing.growing(lambda size: lambda: size, 4, 8, float) == 8e4


def test_the_cpu_is_measured_with_one_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that wait for each other on a busy machine are no measure of it."""
    torch = pytest.importorskip("torch")
    from tconv.devices import speed

    monkeypatch.setattr(speed, "rate", lambda work, amount: 100.0 / torch.get_num_threads())
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert speed.casts("cpu", (("float32", "float16"),), 10) == {("float32", "float16"): 100.0}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_torch_is_measured_in_all_there_is_to_measure() -> None:
    pytest.importorskip("torch")
    from tconv.devices import speed

    pairs = (("float32", "float16"), ("float16", "float32"))
    assert set(speed.casts("cpu", pairs, 1000)) == set(pairs)
    assert all(0 < v < math.inf for v in speed.casts("cpu", pairs, 1000).values())
    assert set(speed.products("cpu", ("float32",))) == {"float32"}
    assert speed.transfers("cpu") is None
