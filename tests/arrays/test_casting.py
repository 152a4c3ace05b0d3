"""cast and to_float32: values are those of the libraries themselves, or literals; what comes back is what went in."""

from __future__ import annotations

import logging
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tconv
from tconv.arrays.dtype import dtype_named, holds
from tconv.dtypes import DTYPES

torch = pytest.importorskip("torch", reason="it casts PyTorch's tensors")
tf = pytest.importorskip("tensorflow", reason="it casts TensorFlow's tensors")
jax = pytest.importorskip("jax", reason="it casts JAX's arrays")

MAKERS = {"numpy": np.asarray, "torch": torch.from_numpy, "tensorflow": tf.constant, "jax": jax.numpy.asarray}
VALUES = np.array([[0.1, -1.5, 65519.0], [3e-8, float("inf"), -0.0]], np.float32)


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", "float64"])
def test_floats_are_those_of_ml_dtypes_and_of_the_library_that_they_came_from(make: Any, name: str) -> None:
    x = make(VALUES)
    if name == "float64" and make is MAKERS["jax"]:
        with pytest.raises(tconv.TconvError, match="JAX is in its 32-bit mode and would narrow float64"):
            tconv.cast(x, name)
        return
    made = tconv.cast(x, name, "saturate")
    assert type(made) is type(x)
    assert tuple(made.shape) == (2, 3)
    expected = VALUES.astype(np.float64).clip(DTYPES[name].min, DTYPES[name].max).astype(DTYPES[name].numpy)
    expected[1, 1] = np.inf
    np.testing.assert_array_equal(tconv.to_numpy(made).view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float64", "int32", "bool"])
def test_torch_casts_that_lose_no_range_are_as_torch_makes_them(name: str) -> None:
    x = torch.linspace(-3, 3, 1001)
    made = tconv.cast(x, name)
    assert made.dtype == getattr(torch, name)
    assert made.to(torch.float64).equal(x.to(getattr(torch, name)).to(torch.float64))


@given(hnp.arrays(np.float64, 20, elements=st.floats(allow_nan=False)))
def test_float64_is_rounded_once(x: Any) -> None:
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16)
    made = tconv.cast(torch.from_numpy(x), "half", "inf")
    np.testing.assert_array_equal(made.numpy(), expected)


def test_what_is_of_the_dtype_already_is_the_same_object(make: Any) -> None:
    x = make(VALUES)
    for same in ("float32", np.float32, np.dtype("f4"), torch.float32, tf.float32, "f32"):
        assert tconv.cast(x, same) is x
    assert tconv.to_float32(x) is x
    parameter = torch.nn.Parameter(torch.ones(2))
    assert tconv.cast(parameter, "float32") is parameter


def test_nothing_that_goes_in_is_changed(make: Any) -> None:
    before = VALUES.copy()
    x = make(before)
    tconv.cast(x, "float16", "inf")
    tconv.to_float32(x, clip=(0, 1))
    np.testing.assert_array_equal(tconv.to_numpy(x), VALUES)
    np.testing.assert_array_equal(before, VALUES)


def test_what_does_not_fit_is_refused_with_count_extremes_and_remedy(make: Any) -> None:
    with pytest.raises(tconv.TconvError) as refused:
        tconv.cast(make(np.array([1.0, 70000.0, -80000.0], np.float32)), "float16")
    assert str(refused.value) == (
        "cast(float16): 2 of 3 values overflow float16 (from -80000 to 70000; its range is ±65504); "
        'tconv.cast(x, "float16", on_overflow="saturate") clamps to the range, "inf" makes them infinite'
    )
    with pytest.raises(tconv.TconvError, match=r"1 NaN of 2 values overflow int32 .* int32 has no NaN: replace them"):
        tconv.cast(make(np.array([1.0, float("nan")], np.float32)), "int32", "saturate")
    with pytest.raises(tconv.TconvError, match="lose the imaginary parts"):
        tconv.cast(make(np.array([1j], np.complex64)), "float32")


@pytest.mark.parametrize("call", [tconv.to_float32, lambda x: tconv.to_torch(x, dtype="float32")])
def test_the_remedy_is_one_that_the_caller_has(call: Any) -> None:
    x = np.array([1e300])
    with pytest.raises(tconv.TconvError, match=r'tconv\.cast\(x, "float32", on_overflow="saturate"\) clamps'):
        call(x)
    assert tconv.cast(x, "float32", on_overflow="saturate").tolist() == [float(np.finfo(np.float32).max)]


