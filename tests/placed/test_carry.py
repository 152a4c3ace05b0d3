"""Batches of equals on their way to a device: who goes with whom, what one that fails does to others, and memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tconv.account import Account
from tconv.dtypes import dtype
from tconv.errors import TconvError
from tconv.evaluate import evaluate, program
from tconv.ops import CastTo, MoveTo, Permute
from tconv.outcome import Output
from tconv.parts import Parts
from tconv.placed import carry
from tconv.placed.batching import Batching
from tconv.placed.carry import alone, together
from tconv.runner import Runner
from tconv.steps.normalize import Standardize
from tconv.tensor import Spec, Tensor
from tests.memory import ArraySource, tensor
from tests.test_evaluate import Flip

if TYPE_CHECKING:
    from tconv.placed.carry import Making

torch = pytest.importorskip("torch")

U8, F16, F32 = dtype("uint8"), dtype("float16"), dtype("float32")
MOVE = MoveTo(device="torch", step="device(torch)")
NORMALIZE = Standardize(dtype=F32, axis=2, mean=(1.0, 2.0, 3.0), std=(2.0, 3.0, 7.0), step="n")
CHAIN = (MOVE, NORMALIZE, Permute(perm=(2, 0, 1), step="p"), CastTo(dtype=F16, step="c"))


def picture(height: int, width: int, seed: int) -> Tensor:
    made = tensor(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8), f"{seed}")
    for op in CHAIN:
        made = made.then(op)
    return made


def wanted(made: Tensor) -> Any:
    assert isinstance(made.source, ArraySource)
    x = (made.source.array.astype(np.float64) - (1, 2, 3)) / (2, 3, 7)
    return x.astype(np.float32).transpose(2, 0, 1).astype(np.float16)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tensors go at once, each time."""
    from tconv.placed import work

    sizes: list[int] = []
    real = work.worked

    def counted(like: Any, load: Any, slots: Any) -> Any:
        sizes.append(len(slots))
        return real(like, load, slots)

    monkeypatch.setattr(work, "worked", counted)
    return sizes


def makings(tensors: list[Tensor]) -> tuple[list[Making], list[Any]]:
    outs = [np.zeros(t.spec.size, t.spec.dtype.numpy) for t in tensors]
    found = []
    for one, out in zip(tensors, outs, strict=True):
        made = program(one)
        (piece,) = made.pieces()
        found.append(made.making(piece, out))
    return found, outs


def check(tensors: list[Tensor], batching: Batching) -> None:
    made, outs = makings(tensors)
    assert all(isinstance(lost, Account) for lost in together(made, batching))
    for one, out in zip(tensors, outs, strict=True):
        np.testing.assert_array_equal(out.reshape(one.spec.shape), wanted(one))


def test_equals_go_together(batches: list[int]) -> None:
    check([picture(5, 4, n) for n in range(7)], Batching())
    assert batches == [7]


def test_at_most_so_many(batches: list[int]) -> None:
    check([picture(5, 4, n) for n in range(7)], Batching(3))
    assert batches == [3, 3, 1]


def test_each_goes_with_its_equals_wherever_they_stand(batches: list[int]) -> None:
    check([picture(5, 4 + n % 2, n) for n in range(7)] + [picture(9, 9, 9)], Batching())
    assert batches == [4, 3, 1]


def test_what_does_not_cross_goes_by_itself(batches: list[int]) -> None:
    plain = tensor(np.arange(4.0))
    (making,), (out,) = makings([plain])
    (lost,) = together([making], Batching())
    assert isinstance(lost, Account)
    assert out.tolist() == [0, 1, 2, 3]
    assert batches == []


class Broken(ArraySource):
    """A file that cannot be read."""

    def read(self, lo: int, hi: int, out: Any = None) -> Any:
        raise TconvError("is broken")


