"""The way to a device and back, here to torch's CPU: what arrives is what was sent, and memory is nobody else's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv.dtypes import DTYPES, dtype

if TYPE_CHECKING:
    from torch import Tensor

torch = pytest.importorskip("torch")

from tconv.devices.bits import carrier, moved, numbers  # noqa: E402  # torch may be absent
from tconv.devices.lane import Lane, Load, lane, release  # noqa: E402  # as above
from tconv.devices.lookup import look_up  # noqa: E402  # as above


def filled(load: Load, values: list[int], kind: str = "int32") -> Tensor:
    slot = load.slot(len(values), dtype(kind))
    slot.numpy()[:] = values
    return slot


def test_slots_side_by_side_go_as_one_and_others_one_by_one() -> None:
    with Lane("torch").load() as load:
        filled(load, [0] * 20)
    with load.way.load() as load:
        a, b = filled(load, [1, 2]), filled(load, [3, 4])
        assert b.data_ptr() == a.data_ptr() + 8
        filled(load, [9], kind="int8")
        c = filled(load, [5, 6])
        assert load.sent([a, b], torch.int32).tolist() == [[1, 2], [3, 4]]
        assert load.sent([c, a], torch.int32).tolist() == [[5, 6], [1, 2]]
        assert load.sent([a], torch.float32).dtype == torch.float32  # the same bits


def test_what_was_handed_out_stays_when_more_memory_is_taken() -> None:
    with Lane("torch").load() as load:
        slots = [filled(load, [n] * 100) for n in range(20)]
        assert load.sent(slots, torch.int32)[:, 7].tolist() == list(range(20))


def test_loads_within_loads_have_memory_of_their_own_and_the_next_uses_it_again() -> None:
    way = Lane("torch")
    with way.load() as outer:
        a = filled(outer, [1, 2, 3])
        with way.load() as inner:
            b = filled(inner, [4, 5, 6])
            assert a.tolist() == [1, 2, 3]
            (back,) = inner.back([b * 2])
            assert back.tolist() == [8, 10, 12]
        first = b.data_ptr()
        with way.load() as inner:
            assert filled(inner, [7, 8, 9]).data_ptr() == first
        assert a.tolist() == [1, 2, 3]


def test_results_come_back_whole_and_of_any_size() -> None:
    with Lane("torch").load() as load:
        made = [torch.arange(6, dtype=torch.uint8).view(2, 3), torch.tensor([[0.5], [1.5]], dtype=torch.float64)]
        first, second = load.back(made)
        assert first.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert second.tolist() == [[0.5], [1.5]]


def test_memory_does_not_grow_with_what_was_sent_once() -> None:
    """A load of one large tensor among many small ones has room for about what is in it."""
    with Lane("torch").load() as load:
        for n in range(40):
            slot = filled(load, [n])
        large = load.slot(1 << 20, dtype("int8"))
    assert slot.untyped_storage().nbytes() < 1 << 12
    assert large.untyped_storage().nbytes() < 1 << 21


def test_memory_is_given_up_when_asked() -> None:
    with lane("torch").load() as load:
        filled(load, [1])
    assert lane("torch").idle
    release()
    assert not lane("torch").idle


def test_small_things_are_kept_there_but_not_for_ever() -> None:
    way = Lane("torch")
    first = way.kept(np.array([0.0]))
    assert way.kept(np.array([0.0])) is first
    assert way.kept(np.array([-0.0])) is not first
    assert math.copysign(1, float(way.kept(np.array([-0.0])))) == -1
    assert way.kept(np.array([0], np.int64)).dtype == torch.int64
    for n in range(1, 64):
        assert way.kept(np.array([float(n)])).tolist() == [n]
    assert way.kept(np.array([0.0])) is not first


@pytest.mark.parametrize("name", list(DTYPES))
def test_elements_are_carried_bit_for_bit(name: str) -> None:
    kind = DTYPES[name]
    if kind.itemsize <= 8:
        assert carrier(kind).itemsize == moved(kind).itemsize == kind.itemsize


@pytest.mark.parametrize("name", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool"])
def test_numbers_are_the_values(name: str) -> None:
    kind = DTYPES[name]
    values = [0, 1] if name == "bool" else [int(max(kind.min, -(2**31))), 0, 1, int(min(kind.max, 2**32 - 1))]
    if name == "float32":
        values = [-7, 0, 1, 2**24]
    bits = np.array(values).astype(kind.numpy).view(f"i{kind.itemsize}")
    x = torch.from_numpy(bits).view(carrier(kind))
    assert numbers(x, kind).double().tolist() == values


def test_a_table_by_channel_and_how_often_each_entry_occurs() -> None:
    x = torch.tensor([[0, 255, 1, 1], [2, 2, 2, 0]], dtype=torch.uint8)
    table = torch.stack([torch.arange(256), torch.arange(256) + 1000]).to(torch.int16)
    made, counts = look_up(x, table, torch.tensor([0, 1, 0, 1], dtype=torch.int32))
    assert made.tolist() == [[0, 1255, 1, 1001], [2, 1002, 2, 1000]]
    assert counts.shape == (2, 2, 256)
    assert {tuple(place): int(counts[tuple(place)]) for place in counts.nonzero().tolist()} == {
        (0, 0, 0): 1, (0, 1, 255): 1, (0, 0, 1): 1, (0, 1, 1): 1, (1, 0, 2): 2, (1, 1, 2): 1, (1, 1, 0): 1,
    }  # fmt: skip
    made, counts = look_up(x, table[:1], None)
    assert made.tolist() == x.tolist()
    assert counts.sum((1, 2)).tolist() == [4, 4]