def test_wrong_words_are_refused_even_where_nothing_is_to_be_done() -> None:
    with pytest.raises(tconv.UsageError, match="there is no overflow policy 'wrap'"):
        tconv.cast(VALUES, "float32", "wrap")
    with pytest.raises(tconv.UsageError, match="did you mean float16"):
        tconv.cast(VALUES, "flot16")
    with pytest.raises(
        tconv.UsageError, match=r"Python's float is not the same size to all libraries; say float32 or float64"
    ):
        tconv.cast(VALUES, float)
    with pytest.raises(tconv.UsageError, match="is no dtype"):
        tconv.cast(VALUES, object())


def test_what_became_zero_is_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tconv"):
        tconv.cast(np.array([1e-9, 1.0, 0.0], np.float32), "float16")
    assert caplog.messages == ["cast(float16): 1 of 3 values became 0"]
    caplog.clear()
    tconv.cast(np.array([16777217], np.int64), "float32")
    assert caplog.messages == ["cast(float32): 1 of 1 values is not exact in float32"]


def test_scalars_stay_scalars_and_lists_become_arrays() -> None:
    made = tconv.cast(np.float64(1.5), "float16")
    assert isinstance(made, np.float16)
    assert made == np.float16(1.5)
    assert tconv.cast(0.1, "float64").item() == 0.1
    assert tconv.cast([1, 300], "uint8", "saturate").tolist() == [1, 255]
    assert tconv.cast([[1.5], [2.5]], "bf16").dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    "x",
    [VALUES[::-1, ::2], np.asfortranarray(VALUES), VALUES.astype(">f4"), VALUES[:0], VALUES[0, 0]],
)
def test_any_strides_and_byte_orders(x: Any) -> None:
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(tconv.cast(x, "float16", "inf"), expected)
    made = tconv.to_float32(x)
    assert made.flags.c_contiguous
    assert made.dtype.isnative
    np.testing.assert_array_equal(made, x)


def test_big_endian_is_no_float32_that_a_framework_takes() -> None:
    x = VALUES.astype(">f4")
    made = tconv.cast(x, "float32")
    assert made.dtype.isnative
    np.testing.assert_array_equal(made, VALUES)


def test_gradients_are_left_behind() -> None:
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    made = tconv.cast(x, "bfloat16")
    assert not made.requires_grad
    assert made.tolist() == [1.5, 2.5]
    assert tconv.to_float32(torch.nn.Parameter(torch.ones(2, dtype=torch.float64))).grad_fn is None


def test_conjugates_and_negations_are_carried_out() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j]).conj()
    assert tconv.cast(x, "complex128").tolist() == [1 - 2j, 3 + 4j]
    assert tconv.cast(x.imag, "float64").tolist() == [-2.0, 4.0]


REFUSED: dict[str, tuple[Any, str]] = {  # made when they are needed: torch warns of some of them
    "meta": (lambda: torch.empty(2, device="meta"), "device meta has no values"),
    "sparse": (lambda: torch.eye(2).to_sparse(), r"a sparse tensor .*x\.to_dense"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), r"quantized.*x\.dequantize"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "a nested tensor"),
    "complex32": (lambda: torch.ones(2, dtype=torch.complex32), r"dtype torch\.complex32"),
    "ragged": (lambda: tf.ragged.constant([[1], [2, 3]]), "RaggedTensor is no dense tensor"),
    "strings": (lambda: tf.constant(["a"]), "dtype string"),
    "tf sparse": (lambda: tf.sparse.from_dense([1]), r"SparseTensor is no .*tf\.sparse\.to_dense"),
    "text": (lambda: np.array(["a"]), "dtype <U1 is no tensor"),
    "objects": (lambda: np.array([object()]), "dtype object is no tensor"),
    "masked": (lambda: np.ma.masked_array([1.0], [True]), "a masked array"),
    "None": (lambda: None, "NoneType is no number"),
    "path": (lambda: "ckpt.pt", r"text is no tensor; tconv\.open\(path\) reads files"),
}


@pytest.mark.parametrize("kind", list(REFUSED))
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # of torch, of kinds that are new to it or about to go
def test_what_has_no_values_is_refused(kind: str) -> None:
    make, says = REFUSED[kind]
    with pytest.raises(tconv.TconvError, match=says):
        tconv.cast(make(), "float64")