def test_one_that_fails_leaves_the_others_alone(batches: list[int]) -> None:
    tensors = [picture(5, 4, n) for n in range(3)]
    bad = Tensor(tensors[1].spec, Broken(np.zeros((5, 4, 3), np.uint8)), tensors[1].ops)
    made, outs = makings([tensors[0], bad, tensors[2]])
    first, failed, last = together(made, Batching())
    assert isinstance(first, Account)
    assert isinstance(last, Account)
    assert isinstance(failed, TconvError)
    assert batches == [2]
    np.testing.assert_array_equal(outs[2].reshape(3, 5, 4), wanted(tensors[2]))


def test_an_error_after_the_crossing_is_that_of_the_tensor() -> None:
    def making() -> Making:
        from tconv.blocks import stages_of
        from tconv.placed.section import Section

        (section,) = stages_of((MOVE, CastTo(dtype=F16)), F32, 1, False)
        assert isinstance(section, Section)
        yield carry.Crossing(section, np.ones(3, np.float32), (3,))
        raise TconvError("too late")

    (failed,) = together([making()], Batching())
    assert isinstance(failed, TconvError)
    with pytest.raises(TconvError, match="too late"):
        alone(making())


def test_a_stack_that_is_made_whole_does_not_disturb_its_neighbours() -> None:
    """Its parts cross while others wait to."""
    parts = tuple(tensor(np.full((2, 3), n, np.float32), f"{n}").then(MOVE).then(CastTo(dtype=F16)) for n in range(3))
    stack = Tensor(Spec("stack", F16, (3, 2, 3)), Parts(parts, F16, (3, 2, 3)))
    for op in (MOVE, Permute(perm=(1, 0, 2), step="p"), CastTo(dtype=F32, step="c")):
        stack = stack.then(op)
    neighbours = [tensor(np.full((3, 6), n + 0.5, np.float32)).then(MOVE).then(CastTo(dtype=F16)) for n in range(2)]
    made, outs = makings([neighbours[0], stack, neighbours[1]])
    assert all(isinstance(lost, Account) for lost in together(made, Batching()))
    assert outs[0].tolist() == [0.5] * 18
    assert outs[2].tolist() == [1.5] * 18
    np.testing.assert_array_equal(outs[1].reshape(2, 3, 3), np.stack([np.full((2, 3), n) for n in range(3)], 1))


