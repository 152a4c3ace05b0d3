"""What holds on any device: the results are those of the CPU, and so is the account of what was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from tconv.account import Account
from tconv.dtypes import DTYPES, DType, dtype
from tconv.evaluate import evaluate
from tconv.ops import CastTo, MoveTo, Op, Permute, Promise
from tconv.steps.clamp import Between
from tconv.steps.denormalize import Unstandardize
from tconv.steps.normalize import Standardize
from tconv.steps.scale import Rescale
from tests.memory import tensor

if TYPE_CHECKING:
    from tconv.lost import Lost
    from tconv.ops import Array
    from tconv.tensor import Tensor

SHAPE = (5, 4, 3)
SOURCES = [
    "float16", "bfloat16", "float32", "float64", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64",
    "uint64", "bool", "float8_e4m3fn",
]  # fmt: skip
TARGETS = [name for name in DTYPES if not name.startswith("complex")]
POLICIES = ("error", "saturate", "inf")
_FLOATS = ["float16", "bfloat16", "float32", "float64"]


def on(device: str, ops: tuple[Op, ...], x: Array) -> tuple[Tensor, Tensor]:
    """A tensor on the CPU, and the same to be made on the device."""
    here, there = tensor(x), tensor(x).then(MoveTo(device=device, step=f"device({device})"))
    for op in ops:
        if isinstance(op, Between):  # which keeps the dtype
            if not here.spec.dtype.is_float:
                continue
            op = replace(op, dtype=here.spec.dtype)
        here, there = here.then(op), there.then(op)
    return here, there


def assert_same_on(device: str, ops: tuple[Op, ...], x: Array, *, detail: bool = False, ulps: int = 0) -> None:
    """Bit for bit, but for ``ulps``, and NaNs, of which any is as good as any other; with the same account."""
    here, there = on(device, ops, x)
    want, lost = evaluate(here, detail)
    got, found = evaluate(there, detail)
    assert got.dtype == want.dtype
    assert_equal(got, want, here.spec.dtype, ulps)
    if not ulps:
        assert_accounts_equal(found, lost)


def assert_nans_are_the_same_on(device: str) -> None:
    """Quiet ones, of either sign and with any bits, have the bits in casts between floats that they have on the CPU."""
    for src in _FLOATS:
        x = any_bits(src, (40, 9), seed=3)
        bits = x.view(f"u{x.itemsize}")
        bits |= np.array(np.nan, x.dtype).view(bits.dtype)  # which makes a quiet NaN of each
        for dst in _FLOATS:
            here, there = on(device, (CastTo(dtype=dtype(dst), on_overflow="inf", step="c"),), x)
            assert evaluate(there)[0].tobytes() == evaluate(here)[0].tobytes()


def assert_every_cast_on(device: str, src: str, detail: bool) -> None:
    """From ``src`` to every dtype under every policy."""
    x = any_bits(src, (40, 8, 3))
    for dst in TARGETS:
        for policy in POLICIES if DTYPES[dst].has_inf else POLICIES[:2]:
            assert_same_on(device, (CastTo(dtype=dtype(dst), on_overflow=policy, step="c"),), x, detail=detail)


def assert_equal(got: Array, want: Array, kind: DType, ulps: int = 0) -> None:
    word = f"i{kind.itemsize}"
    a, b = got.view(word), want.view(word)
    if kind.is_float:
        nan = np.isnan(_wide(want))
        assert (np.isnan(_wide(got)) == nan).all()
        a, b = _ordered(a[~nan]), _ordered(b[~nan])
        assert int(np.abs(a - b).max(initial=0)) <= ulps
    else:
        np.testing.assert_array_equal(a, b)


def _wide(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(np.float32)


def _ordered(bits: Array) -> Array:
    """Numbers whose differences count the floats between."""
    wide = bits.astype(np.int64)
    lowest = -(2 ** (8 * bits.itemsize - 1))
    return np.where(wide < 0, lowest - wide - 1, wide)


def assert_accounts_equal(found: Account, lost: Account) -> None:
    assert found.by_cast.keys() == lost.by_cast.keys()
    assert found.by_range == lost.by_range
    for key, want in lost.by_cast.items():
        _assert_lost(found.by_cast[key], want)


def _assert_lost(got: Lost, want: Lost) -> None:
    assert replace(got, detail=None) == replace(want, detail=None)
    if want.detail is None or got.detail is None:
        assert got.detail is want.detail
        return
    for name in ("nan", "inf", "inexact", "subnormal", "max_abs_error", "max_rel_error"):
        assert getattr(got.detail, name) == getattr(want.detail, name)
    for name in ("signal", "noise"):  # sums in another order
        one, other = getattr(got.detail, name), getattr(want.detail, name)
        assert abs(one - other) <= other / 10**12


def any_bits(name: str, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Array:
    """Values of any bit pattern, NaNs, infinities and subnormal numbers among them; some of a usual size."""
    kind, rng = DTYPES[name].numpy, np.random.default_rng(seed)
    bits = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8)
    if name == "bool":
        return bits[..., 0] > 127
    x = bits.view(kind).reshape(shape)
    if DTYPES[name].is_float:
        with np.errstate(over="ignore"):
            x[0] = (rng.normal(size=shape[1:]) * 10.0 ** rng.integers(-9, 6, shape[1:])).astype(np.float32).astype(kind)
    return x


def _elementwise() -> st.SearchStrategy[Op]:
    numbers = st.floats(-1e3, 1e3, width=16)
    three = st.tuples(numbers, numbers, numbers)
    stds = st.tuples(*[st.floats(0.0625, 10, width=32)] * 3)
    one = st.tuples(numbers)
    floats = st.sampled_from(_FLOATS).map(dtype)
    several: list[st.SearchStrategy[Op]] = [
        st.builds(Standardize, dtype=floats, axis=st.just(2), mean=three, std=stds, step=st.just("n")),
        st.builds(Unstandardize, dtype=floats, axis=st.just(2), mean=three, std=stds, step=st.just("u")),
        st.builds(Unstandardize, dtype=floats, axis=st.none(), mean=one, std=one, step=st.just("u")),
        st.builds(Between, dtype=floats, lo=st.floats(-9, 0), hi=st.floats(0, 9), step=st.just("b")),
        st.builds(
            Rescale, dtype=st.sampled_from([*_FLOATS, "uint8", "uint16"]).map(dtype), onto=st.just((0.0, 1.0)),
            known=st.sampled_from([(0.0, 255.0), (-1.0, 1.0), (0.0, 65535.0)]), step=st.just("s"),
        ).map(_onto_all),
        st.builds(Promise, range=st.sampled_from([(0.0, 1.0), (-300.0, 40.0), (3.0, 1e300)])),
    ]  # fmt: skip
    return st.one_of(*several)


def _onto_all(op: Rescale) -> Rescale:
    return replace(op, onto=(op.dtype.min, op.dtype.max)) if op.dtype.is_integer else op


_CASTS: st.SearchStrategy[Op] = st.builds(
    CastTo,
    dtype=st.sampled_from(TARGETS).map(dtype),
    on_overflow=st.sampled_from(["error", "saturate"]),
    step=st.just("cast"),
)
_TURNS: st.SearchStrategy[Op] = st.permutations(range(3)).map(lambda p: Permute(perm=tuple(p), step="permute"))

# Numbers of channels are along the last axis, so that a turn is followed by casts only.
chains: st.SearchStrategy[tuple[Op, ...]] = st.tuples(
    st.lists(_elementwise() | _CASTS, max_size=4), st.lists(_TURNS | _CASTS, max_size=2)
).map(lambda halves: (*halves[0], *halves[1]))
