"""Values on the grid and back, bit for bit as onnxruntime does it; scales and zero points by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tconv.errors import UsageError
from tconv.quant.grid import TARGETS, Grid, grid
from tests.quant.onnx_linear import TYPES, linear

if TYPE_CHECKING:
    from tconv.ops import Array

LINEAR = [name for name in TARGETS if name in TYPES]
SCHEMES = [(name, scheme) for name in LINEAR for scheme in ("symmetric", "affine")]
SCHEMES = [
    (n, s) for n, s in SCHEMES if (s == "affine") == n.startswith("u") or (n.startswith("int") and s == "affine")
]


def there_and_back(how: Grid, x: Array, scale: Array, zero: Array | None, axis: int) -> tuple[Array, Array]:
    """As ``linear`` gives it."""
    shape = [1] * x.ndim
    if scale.ndim:
        shape[axis] = -1
    wide = None if zero is None else zero.astype(np.float32).reshape(shape)
    q = np.empty(x.shape, how.dtype.numpy)
    how.quantize(x.copy(), scale.reshape(shape), wide, q)
    return q.astype(np.float32), how.dequantize(q, scale.reshape(shape), wide)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize(("name", "scheme"), SCHEMES)
def test_random_tensors_as_onnxruntime_has_them(name: str, scheme: str, axis: int | None) -> None:
    how = grid(name, scheme)  # type: ignore[arg-type]  # one of the schemes
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((4, 6, 5)) * 10.0 ** rng.integers(-3, 4, (4, 6, 5))).astype(np.float32)
    x[0, 0, 0], x[1, 2, 3] = -0.0, 0
    others = None if axis is None else tuple(n for n in range(3) if n != axis % 3)
    low, high = x.min(others).astype(np.float64), x.max(others).astype(np.float64)
    scale, zero = how.parameters(low, high)
    assert scale.dtype == np.float32
    made = there_and_back(how, x, scale, zero, axis or 0)
    want = linear(x, scale, zero, name, axis or 0)
    if not how.dtype.is_float:  # onnxruntime takes -128 too, and there is none here
        want = np.maximum(want[0], how.low), want[1]
    for got, wanted in zip(made, want, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("name", "scheme"), SCHEMES)
@given(st.data())
@settings(max_examples=15)
def test_any_value_and_scale_as_onnxruntime_has_them(name: str, scheme: str, data: st.DataObject) -> None:
    """Ties, values far outside, quotients that only float32 takes for a tie."""
    how = grid(name, scheme)  # type: ignore[arg-type]  # one of the schemes
    finite = st.floats(-(2.0**100), 2.0**100, width=32)
    scale = np.array(data.draw(st.floats(2.0**-20, 2.0**20, width=32)), np.float32)
    ties = st.integers(-300, 300).map(lambda n: float(np.float32(n / 2) * scale))
    x = np.array(data.draw(st.lists(finite | ties, min_size=1, max_size=30)), np.float32)
    zero = None
    if how.affine:
        zero = np.array(data.draw(st.integers(int(how.low), int(how.high))), how.holder.numpy)
    made, want = there_and_back(how, x, scale, zero, 0), linear(x, scale, zero, name, 0)
    inside = want[0] >= how.low  # onnxruntime takes -128 too
    assert (made[0][~inside] == how.low).all()
    for got, wanted in zip(made, want, strict=True):
        np.testing.assert_array_equal(got[inside], wanted[inside])


def test_symmetric_scales_by_hand() -> None:
    how = grid("int8")
    scale, zero = how.parameters(np.array([-1.27, 0, 0, -1e-44]), np.array([0.5, 0, 254, 0]))
    assert zero is None
    assert scale.tolist() == [np.float32(0.01), 1, 2, 2.0**-149]


def test_affine_ranges_hold_0() -> None:
    how = grid("uint8")
    scale, zero = how.parameters(np.array([2.0, -10, 0, -1]), np.array([10.0, -2, 0, 3]))
    assert zero is not None
    assert scale.tolist() == [np.float32(10 / 255), np.float32(10 / 255), 1, np.float32(4 / 255)]
    assert zero.tolist() == [0, 255, 0, 64]
    scale, zero = grid("int8", "affine").parameters(np.array([-1.0]), np.array([3.0]))
    assert zero is not None
    assert (scale.tolist(), zero.tolist()) == ([np.float32(4 / 255)], [-64])  # -128 + 63.75


def test_the_widest_range_there_is_has_a_finite_scale() -> None:
    top = float(np.finfo(np.float32).max)
    scale, zero = grid("uint8").parameters(np.array(-top), np.array(top))
    assert np.isfinite(scale)
    assert zero is not None
    assert int(zero) == 128


def test_nf4_takes_the_nearest_of_its_sixteen_numbers() -> None:
    how = grid("nf4")
    x = np.array([-2, -1.4, -0.1, 0, 0.08, 0.16, 2, 1.8], np.float32)
    q = np.empty(8, how.dtype.numpy)
    how.quantize(x, np.float32(2), None, q)
    assert q.astype(int).tolist() == [0, 1, 6, 7, 8, 8, 15, 15]
    assert how.dequantize(q, np.float32(2), None)[[0, 1, 3]].tolist() == [
        -2,
        float(np.float32(-0.6961928009986877)) * 2,
        0,
    ]


@pytest.mark.parametrize(
    ("name", "scheme", "words"),
    [
        ("int32", None, "no quantization to int32"),
        ("uint8", "symmetric", "no symmetric scheme for uint8"),
        ("e4m3", "affine", "no affine scheme for float8_e4m3fn"),
        ("nf4", "affine", "no affine scheme for nf4"),
        ("int8", "afine", "no scheme 'afine'"),
    ],
)
def test_what_there_is_not(name: str, scheme: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        grid(name, scheme)  # type: ignore[arg-type]  # wrong on purpose


TOP = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("low", "high"), [(-TOP, TOP), (0, TOP), (-TOP, 0), (-TOP / 3, TOP), (-TOP, TOP / 7), (-1e-45, TOP), (TOP, TOP)]
)
def test_the_largest_values_come_back_finite_and_near(name: str, low: float, high: float) -> None:
    for scheme in ("symmetric", "affine"):
        try:
            how = grid(name, scheme)
        except UsageError:
            continue
        x = np.array([low, 0, high], np.float32)
        scale, zero = how.parameters(np.array(low), np.array(high))
        wide = None if zero is None else zero.astype(np.float32)
        q = np.empty(3, how.dtype.numpy)
        how.quantize(x.copy(), scale, wide, q)
        back = how.dequantize(q, scale, wide).astype(np.float64)  # a warning of NumPy's would be an error here
        assert np.isfinite(back).all()
        far = np.abs(x).argmax()
        if how.affine:  # whose zero point is rounded, by half a step
            assert np.abs(back - x).max() <= 1.01 * (max(high, 0) - min(low, 0)) / (how.high - how.low)
        else:
            assert back[far] == pytest.approx(x[far], rel=1e-6)


def test_a_value_far_beyond_the_range_becomes_its_end() -> None:
    q = np.empty(2, np.int8)
    grid("int8").quantize(np.array([TOP, -TOP], np.float32), np.float32(1e-44), None, q)
    assert q.tolist() == [127, -127]