def scarce(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A device that holds only so many tensors."""
    from tconv.placed import work

    real = work.worked

    def worked(like: Any, load: Any, slots: Any) -> Any:
        if len(slots) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(like, load, slots)

    monkeypatch.setattr(work, "worked", worked)


def test_out_of_memory_halves_the_batch_and_says_so(monkeypatch: pytest.MonkeyPatch, batches: list[int]) -> None:
    scarce(monkeypatch, 4)
    batching = Batching()
    check([picture(5, 4, n) for n in range(20)], batching)
    assert batching.most == 2
    assert batches == [2] * 10
    assert batching.notes == [
        "torch ran out of memory with 20 tensors at once, and went on with 10; --device-batch 10 starts with that",
        "torch ran out of memory with 10 tensors at once, and went on with 5; --device-batch 5 starts with that",
        "torch ran out of memory with 5 tensors at once, and went on with 2; --device-batch 2 starts with that",
    ]


def test_one_that_is_too_large_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    scarce(monkeypatch, 0)
    made, _ = makings([picture(5, 4, 0)])
    (failed,) = together(made, Batching())
    assert str(failed) == (
        "torch has not the memory for it: what goes in and comes out alone takes 180 bytes; "
        "--device cpu does without"
    )  # fmt: skip


def test_what_else_torch_says_is_an_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from tconv.placed import work

    def fails(like: Any, load: Any, slots: Any) -> Any:
        raise RuntimeError("CUDA error: an illegal address\nmuch more")

    monkeypatch.setattr(work, "worked", fails)
    made, _ = makings([picture(5, 4, 0)])
    with pytest.raises(TconvError, match=r"^torch: CUDA error: an illegal address; --device cpu does without$"):
        together(made, Batching())


@pytest.mark.parametrize("broken", ["Lane", "_Arena.reserve"])
def test_a_device_that_cannot_even_be_reached_is_an_error_of_the_device(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    from tconv.devices import lane

    def fails(*_: Any) -> Any:
        raise RuntimeError("CUDA error: all devices are busy\nmuch more")

    monkeypatch.setattr(lane, "_local", threading.local())
    monkeypatch.setattr(f"tconv.devices.lane.{broken}", fails)
    made, _ = makings([picture(5, 4, 0)])
    with pytest.raises(TconvError, match=r"^torch: CUDA error: all devices are busy; --device cpu does without$"):
        together(made, Batching())


@pytest.mark.parametrize("text", ["CUDA out of memory", "MPS backend out of memory (MPS allocated: 1 GB)"])
def test_every_device_says_in_its_own_way_that_memory_is_out(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    from tconv.placed import work

    real = work.worked

    def worked(like: Any, load: Any, slots: Any) -> Any:
        if len(slots) > 1:
            raise RuntimeError(text)
        return real(like, load, slots)

    monkeypatch.setattr(work, "worked", worked)
    batching = Batching()
    check([picture(5, 4, n) for n in range(3)], batching)
    assert batching.most == 1


class Memory:
    """Takes what a runner makes."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.arrays = [np.zeros(t.spec.size, t.spec.dtype.numpy) for t in tensors]
        self.size = 0

    def stored(self, i: int) -> bool:
        return True

    def open(self, path: Any) -> None: ...

    def write(self, i: int, lo: int, array: Any) -> None:
        self.arrays[i][lo : lo + array.size] = array

    def commit(self) -> None: ...
    def abort(self) -> None: ...


@pytest.mark.parametrize("workers", [1, 3])
def test_a_runner_puts_them_into_groups(tmp_path: Any, batches: list[int], workers: int) -> None:
    tensors = [picture(5, 4 + n // 20, n) for n in range(40)]
    memory: Any = Memory(tensors)
    outcome = Runner(workers, 1 << 30, lambda _: None, device_batch=8).run(
        [Output(memory, tmp_path / "x", tmp_path / "x", tensors)]
    )
    assert not outcome.failures
    for one, made in zip(tensors, memory.arrays, strict=True):
        np.testing.assert_array_equal(made.reshape(one.spec.shape), wanted(one))
    assert sum(batches) == 40
    assert max(batches) == min(8, -(-40 // (2 * workers)))


def test_a_stack_names_the_part_that_lost_something(tmp_path: Any) -> None:
    values = [np.full((2, 2), v, np.float32) for v in (1, 1e5, 2)]
    parts = tuple(tensor(v, f"{n}").then(MOVE) for n, v in enumerate(values))
    stack = Tensor(Spec("stack", F32, (3, 2, 2)), Parts(parts, F32, (3, 2, 2))).then(CastTo(dtype=F16, step="c"))
    memory: Any = Memory([stack])
    outcome = Runner(1, 1 << 30, lambda _: None).run([Output(memory, tmp_path / "x", tmp_path / "x", [stack])])
    assert [(place.part, bool(account)) for place, account in outcome.lost.items()] == [(1, True)]


def test_memory_that_is_scarce_makes_groups_small(tmp_path: Any, batches: list[int]) -> None:
    tensors = [picture(5, 4, n) for n in range(16)]
    (piece,) = program(tensors[0]).pieces()
    memory: Any = Memory(tensors)
    Runner(1, 3 * piece.cost, lambda _: None).run([Output(memory, tmp_path / "x", tmp_path / "x", tensors)])
    assert max(batches) == 3


def test_threads_go_their_own_ways() -> None:
    tensors = [picture(31, 17, n) for n in range(8)]
    failures: list[str] = []

    def many(mine: list[Tensor]) -> None:
        for _ in range(20):
            wrong = [one.spec.name for one in mine if not np.array_equal(evaluate(one)[0], wanted(one))]
            failures.extend(wrong)

    threads = [threading.Thread(target=many, args=(tensors[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_wholes_around_a_section() -> None:
    x = np.random.default_rng(0).random((4, 5, 3)).astype(np.float32)
    made = tensor(x).then(Flip()).then(MOVE).then(NORMALIZE).then(Flip())
    want = ((x.astype(np.float64) - (1, 2, 3)) / (2, 3, 7)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(made)[0], want)
