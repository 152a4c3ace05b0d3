"""However a tensor is cut into pieces, the pieces together are what NumPy makes of the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv import evaluate as module
from tconv.account import CastKey
from tconv.dtypes import dtype
from tconv.evaluate import evaluate, program
from tconv.ops import CastTo, Permute, Promise, Whole
from tconv.parts import Parts
from tconv.tensor import Spec, Tensor
from tests.fuse.test_run import Affine
from tests.memory import ArraySource, tensor

if TYPE_CHECKING:
    from tconv.ops import Array, Op

F64, F32, F16 = dtype("float64"), dtype("float32"), dtype("float16")
CHANNELS = Affine(dtype=F32, axis=3, shift=(1.0, 2.0, 3.0), divisor=(2.0, 3.0, 7.0))


@dataclass(frozen=True, kw_only=True)
class Flip(Whole):
    """Turns the last axis but one around; any axis before it is a batch."""

    def spec(self, spec: Spec) -> Spec:
        return spec

    def below(self) -> Flip:
        return self

    def apply(self, x: Array) -> Array:
        return x[..., ::-1, :]


@pytest.fixture(params=[1 << 20, 64, 7], ids=["whole", "rows", "crumbs"])
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", request.param)


BATCH = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), np.uint8)


def check(ops: tuple[Op, ...], want: Array, x: Array = BATCH, seekable: bool = True) -> int:
    """Compare, with pieces made in reverse; returns how many there were."""
    made: Tensor = tensor(x)
    made = replace(made, source=ArraySource(x, seekable=seekable))
    for op in ops:
        made = made.then(op)
    how = program(made)
    pieces = list(how.pieces())
    out = np.zeros(made.spec.size, made.spec.dtype.numpy)
    covered = np.zeros(made.spec.size, int)
    for piece in reversed(pieces):
        how.make(piece, out[piece.lo : piece.hi])
        covered[piece.lo : piece.hi] += 1
        assert piece.cost >= (piece.hi - piece.lo) * made.spec.dtype.itemsize
    assert (covered == 1).all()
    assert made.spec.shape == want.shape
    np.testing.assert_array_equal(out.reshape(made.spec.shape), want)
    return len(pieces)


normalized = ((BATCH.astype(np.float64) - (1, 2, 3)) / (2, 3, 7)).astype(np.float32)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("seekable", [True, False])
def test_every_kind_of_chain(seekable: bool) -> None:
    turn = Permute(perm=(0, 3, 1, 2))
    check((), BATCH, seekable=seekable)
    check((CastTo(dtype=F16),), BATCH.astype(np.float16), seekable=seekable)
    check((CHANNELS,), normalized, seekable=seekable)
    check((CHANNELS, turn), normalized.transpose(0, 3, 1, 2), seekable=seekable)
    check((turn, replace(CHANNELS, axis=1)), normalized.transpose(0, 3, 1, 2), seekable=seekable)
    check((Permute(perm=(3, 0, 1, 2)),), BATCH.transpose(3, 0, 1, 2), seekable=seekable)
    check((Flip(), CHANNELS, Flip(), turn), normalized.transpose(0, 3, 1, 2), seekable=seekable)
    check((CHANNELS, Flip()), normalized[:, :, ::-1], seekable=seekable)


def test_what_can_be_read_anywhere_is_cut_and_what_cannot_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 100)
    assert check((CHANNELS,), normalized) == 4  # 360 elements by 100
    assert check((CHANNELS, Flip()), normalized[:, :, ::-1]) == 5  # a row of 72 at a time
    assert check((CHANNELS,), normalized, seekable=False) == 1
    assert check((Permute(perm=(3, 0, 1, 2)),), BATCH.transpose(3, 0, 1, 2)) == 1


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (2, 0, 4)])
def test_scalars_and_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float64)
    check((CastTo(dtype=F32),), x.astype(np.float32), x)
    order = tuple(reversed(range(len(shape))))
    if shape:
        check((Permute(perm=order),), x.transpose(order), x)
        check((Permute(perm=order), CastTo(dtype=F32)), x.astype(np.float32).transpose(order), x)
        numbers = tuple(map(float, range(shape[-1])))
        by_channel = Affine(dtype=F32, axis=len(shape) - 1, shift=numbers)
        for y in (x, x.astype(np.uint8)):
            want = (y - np.asarray(numbers)).astype(np.float32)
            check((by_channel, Permute(perm=order)), want.transpose(order), y)
            check((Permute(perm=order), replace(by_channel, axis=0)), want.transpose(order), y)


@dataclass(frozen=True, eq=False)
class Turning(ArraySource):
    """A source that can read its elements with the axes in any order."""

    scattered: bool = True

    def permuted(self, perm: tuple[int, ...]) -> Turning:
        return Turning(np.ascontiguousarray(self.array.transpose(perm)))


@pytest.mark.parametrize("order", [(3, 0, 1, 2), (1, 2, 3, 0), (0, 3, 1, 2), (2, 1, 0, 3)])
@pytest.mark.parametrize("piece", [7, 64, 1 << 20])
def test_the_axes_of_what_is_large_are_reordered_as_it_is_read(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...], piece: int
) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(module, "LARGE", 1)
    turn = Permute(perm=order)
    back = Permute(perm=tuple(order.index(axis) for axis in range(4)))
    channel = order.index(3)
    chains: list[tuple[tuple[Op, ...], Array]] = [
        ((turn,), BATCH.transpose(order)),
        ((CHANNELS, turn), normalized.transpose(order)),
        ((turn, replace(CHANNELS, axis=channel)), normalized.transpose(order)),
        ((turn, CastTo(dtype=F32), back, CHANNELS), normalized),
        ((CHANNELS, turn, CastTo(dtype=F16), turn), normalized.astype(np.float16).transpose(order).transpose(order)),
    ]
    for ops, want in chains:
        made = Tensor(Spec("x", dtype("uint8"), BATCH.shape), Turning(BATCH))
        for op in ops:
            made = made.then(op)
        pieces = list(program(made).pieces())
        assert len(pieces) == -(-BATCH.size // piece)
        np.testing.assert_array_equal(evaluate(made)[0], want)


def test_what_is_not_large_keeps_its_order_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 10)
    made = Tensor(Spec("x", dtype("uint8"), BATCH.shape), Turning(BATCH))
    assert len(list(program(made.then(Permute(perm=(3, 0, 1, 2)))).pieces())) == 1
    assert len(list(program(made.then(Permute(perm=(0, 3, 1, 2)))).pieces())) == 5
    assert len(list(program(made.then(Flip()).then(Permute(perm=(3, 0, 1, 2)))).pieces())) == 1


def test_pieces_of_what_lies_scattered_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 10)
    monkeypatch.setattr(module, "LARGE", 400)
    made = Tensor(Spec("x", dtype("uint8"), BATCH.shape), Turning(BATCH))
    assert [p.hi - p.lo for p in program(made).pieces()] == [360]
    assert [p.hi - p.lo for p in program(made.then(CastTo(dtype=F32))).pieces()] == [100, 100, 100, 60]
    plain = replace(made, source=Turning(BATCH, scattered=False))
    assert len(list(program(plain).pieces())) == 36


@dataclass(frozen=True, eq=False)
class Ordered(ArraySource):
    """A source that decodes from its beginning on."""

    sequential: bool = True


def test_what_decodes_in_order_is_cut_and_counts_what_it_may_have_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 100)
    made = Tensor(Spec("x", dtype("uint8"), BATCH.shape), Ordered(BATCH))
    flat, rows = made.then(CastTo(dtype=F32)), made.then(CHANNELS).then(Flip())
    assert [p.cost for p in program(flat).pieces()] == [600, 600, 600, 360]
    plain = replace(rows, source=ArraySource(BATCH))
    assert [a.cost - b.cost for a, b in zip(program(rows).pieces(), program(plain).pieces(), strict=True)] == [72] * 5
    np.testing.assert_array_equal(evaluate(rows)[0], normalized[:, :, ::-1])


def stacked(arrays: list[Array]) -> Tensor:
    parts = tuple(tensor(a, name=str(n)) for n, a in enumerate(arrays))
    first = parts[0].spec
    shape = (len(parts), *first.shape)
    return Tensor(Spec("stack", first.dtype, shape), Parts(parts, first.dtype, shape))


@pytest.mark.parametrize("per_part", [(), (Flip(),)])
def test_a_stack_is_its_parts_one_after_the_other(per_part: tuple[Op, ...]) -> None:
    made = stacked(list(BATCH))
    assert isinstance(made.source, Parts)
    parts = made.source.parts
    for op in per_part:
        parts = tuple(p.then(op) for p in parts)
    made = replace(made, source=replace(made.source, parts=parts))
    want = BATCH[:, :, ::-1] if per_part else BATCH
    for op in (CHANNELS, Permute(perm=(0, 3, 1, 2))):
        made = made.then(op)
    want = ((want.astype(np.float64) - (1, 2, 3)) / (2, 3, 7)).astype(np.float32).transpose(0, 3, 1, 2)
    assert len(list(program(made).pieces())) == 5
    np.testing.assert_array_equal(evaluate(made)[0], want)


def test_operations_across_the_parts_of_a_stack_see_all_of_it() -> None:
    made = stacked(list(BATCH)).then(Permute(perm=(1, 0, 2, 3)))
    assert len(list(program(made).pieces())) == 1
    np.testing.assert_array_equal(evaluate(made)[0], BATCH.transpose(1, 0, 2, 3))


def test_a_stack_of_empty_parts() -> None:
    made = stacked([np.ones((0, 3)), np.ones((0, 3))])
    assert evaluate(made)[0].shape == (2, 0, 3)


@pytest.mark.usefixtures("_pieces")
@pytest.mark.parametrize("seekable", [True, False])
@pytest.mark.parametrize("detail", [False, True])
def test_the_account_is_of_all_pieces_however_they_are_cut(seekable: bool, detail: bool) -> None:
    whole = replace(tensor(BATCH), source=ArraySource(BATCH, seekable=seekable))
    half = CastTo(dtype=F16, step="half")
    first = CHANNELS.compute(BATCH.astype(np.float64), lambda values: np.asarray(values, np.float64))
    outside = int((BATCH > 99).sum())
    parts = stacked(list(BATCH))
    for ops in ((CHANNELS,), (CHANNELS, Flip()), (Flip(), CHANNELS), (CHANNELS, Permute(perm=(1, 0, 2, 3)))):
        for made in (whole, parts):
            for op in (Promise(range=(0, 99)), *ops, half):
                made = made.then(op)
            _, lost = evaluate(made, detail)
            (stated,) = lost.by_range.values()
            assert (stated.count, stated.overflow) == (BATCH.size, outside)
            assert (stated.minimum, stated.maximum) == (BATCH.min(), BATCH.max())
            rounded = lost.by_cast[CastKey("half", F32 if Flip() == ops[-1] else F64, F16, "error")]
            single = first.astype(np.float32) if Flip() == ops[-1] else first
            assert (rounded.count, rounded.minimum, rounded.maximum) == (BATCH.size, single.min(), single.max())
            assert (rounded.detail is not None) == detail
            if rounded.detail is not None:
                assert rounded.detail.inexact == int((single.astype(np.float16) != single).sum())


def test_the_input_is_never_written_to() -> None:
    x = BATCH.copy()
    x.flags.writeable = False
    check((CHANNELS, Flip(), CastTo(dtype=F16)), normalized[:, :, ::-1].astype(np.float16), x)
    np.testing.assert_array_equal(x, BATCH)
