"""The runner fills every place once, keeps to its memory, collects bad inputs, stops for what is fatal."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest

from tconv import evaluate
from tconv.account import Account
from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.ops import CastTo
from tconv.outcome import Output, Place
from tconv.parts import Parts
from tconv.runner import Runner, default_workers
from tconv.tensor import Extra, Spec, Tensor
from tconv.writer import Writer
from tests.memory import ArraySource, tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tconv.ops import Array
    from tconv.placed.carry import Making


class Memory(Writer):
    """Keeps what it is given; ``hook`` is called at every write."""

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        self.arrays = [np.zeros(s.size, s.dtype.numpy) for s in specs]
        self.times = [np.zeros(s.size, int) for s in specs]
        self.size = sum(s.nbytes for s in specs)
        self.events: list[str] = []
        self.hook: Callable[[int], None] = lambda _i: None

    def open(self, path: Path) -> None:
        assert path.parent.is_dir()
        self.events.append("open")

    def write(self, i: int, lo: int, array: Array) -> None:
        self.hook(i)
        self.arrays[i][lo : lo + array.size] = array
        self.times[i][lo : lo + array.size] += 1

    def commit(self) -> None:
        self.events.append("commit")

    def abort(self) -> None:
        self.events.append("abort")


@dataclass(frozen=True, eq=False)
class Broken(ArraySource):
    """A source that cannot be read."""

    problem: Exception = field(default_factory=ZeroDivisionError)

    def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
        raise self.problem


def broken(name: str, problem: Exception) -> Tensor:
    made = tensor(np.zeros(4, np.float32), name=name)
    return replace(made, source=Broken(np.zeros(4, np.float32), path=Path(f"{name}.npy"), problem=problem))


def output(folder: Path, *tensors: Tensor) -> Output:
    return Output(Memory([t.spec for t in tensors], Extra("data")), folder / "out", Path("target.npy"), tensors)


def memory(out: Output) -> Memory:
    assert isinstance(out.writer, Memory)
    return out.writer


@pytest.fixture(params=[1, 2, 5])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_every_element_is_written_once_and_whole_outputs_are_committed(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "PIECE", 100)
    rng = np.random.default_rng(0)
    arrays = [rng.random(n, np.float32) for n in (1, 1000, 0, 77)]
    half = CastTo(dtype=dtype("float16"))
    outputs = [output(tmp_path / str(n), *(tensor(a).then(half) for a in arrays)) for n in range(3)]
    done: list[int] = []
    Runner(workers, 1 << 20, done.append).run(outputs)
    for out in outputs:
        writer = memory(out)
        assert writer.events == ["open", "commit", "abort"]
        for got, times, array in zip(writer.arrays, writer.times, arrays, strict=True):
            np.testing.assert_array_equal(got, array.astype(np.float16))
            assert (times == 1).all()
    assert sum(done) == 3 * 2 * 1078


def test_a_file_that_is_long_in_finishing_keeps_nobody_from_the_next(tmp_path: Path) -> None:
    one = tensor(np.ones(4, np.float32))
    slow, next_ = output(tmp_path / "a", one), output(tmp_path / "b", one)
    begun, waited = threading.Event(), []
    memory(next_).hook = lambda _i: begun.set()

    class Slow(Memory):
        def commit(self) -> None:
            waited.append(begun.wait(10))
            super().commit()

    slow.writer = Slow([one.spec], Extra("data"))
    Runner(2, 1 << 20, lambda _n: None).run([slow, next_])
    assert waited == [True]


def test_what_is_wrong_with_inputs_is_collected_and_the_rest_is_done(tmp_path: Path, workers: int) -> None:
    good = tensor(np.ones(4, np.float32), name="good")
    bad = output(tmp_path / "a", broken("x", TconvError("is truncated")), good, broken("y", OSError(5, "I/O error")))
    fine = output(tmp_path / "b", good)
    outcome = Runner(workers, 1 << 20, lambda _n: None).run([bad, fine])
    assert sorted(str(f) for f in outcome.failures) == ["x.npy: x: is truncated", "y.npy: y: cannot be read: I/O error"]
    assert outcome.unfinished == {0}
    assert memory(bad).events == ["open", "abort"]
    assert memory(fine).events == ["open", "commit", "abort"]
    np.testing.assert_array_equal(memory(fine).arrays[0], np.ones(4))


def test_what_needs_more_memory_than_there_is_names_its_file(tmp_path: Path) -> None:
    outcome = Runner(1, 1 << 20, lambda _n: None).run([output(tmp_path, broken("x", MemoryError()))])
    assert str(outcome.failures[0]).startswith("x.npy: x: needs about 32 bytes of memory at once")


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (OSError(28, "No space left on device"), "target.npy: cannot be written: No space left on device"),
        (KeyboardInterrupt(), ""),
        (ZeroDivisionError("a bug"), "a bug"),
    ],
)
def test_what_is_fatal_stops_all_and_is_raised(tmp_path: Path, workers: int, problem: BaseException, says: str) -> None:
    out = output(tmp_path, *(tensor(np.ones(4), name=str(n)) for n in range(50)))
    seen: list[int] = []

    def hook(i: int) -> None:
        seen.append(i)
        if i == 3:
            raise problem

    memory(out).hook = hook
    with pytest.raises(BaseException) as caught:  # noqa: PT011  # the text tells which
        Runner(workers, 1 << 20, lambda _n: None).run([out])
    assert str(caught.value) == says
    assert len(seen) < 50
    assert memory(out).events == ["open", "abort"]
    assert not [t for t in threading.enumerate() if t.name.startswith("tconv-")]


def test_memory_under_way_stays_within_the_limit(tmp_path: Path) -> None:
    under_way, most, lock = [0], [0], threading.Lock()

    class Counted(ArraySource):
        def read(self, lo: int, hi: int, out: Array | None = None) -> Array:
            with lock:
                under_way[0] += 1
                most[0] = max(most[0], under_way[0])
            time.sleep(0.002)
            with lock:
                under_way[0] -= 1
            return super().read(lo, hi, out)

    def run(limit: int) -> int:
        most[0] = 0
        made = [tensor(np.ones(1000, np.float32), name=str(n)) for n in range(20)]
        made = [replace(t, source=Counted(t.source.read(0, 1000))) for t in made]
        out = output(tmp_path, *made)
        Runner(4, limit, lambda _n: None).run([out])
        assert all((times == 1).all() for times in memory(out).times)
        return most[0]

    cost = 8000  # bytes: what is read and what is written
    assert run(cost - 1) == 1  # too large for the limit: alone
    assert run(2 * cost) == 2
    assert run(100 * cost) > 2


class Costly(evaluate.Program):
    """One piece of a tensor that takes as many bytes as the tensor has elements, and what all threads hold at once."""

    lock: ClassVar[threading.Lock] = threading.Lock()
    held: ClassVar[dict[int, int]] = {}
    most: ClassVar[int] = 0

    def __init__(self, tensor: Tensor, detail: bool = False) -> None:
        self.cost, self.crosses = tensor.spec.size, False

    def pieces(self) -> Iterator[evaluate.Piece]:
        yield evaluate.Piece(0, 1, Path("x"), self.cost)

    def make(self, piece: evaluate.Piece, out: Array) -> Account:
        with self.lock:
            mine = threading.get_ident()
            self.held[mine] = max(self.held.get(mine, 0), piece.cost)
            type(self).most = max(self.most, sum(self.held.values()))
        time.sleep(0.0005)
        return Account()

    def making(self, piece: evaluate.Piece, out: Array) -> Making:
        raise AssertionError("it does not cross")

    @classmethod
    def release(cls) -> None:
        with cls.lock:
            cls.held.pop(threading.get_ident(), None)


def test_what_threads_keep_for_the_next_piece_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tconv.runner.program", Costly)
    monkeypatch.setattr("tconv.runner.scratch.release", Costly.release)
    sizes = [40, 30, 33, 10, 100, 25, 20, 75, 33, 1, 60, 60, 30, 99, 33, 33, 33, 50]
    for order in (sizes, sizes[::-1], sorted(sizes)):
        Costly.held.clear()
        Costly.most = 0
        out = output(tmp_path, *(tensor(np.zeros(n, np.int8), name=f"{i}") for i, n in enumerate(order)))
        Runner(3, 100, lambda _n: None).run([out])
        assert Costly.most <= 100
        assert sum(times.sum() for times in memory(out).times) == len(sizes)


def test_losses_are_kept_by_tensor_and_for_a_stack_by_part(tmp_path: Path, workers: int) -> None:
    half = CastTo(dtype=dtype("float16"), step="cast(float16)")
    clean, over = np.ones(4, np.float32), np.full(4, 1e6, np.float32)
    parts = tuple(
        replace(tensor(a), source=ArraySource(a, path=Path(n))) for a, n in [(clean, "a"), (over, "b"), (clean, "c")]
    )
    stack = Tensor(Spec("s", dtype("float32"), (3, 4)), Parts(parts, dtype("float32"), (3, 4))).then(half)
    outcome = Runner(workers, 1 << 20, lambda _n: None).run([output(tmp_path, tensor(over).then(half), stack)])
    lost = {place: [v.overflow for v in account.by_cast.values()] for place, account in outcome.lost.items()}
    assert lost == {Place(0, 0, None): [4], Place(0, 1, 1): [4]}


def test_with_details_every_part_has_an_account(tmp_path: Path, workers: int) -> None:
    half = CastTo(dtype=dtype("float16"), step="cast(float16)")
    parts = tuple(
        replace(tensor(a), source=ArraySource(a, path=Path(n)))
        for n, a in [("a", np.array([1, 2], np.float32)), ("b", np.array([0.1, 4], np.float32))]
    )
    stack = Tensor(Spec("s", dtype("float32"), (2, 2)), Parts(parts, dtype("float32"), (2, 2))).then(half)
    outcome = Runner(workers, 1 << 20, lambda _n: None, detail=True).run([output(tmp_path, stack)])
    told = {place.part: [v.detail for v in account.by_cast.values()] for place, account in outcome.lost.items()}
    assert {part: detail and detail.inexact for part, (detail,) in told.items()} == {0: 0, 1: 1}


def test_there_is_a_worker_for_each_core_that_may_be_used() -> None:
    assert default_workers() >= 1
