"""to_numpy, to_torch, to_tensorflow: the values as each library has them, and whose memory they are in."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tconv
from tconv.dtypes import DTYPES
from tests.arrays.test_casting import REFUSED

torch = pytest.importorskip("torch", reason="it converts PyTorch's tensors")
tf = pytest.importorskip("tensorflow", reason="it converts TensorFlow's tensors")
jax = pytest.importorskip("jax", reason="it converts JAX's arrays")

MAKERS = {"numpy": np.asarray, "torch": torch.from_numpy, "tensorflow": tf.constant, "jax": jax.numpy.asarray}
TARGETS: list[Any] = [tconv.to_numpy, tconv.to_torch, tconv.to_tensorflow]
X = np.array([[1.5, -2.0, 3.0], [0.0, 5.0, 6.0]], np.float32)


@pytest.mark.parametrize("source", list(MAKERS))
@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int32", "float16", "float32", "bfloat16", "float8_e5m2", "complex64"]
)
@pytest.mark.parametrize("copy", [None, True])
def test_all_dtypes_go_from_everywhere_to_everywhere(source: str, to: Any, name: str, copy: bool | None) -> None:
    x = tconv.cast(MAKERS[source](abs(X)), name)
    made = to(x, copy=copy)
    assert tuple(made.shape) == (2, 3)
    assert tconv.inspect(made).dtype == name
    np.testing.assert_array_equal(tconv.to_numpy(made), abs(X).astype(DTYPES[name].numpy))
    if copy:
        assert not tconv.shares_memory(x, made)


@pytest.mark.parametrize("name", [n for n, d in DTYPES.items() if d.bits >= 8])
def test_torch_numpy_and_back_keep_every_bit(name: str) -> None:
    raw = np.arange(256, dtype=np.uint8)
    x = (raw[:2] if name == "bool" else raw).view(DTYPES[name].numpy)
    made = tconv.to_torch(x)
    assert made.dtype == getattr(torch, name)
    back = tconv.to_numpy(made)
    assert back.dtype == x.dtype
    assert back.tobytes() == x.tobytes()
    assert tconv.to_numpy(tconv.to_tensorflow(x)).tobytes() == x.tobytes()


def test_torch_has_no_tensors_of_four_bits() -> None:
    with pytest.raises(tconv.TconvError, match="PyTorch has no tensors of int4"):
        tconv.to_torch(np.zeros(3, ml_dtypes.int4))
    assert tconv.to_numpy(tconv.to_tensorflow(np.array([-8, 7], ml_dtypes.int4))).tolist() == [-8, 7]


@pytest.mark.parametrize(
    ("x", "dtype", "values"),
    [
        ([1, 2], "int64", [1, 2]),
        (3, "int64", 3),
        (True, "bool", True),
        ([0.5, 1], "float32", [0.5, 1]),
        (0.5, "float32", 0.5),
        ([], "float32", []),
        (1j, "complex64", 1j),
        ([2**63], "uint64", [2**63]),
        ([[1, 2], [3, 4]], "int64", [[1, 2], [3, 4]]),
        (np.float64(0.5), "float64", 0.5),
        ([np.float64(0.5)], "float64", [0.5]),
        ([np.array([1, 2], np.int16)] * 2, "int16", [[1, 2], [1, 2]]),
        ((torch.tensor([1.5]), torch.tensor([2.5])), "float32", [[1.5], [2.5]]),
        (range(3), "int64", [0, 1, 2]),
    ],
)
def test_numbers_and_lists_keep_integers_integers(x: Any, dtype: str, values: Any) -> None:
    for made in (tconv.to_torch(x), tconv.to_tensorflow(x)):
        assert tconv.inspect(made).dtype == dtype
        assert tconv.to_numpy(made).tolist() == values


def test_an_explicit_dtype_is_reached_from_the_numbers_themselves() -> None:
    assert tconv.to_torch([0.1], "float64").item() == 0.1
    assert tconv.to_torch([1, 2], "float16").tolist() == [1, 2]
    assert tconv.to_tensorflow([1e300], tf.float64).numpy().item() == 1e300
    with pytest.raises(tconv.TconvError, match="1 of 2 values overflow uint8"):
        tconv.to_torch([1, 300], torch.uint8)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        ([2**63, -1], "no dtype holds integers from -1 to 9223372036854775808"),
        ([2**70], "no dtype holds the integer 1180591620717411303424"),
        ([[1], [1, 2]], "its rows are of unequal shapes"),
        ([torch.ones(1), torch.ones(2)], "its rows are of unequal shapes"),
        ([1e300], "a number too large for float32; say dtype='float64'"),
        ([None, 1], "NoneType is no number"),
        ({"a": 1}, "dict is no number"),
        (["a"], "is no tensor"),
    ],
)
def test_what_no_array_can_be_made_of_is_refused(x: Any, says: str) -> None:
    with pytest.raises(tconv.TconvError, match=says):
        tconv.to_torch(x)


def test_torch_and_numpy_share_memory_both_ways() -> None:
    x = X.copy()
    made = tconv.to_torch(x)
    made[0, 0] = 9
    assert x[0, 0] == 9
    assert tconv.shares_memory(x, made)
    back = tconv.to_numpy(made)
    back[0, 1] = 7
    assert made[0, 1] == 7
    assert tconv.to_torch(x, copy=False).data_ptr() == x.ctypes.data
    assert tconv.to_numpy(torch.zeros(2, dtype=torch.bfloat16), copy=False).dtype == ml_dtypes.bfloat16


def test_torch_memory_is_tensorflow_s_without_a_copy() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.int64):
        x = torch.ones(2, 3, dtype=dtype)
        assert tconv.shares_memory(x, tconv.to_tensorflow(x))
        assert not tconv.shares_memory(x, tconv.to_tensorflow(x, copy=True))
    x = torch.ones(2, 3)
    assert tconv.to_tensorflow(x.T).numpy().tolist() == [[1, 1]] * 3
    with pytest.raises(tconv.TconvError, match="cannot be shared: it is not contiguous"):
        tconv.to_tensorflow(x.T, copy=False)
    with pytest.raises(tconv.TconvError, match="multiple of 64 bytes"):
        tconv.to_tensorflow(torch.ones(8)[1:], copy=False)
    with pytest.raises(tconv.TconvError, match="cannot look at float8_e5m2"):
        tconv.to_tensorflow(torch.ones(2).to(torch.float8_e5m2), copy=False)


def test_a_numpy_array_is_tensorflow_s_own_only_if_that_is_asked_for() -> None:
    room = np.zeros(100, np.float32)
    start = -room.ctypes.data % 64 // 4
    x = room[start : start + 4]
    assert not tconv.shares_memory(x, tconv.to_tensorflow(x))
    assert not tconv.shares_memory(x, tconv.to_tensorflow(x, "float32"))
    made = tconv.to_tensorflow(x, copy=False)
    assert tconv.shares_memory(x, made)
    x[0] = 3
    assert made.numpy()[0] == 3


@pytest.mark.parametrize("source", ["tensorflow", "jax"])
def test_what_is_immutable_is_lent_to_be_read_only(source: str) -> None:
    x = MAKERS[source](X)
    values = tconv.to_numpy(x)
    assert tconv.shares_memory(x, values)
    assert not values.flags.writeable
    assert not tconv.shares_memory(x, tconv.to_torch(x))
    assert tconv.shares_memory(x, tconv.to_torch(x, copy=False))
    np.testing.assert_array_equal(tconv.to_torch(x, copy=False).numpy(), X)


def test_read_only_arrays_are_copied_for_torch() -> None:
    x = X.copy()
    x.flags.writeable = False
    made = tconv.to_torch(x)
    made[0, 0] = 9
    assert x[0, 0] == 1.5
    with pytest.raises(tconv.TconvError, match="cannot be shared: it is read-only"):
        tconv.to_torch(x, copy=False)


@pytest.mark.parametrize("x", [X[::-1], X[:, ::2], X.T, X.astype(">f4"), X[0, 0], X[:0], np.broadcast_to(X, (2, 2, 3))])
def test_any_strides_and_byte_orders(x: Any) -> None:
    for to in TARGETS:
        np.testing.assert_array_equal(tconv.to_numpy(to(x)), np.asarray(x))


def test_fields_of_records_are_no_strides_that_torch_has() -> None:
    records = np.zeros(3, [("a", "u1"), ("b", "<f4")])
    records["b"] = [1, 2, 3]
    assert tconv.to_torch(records["b"]).tolist() == [1, 2, 3]
    with pytest.raises(tconv.TconvError, match="no strides like these"):
        tconv.to_torch(records["b"], copy=False)


def test_copies_that_were_not_to_be_made_are_refused() -> None:
    for to in TARGETS:
        with pytest.raises(tconv.TconvError, match="another dtype needs memory of its own; leave out copy=False"):
            to(X, "float16", copy=False)
    for x in ([1.0, 2.0], X.astype(">f4")):
        with pytest.raises(tconv.TconvError, match="cannot be shared"):
            tconv.to_numpy(x, copy=False)


def test_what_is_of_the_library_already_is_the_same_object() -> None:
    a, b = torch.ones(2, requires_grad=True), tf.constant([1.0])
    assert tconv.to_torch(a) is a
    assert tconv.to_torch(a, "float32", "cpu") is a
    assert tconv.to_tensorflow(b) is b
    assert tconv.to_numpy(X) is X
    copied = tconv.to_torch(a, copy=True)
    assert not tconv.shares_memory(a, copied)
    assert not tconv.shares_memory(b, tconv.to_tensorflow(b, copy=True))
    assert not tconv.shares_memory(X, tconv.to_numpy(X, copy=True))


def test_gradients_devices_and_variables() -> None:
    assert tconv.to_numpy(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    assert tconv.to_numpy(tf.Variable([1.0, 2.0])).tolist() == [1, 2]
    assert tconv.to_tensorflow(X, device="cpu").device.endswith("CPU:0")
    assert tconv.to_torch(X, device="cpu").device.type == "cpu"
    with pytest.raises(tconv.TconvError, match="device meta has no values"):
        tconv.to_numpy(torch.empty(2, device="meta"))
    with pytest.raises(tconv.TconvError, match=r"cannot go to TPU:0; TensorFlow has CPU:0"):
        tconv.to_tensorflow(X, device="tpu")


def test_objects_that_show_themselves_as_arrays() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 2), (1, 2, 3))
    assert tconv.to_torch(image).shape == (2, 4, 3)
    assert tconv.to_torch(memoryview(b"abc")).tolist() == [97, 98, 99]


def test_an_unknown_framework_is_pointed_at_the_right_one() -> None:
    from tconv.arrays.library import library

    with pytest.raises(tconv.UsageError, match="there is no framework 'tensorflw'; did you mean tensorflow"):
        library("tensorflw")


def test_a_framework_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from tconv.arrays.library import library

    for module in [m for m in sys.modules if m == "jax" or m == "tconv.arrays.of_jax"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "tconv.arrays.of_jax")
    with pytest.raises(tconv.TconvError, match="jax is not installed; pip install jax"):
        library("jax")


@pytest.mark.parametrize(
    ("x", "dtype", "values"),
    [
        ([1, 2**63], "uint64", [1, 2**63]),
        ([[0, 2**64 - 1]], "uint64", [[0, 2**64 - 1]]),
        ([True, 2**63], "uint64", [1, 2**63]),
        (2**63, "uint64", 2**63),
        ([2**64, 0.5], "float64", [2.0**64, 0.5]),
        ([1, 2.5], "float64", [1.0, 2.5]),
    ],
)
def test_large_integers_keep_their_value(x: Any, dtype: str, values: Any) -> None:
    made = tconv.to_numpy(x)
    assert made.dtype == dtype
    assert made.tolist() == values


@pytest.mark.parametrize("x", [Path("a.npy"), ["a"], "a"])
def test_a_path_is_to_be_opened(x: Any) -> None:
    with pytest.raises(tconv.TconvError, match=r"text is no tensor; tconv\.open\(path\) reads files"):
        tconv.to_numpy(x)


def test_bytes_are_to_be_told_their_dtype() -> None:
    with pytest.raises(tconv.TconvError, match=r"bytes are no tensor; np\.frombuffer"):
        tconv.to_torch(b"abc")


def test_the_first_that_is_no_number_is_named() -> None:
    with pytest.raises(tconv.TconvError, match="NoneType is no number"):
        tconv.to_numpy([1, 2, None])


def test_what_fails_as_it_becomes_an_array() -> None:
    class Broken:
        def __array__(self, *_: object, **__: object) -> None:
            raise RuntimeError("gone")

    with pytest.raises(tconv.TconvError, match="NumPy makes no array of this Broken: gone"):
        tconv.to_numpy(Broken())


def test_who_speaks_dlpack_only_is_an_array_too() -> None:
    class Foreign:
        def __init__(self, tensor: Any) -> None:
            self._tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self._tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self._tensor.__dlpack_device__()

    tensor = torch.arange(3.0)
    made = tconv.to_numpy(Foreign(tensor))
    assert made.tolist() == [0.0, 1.0, 2.0]
    assert tconv.shares_memory(made, tensor)
    assert tconv.to_torch(Foreign(tensor)).tolist() == [0.0, 1.0, 2.0]


def test_a_matrix_is_an_array() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises against it
        x = np.matrix([[1.0, 2.0]])
    made = tconv.to_numpy(x)
    assert type(made) is np.ndarray
    assert tconv.shares_memory(made, x)
    summary = tconv.inspect(x, values=True).values
    assert summary is not None
    assert summary.max == 2.0


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # as above
@pytest.mark.parametrize("kind", ["meta", "sparse", "quantized", "nested", "complex32"])
def test_torch_tensors_without_values_are_refused_as_they_are(kind: str) -> None:
    make, says = REFUSED[kind]
    for function in (tconv.to_torch, lambda x: tconv.shares_memory(x, x)):
        with pytest.raises(tconv.TconvError, match=says):
            function(make())


@pytest.mark.parametrize("kind", ["ragged", "strings", "tf sparse"])
def test_tensorflow_tensors_without_values_are_refused_as_they_are(kind: str) -> None:
    make, says = REFUSED[kind]
    for function in (tconv.to_tensorflow, tconv.to_torch, lambda x: tconv.shares_memory(x, x)):
        with pytest.raises(tconv.TconvError, match=says):
            function(make())


@pytest.mark.parametrize("device", ["cpu", "CPU", "cpu:0", torch.device("cpu")])
def test_the_cpu_has_many_names(device: Any) -> None:
    x = np.ones(2, np.float32)
    tensor = torch.ones(2)
    assert tconv.to_float32(x, device) is x
    assert tconv.to_float32(tensor, device) is tensor
    assert tconv.to_tensorflow(x, device=device).numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("device", ["/CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"])
def test_devices_in_the_words_of_tensorflow(device: str) -> None:
    assert tconv.to_tensorflow([1.0], device=device).numpy().tolist() == [1.0]


def test_devices_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="the device is its own")
    x = jax.numpy.ones(2)
    assert tconv.to_float32(x, jax.devices()[0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("device", [0, "", " ", ["cpu"], b"cpu"])
def test_what_names_no_device(device: Any) -> None:
    for function in (tconv.to_float32, lambda x, d: tconv.to_torch(x, device=d)):
        with pytest.raises(tconv.UsageError, match=r"device is .*; name it"):
            function(np.ones(2), device)
