"""Names, aliases and limits of dtypes against those of NumPy, ml_dtypes and torch."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tconv.dtypes import ALIASES, DTYPES, dtype, from_numpy
from tconv.errors import UsageError

FLOATS = [d for d in DTYPES.values() if d.is_float]
INTEGERS = [d for d in DTYPES.values() if d.is_integer]


@pytest.mark.parametrize("one", FLOATS, ids=str)
def test_limits_of_floats_are_those_of_the_libraries(one: object) -> None:
    found = dtype(str(one))
    info = ml_dtypes.finfo(found.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has no types for it
    assert found.max == float(info.max)
    assert found.min == float(info.min)
    assert found.tiny == float(info.smallest_subnormal)
    assert found.digits == info.nmant + 1
    assert found.bits == info.bits


@pytest.mark.parametrize("one", FLOATS, ids=str)
def test_inf_and_nan_exist_where_the_libraries_have_them(one: object) -> None:
    found = dtype(str(one))
    with np.errstate(all="ignore"):
        values = np.array([np.inf, np.nan], np.float32).astype(found.numpy).astype(np.float64)
    assert bool(np.isinf(values[0])) == found.has_inf
    assert bool(np.isnan(values[1])) == found.has_nan


@pytest.mark.parametrize("one", INTEGERS, ids=str)
def test_limits_of_integers_are_those_of_the_libraries(one: object) -> None:
    found = dtype(str(one))
    info = ml_dtypes.iinfo(found.numpy)  # type: ignore[no-untyped-call]  # as above
    assert (found.min, found.max, found.bits) == (info.min, info.max, info.bits)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("half", "float16"), ("FP16", "float16"), ("torch.float16", "float16"), ("np.float16", "float16"),
        ("torch.bfloat16", "bfloat16"), ("bf16", "bfloat16"), ("long", "int64"), ("tf.uint8", "uint8"),
        ("torch.half", "float16"), ("double", "float64"), ("e4m3", "float8_e4m3fn"), (" float32 ", "float32"),
    ],
)  # fmt: skip
def test_people_may_type_it_their_way(text: str, name: str) -> None:
    assert dtype(text).name == name


def test_every_alias_names_a_dtype() -> None:
    assert set(ALIASES.values()) <= set(DTYPES)


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no dtype 'floot16'; did you mean .*float16"):
        dtype("floot16")


def test_the_nearest_comes_first() -> None:
    with pytest.raises(UsageError, match=r"did you mean float32\?"):
        dtype("flot32")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<f4", "float32"), (">f8", "float64"), ("=f2", "float16"), ("|u1", "uint8"), ("<i8", "int64"), ("|b1", "bool"),
        ("<c16", "complex128"), ("f4", "float32"), ("u2", "uint16"), ("i2", "int16"),
    ],
)  # fmt: skip
def test_the_codes_of_numpy_are_pointed_at_their_names(text: str, name: str) -> None:
    assert np.dtype(text).name == name
    with pytest.raises(UsageError, match=f"NumPy's {re.escape(repr(text))} is called {name} here"):
        dtype(text)


def test_what_numpy_calls_f8_is_told_from_eight_bits() -> None:
    with pytest.raises(UsageError, match=r"called float64 here; floats of 8 bits are float8_e4m3fn and float8_e5m2"):
        dtype("f8")


@pytest.mark.parametrize("text", ["<f3", "<V4", "<", "f99", ""])
def test_codes_that_are_none_get_what_is_near_or_all_names(text: str) -> None:
    with pytest.raises(UsageError, match=r"did you mean|there are bool, int4"):
        dtype(text)


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_four_bits_are_packed_in_files(name: str) -> None:
    assert [dtype(name).nbytes(n) for n in (0, 1, 2, 3)] == [0, 1, 1, 2]


def test_bool_takes_a_byte() -> None:
    assert dtype("bool").nbytes(3) == 3


@pytest.mark.parametrize("text", ["<f4", ">f4", "<i8", "|b1", "<c16"])
def test_numpy_dtypes_are_found_whatever_their_byte_order(text: str) -> None:
    found = from_numpy(np.dtype(text))
    assert found is not None
    assert found.numpy == np.dtype(text).newbyteorder("<")


@pytest.mark.parametrize("text", ["O", "U3", "S2", "M8[s]", "V4"])
def test_what_is_no_tensor_element_has_no_dtype(text: str) -> None:
    assert from_numpy(np.dtype(text)) is None


def test_torch_knows_every_name_that_it_shares() -> None:
    torch = pytest.importorskip("torch", reason="compares names with those of torch")
    shared = [d for d in DTYPES.values() if hasattr(torch, d.name) and d.bits >= 8]
    assert len(shared) >= 15
    for one in shared:
        assert torch.empty((), dtype=getattr(torch, one.name)).element_size() == one.itemsize
