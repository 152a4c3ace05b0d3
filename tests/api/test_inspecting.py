"""inspect: arrays of all libraries, mappings and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tconv

torch = pytest.importorskip("torch", reason="it describes PyTorch's tensors")
tf = pytest.importorskip("tensorflow", reason="it describes TensorFlow's tensors")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_arrays_are_described() -> None:
    x = np.zeros((2, 3), ">f4")
    assert tconv.inspect(x) == tconv.Info("", "numpy", "float32", (2, 3), 24, contiguous=False)
    weight = torch.nn.Parameter(torch.ones(3, 2, dtype=torch.bfloat16))
    assert tconv.inspect(weight) == tconv.Info("", "torch", "bfloat16", (3, 2), 12, requires_grad=True)
    assert not tconv.inspect(weight.T).contiguous
    found = tconv.inspect(tf.constant(1.5))
    assert (found.kind, found.dtype, found.shape, found.nbytes) == ("tensorflow", "float32", (), 4)
    assert found.device.endswith("CPU:0")
    assert tconv.inspect([1, 2]).dtype == "int64"


def test_values_are_counted() -> None:
    values = tconv.inspect(torch.tensor([1.0, float("nan"), -2.0, 0.0]), values=True).values
    assert values is not None
    assert (values.count, values.nan, values.zeros, values.min, values.max) == (4, 1, 1, -2, 1)
    big = tconv.inspect(np.arange(3 << 20), values=True).values
    assert big is not None
    assert (big.count, big.max, big.mean) == (3 << 20, (3 << 20) - 1, ((3 << 20) - 1) / 2)


def test_a_mapping_by_name() -> None:
    found = tconv.inspect({"a": np.ones(2), "b": torch.ones(1)})
    assert {name: (one.name, one.kind) for name, one in found.items()} == {"a": ("a", "numpy"), "b": ("b", "torch")}
    with pytest.raises(tconv.TconvError, match="b: text is no tensor"):
        tconv.inspect({"b": "text"})


def test_files_from_headers_and_with_values() -> None:
    found = tconv.inspect(EXAMPLES / "tiny.pt")
    assert found["state_dict.5.bias"].dtype == "float32"
    assert found["state_dict.5.bias"].kind == "pt"
    assert found["state_dict.5.bias"].values is None
    photos = tconv.inspect(str(EXAMPLES / "photos"), values=True)
    moon = photos[f"{EXAMPLES / 'photos' / 'moon.jpg'}: moon.jpg"]
    assert (moon.shape, moon.axes, moon.range) == ((240, 240, 1), "HWC", (0, 255))
    assert moon.values is not None
    assert moon.values.count == 240 * 240


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tconv.TconvError, match="there is no such file"):
        tconv.inspect(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(tconv.TconvError, match=r"x\.npy: truncated"):
        tconv.inspect(tmp_path / "x.npy")