def test_inside_traced_functions_it_says_what_to_use() -> None:
    with pytest.raises(tconv.TconvError, match=r"inside of tf\.function use tf\.cast"):
        tf.function(lambda x: tconv.cast(x, "float16"), autograph=False)(tf.constant([1.0]))
    with pytest.raises(tconv.TconvError, match=r"inside of jax\.jit use x\.astype"):
        jax.jit(lambda x: tconv.cast(x, "float16"))(jax.numpy.ones(2))


def test_a_variable_gives_a_tensor() -> None:
    made = tconv.cast(tf.Variable([1.5, 2.5]), "bfloat16")
    assert made.dtype == tf.bfloat16
    assert made.numpy().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("library", ["numpy", "torch", "tensorflow"])
def test_float32_is_clipped_before_it_overflows(library: str) -> None:
    x = MAKERS[library](np.array([-1e300, 0.25, 1e300, float("nan"), float("inf")]))
    made = tconv.to_numpy(tconv.to_float32(x, clip=(-1, 0.1)))
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, np.array([-1, 0.1, 0.1, np.nan, 0.1], np.float32))


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(hnp.arrays(np.float64, 5, elements=FINITE), st.tuples(FINITE, FINITE).map(sorted))
def test_clipping_rounded_values_is_rounding_clipped_ones(x: Any, bounds: list[float]) -> None:
    low, high = bounds
    with np.errstate(over="ignore"):
        expected = np.clip(x, low, high).astype(np.float32)
    if not np.isfinite(expected).all():
        with pytest.raises(tconv.TconvError, match="overflow float32"):
            tconv.to_float32(x, clip=(low, high))
        return
    np.testing.assert_array_equal(tconv.to_float32(x, clip=(low, high)), expected)


def test_pixels_keep_their_range_and_strides_go() -> None:
    x = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4).permute(2, 0, 1)
    made = tconv.to_float32(x, device="cpu")
    assert made.is_contiguous()
    assert made.equal(x.float())


@pytest.mark.parametrize("clip", [(1, 0), (0,), "ab", (float("nan"), 1)])
def test_a_clip_that_makes_no_sense_is_refused(clip: Any) -> None:
    with pytest.raises(tconv.UsageError, match=r"give \(low, high\)"):
        tconv.to_float32(VALUES, clip=clip)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(tconv.TconvError, match=r"NumPy's arrays are on the CPU.*to_torch"):
        tconv.to_float32(VALUES, device="cuda")
    if not torch.cuda.is_available():
        with pytest.raises(tconv.TconvError, match="cannot go to cuda"):
            tconv.to_float32(torch.ones(2), device="cuda")
    for name in ("nowhere", "auto"):
        with pytest.raises(tconv.UsageError, match=f'PyTorch has no device {name!r}; name it: "cpu", "cuda"'):
            tconv.to_float32(torch.ones(2), device=name)
    with pytest.raises(tconv.TconvError, match="cannot go to GPU:7"):
        tconv.to_float32(tf.constant([1.0]), device="cuda:7")


@pytest.mark.parametrize("name", list(DTYPES))
def test_objects_of_all_libraries_name_the_same_dtype(name: str) -> None:
    assert dtype_named(DTYPES[name].numpy) is DTYPES[name]
    assert dtype_named(DTYPES[name].numpy.type) is DTYPES[name]
    assert dtype_named(f"torch.{name}") is DTYPES[name]
    for library in (torch, tf):
        if found := getattr(library, name, None):
            assert dtype_named(found) is DTYPES[name]


def every(name: str) -> Any:
    """All values of a dtype of up to 16 bits; of a wider one those that another might lack."""
    dtype = DTYPES[name]
    if dtype.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    if dtype.bits == 8 and dtype.kind != "bool":
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    if dtype.is_integer:
        edge = [int(dtype.min), int(dtype.min) + 1, int(dtype.max) - 1, int(dtype.max), 2**24 + 1, 2**53 + 1]
        return np.array([v for v in edge if dtype.min <= v <= dtype.max], dtype.numpy)
    if dtype.is_float:
        tops = np.array([dtype.max, dtype.min, dtype.tiny, 1 + 2.0 ** (1 - dtype.digits)]).astype(dtype.numpy)
        return np.concatenate([tops, np.array([np.inf, np.nan]).astype(dtype.numpy)]) if dtype.has_nan else tops
    return np.array([0, 1], dtype.numpy)


REAL = [name for name, dtype in DTYPES.items() if dtype.kind != "complex" and dtype.bits >= 8]


