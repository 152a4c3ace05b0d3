"""The pickler: Python's own unpickler gets back what was put in."""

from __future__ import annotations

import pickle
import pickletools
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

from tconv.errors import TconvError
from tconv.formats.torch.objects import Device, Layout, Named, Size
from tconv.formats.torch.pickler import Call, Pickler
from tconv.tensor import Ref
from tests.formats.torch.test_unpickle import values


def dumps(value: object) -> bytes:
    return Pickler(lambda name: f"tensor {name}").dump(value)


@given(values)
def test_plain_data(value: object) -> None:
    got = pickle.loads(dumps(value))
    assert got == value
    assert type(got) is type(value)


def test_containers_and_numbers_of_all_sizes() -> None:
    ordered = OrderedDict([("b", 1), ("a", 2)])
    ordered._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]  # as torch does
    value = [
        *(ordered, defaultdict(int, {"a": 1}), defaultdict(None), Counter("aab"), {1: {2: {3: []}}}),
        *(-1, 0, 255, 256, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, -(2**1000), 0.1, float("-inf")),
        *(bytearray(b"ab"), slice(1, None), range(1, 9, 2), list(range(3000)), {i: -i for i in range(3000)}),
        *[str(i) for i in range(600)],  # more than one byte counts
        *[str(i) for i in range(600)],
    ]
    got = pickle.loads(dumps(value))
    assert got == value
    assert [type(v) for v in got] == [type(v) for v in value]
    assert vars(got[0]) == {"_metadata": {"": {"version": 1}}}
    assert got[1].default_factory is int


def test_numpy_values() -> None:
    arrays: list[Any] = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.array(["a", "bc"])]
    got = pickle.loads(dumps([*arrays, np.float16(1.5), np.dtype("<f8")]))
    for array, other in zip(got, arrays, strict=False):
        assert (array.dtype, array.shape, array.tolist()) == (other.dtype, other.shape, other.tolist())
        assert array.flags.f_contiguous == other.flags.f_contiguous
    assert (type(got[3]), got[3], got[4]) == (np.float16, 1.5, np.dtype("<f8"))


def test_what_only_torch_has() -> None:
    value = [Size((2, 3)), Device("cuda", 1), Device("cpu"), Named("torch.float16"), Layout("torch.strided")]
    want = [torch.Size([2, 3]), torch.device("cuda:1"), torch.device("cpu"), torch.float16, torch.strided]
    got = pickle.loads(dumps(value))
    assert got == want
    assert [type(v) for v in got] == [type(v) for v in want]


def test_references_become_what_the_tensor_is_written_as() -> None:
    assert pickle.loads(dumps({"a": [Ref("a.0")]})) == {"a": ["tensor a.0"]}


def test_calls_with_items_and_a_state() -> None:
    call = Call("collections.OrderedDict", ([("a", 1)],), {"_metadata": 2}, {"b": 3})
    got = pickle.loads(dumps(call))
    assert (got, vars(got)) == (OrderedDict(a=1, b=3), {"_metadata": 2})


def test_only_opcodes_that_torch_load_knows() -> None:
    """Those of protocol 2, by the names that it has for Python's modules."""
    data = dumps([{"a": (1, 2.5, "x", b"y", True, None, {1}, 2**70)}, OrderedDict(a=1)])
    ops = {op.name for op, _, _ in pickletools.genops(data)}
    assert ops == {
        *("PROTO", "EMPTY_LIST", "MARK", "EMPTY_DICT", "BINUNICODE", "BINPUT", "BINGET", "BININT1", "BINFLOAT"),
        *("GLOBAL", "TUPLE", "REDUCE", "NEWTRUE", "NONE", "APPENDS", "LONG1", "SETITEMS", "EMPTY_TUPLE", "STOP"),
    }
    assert b"c__builtin__\nset\n" in data


@pytest.mark.parametrize("value", [object(), 1 << 10_000, torch.zeros(1), {"x": [object()]}])
def test_what_it_cannot_write_is_refused(value: object) -> None:
    with pytest.raises(TconvError, match=r"a checkpoint cannot hold an? (object|integer|Tensor)"):
        dumps(value)