@pytest.mark.parametrize("wide", REAL)
@pytest.mark.parametrize("narrow", REAL)
def test_a_dtype_holds_another_one_if_a_cast_there_and_back_changes_no_value(wide: str, narrow: str) -> None:
    x = every(narrow)
    with np.errstate(all="ignore"):
        there = x.astype(DTYPES[wide].numpy)
        back = there.astype(x.dtype)
        same = np.all((back.view(np.uint8) == x.view(np.uint8)).reshape(x.size, -1).all(1) | (x != x))
        nan = np.array_equal(np.isnan(there.astype(np.float64)), np.isnan(x.astype(np.float64)))
    if holds(DTYPES[wide], DTYPES[narrow]):
        assert same
        assert nan


def test_casts_on_other_devices_are_left_to_them_only_where_they_lose_nothing() -> None:
    wide = {"float32": ("float16", "bfloat16", "uint8", "int16"), "float64": ("int32",), "int64": ("uint32",)}
    assert all(holds(DTYPES[name], DTYPES[other]) for name, others in wide.items() for other in others)
    narrow = {"float32": ("int32", "float64"), "float16": ("float32", "bfloat16"), "int8": ("uint8",)}
    assert not any(holds(DTYPES[name], DTYPES[other]) for name, others in narrow.items() for other in others)


def test_a_cast_that_loses_nothing_is_the_same_made_by_the_framework(make: Any) -> None:
    from tconv.arrays.library import library, library_of

    for narrow, wide in [("float16", "float32"), ("bfloat16", "float32"), ("uint8", "float32"), ("int8", "int32")]:
        x = tconv.cast(make(np.array([1, 0, 100], np.float32)), narrow)
        made = library(library_of(x)).widen(x, DTYPES[wide])
        assert type(made) is type(x)
        np.testing.assert_array_equal(tconv.to_numpy(made), np.array([1, 0, 100], wide))
        clipped = library(library_of(x)).clip(tconv.cast(made, "float32"), 0.5, 2)
        np.testing.assert_array_equal(tconv.to_numpy(clipped), np.array([1, 0.5, 2], np.float32))


def test_on_another_device_what_loses_nothing_stays_there_and_the_rest_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No such device is needed: a CPU tensor that is said to be elsewhere goes the same ways."""
    from tconv.arrays import of_torch

    monkeypatch.setattr(of_torch, "on_cpu", lambda _x: False)
    fetched: list[Any] = []
    to_numpy = of_torch.to_numpy

    def fetch(x: Any) -> Any:
        fetched.append(x)
        return to_numpy(x)

    monkeypatch.setattr(of_torch, "to_numpy", fetch)
    halves = torch.tensor([1.5, -2.0, float("inf")], dtype=torch.float16, requires_grad=True)
    made = tconv.cast(halves, "float32")
    assert (made.dtype, made.requires_grad, made.tolist()) == (torch.float32, False, [1.5, -2.0, float("inf")])
    assert tconv.to_float32(halves, clip=(0, 1)).tolist() == [1, 0, 1]
    pixels = torch.arange(6, dtype=torch.uint8).reshape(2, 3).T
    assert tconv.to_float32(pixels, "cpu").is_contiguous()
    assert tconv.to_float32(pixels, "cpu").equal(pixels.float())
    assert not fetched
    doubles = torch.tensor([1e300, 0.5], dtype=torch.float64)
    assert tconv.to_float32(doubles, clip=(0, 1)).tolist() == [1, 0.5]
    with pytest.raises(tconv.TconvError, match="1 of 2 values overflow float16"):
        tconv.cast(doubles, "float16")
    assert len(fetched) == 2
    shared = tconv.to_tensorflow(torch.ones(4))
    assert shared.numpy().tolist() == [1, 1, 1, 1]
    assert len(fetched) == 2


@pytest.mark.parametrize("dtype", [None, {}, [1], 3, (), np.floating, b"half"])
def test_what_is_no_dtype(dtype: Any) -> None:
    with pytest.raises(tconv.UsageError, match="is no dtype; write its name"):
        tconv.cast(np.ones(1), dtype)


@pytest.mark.parametrize("clip", [(0, 10**400), (None, 1), "ab", 5])
def test_bounds_that_are_none(clip: Any) -> None:
    with pytest.raises(tconv.UsageError, match=r"clip is .*; give \(low, high\)"):
        tconv.to_float32(np.ones(1), clip=clip)
