"""Storages and the views of them: every number from the file is checked against what the file has."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tconv.errors import TconvError, raise_all
from tests.formats.conformance import values
from tests.formats.torch.made import read_pt, to_numpy, written

FLOATS = struct.pack("<6f", *range(6))


class Stored:
    """Pickles as the persistent id ``identity``."""

    def __init__(self, *identity: object) -> None:
        self.identity = identity


class Rebuilt:
    """Pickles as a call of one of torch's functions."""

    def __init__(self, *args: object, function: Any = torch._utils._rebuild_tensor_v2) -> None:
        self.call: tuple[Any, tuple[Any, ...]] = (function, args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


class Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        return value.identity if isinstance(value, Stored) else None


def pickled(value: object) -> bytes:
    buffer = io.BytesIO()
    Pickler(buffer, 2).dump(value)
    return buffer.getvalue()


def tensor(
    storage: object = None, offset: object = 0, shape: object = (2, 3), stride: object = (3, 1), *more: object
) -> Rebuilt:
    """By default the six floats under the key "0"."""
    held = Stored("storage", torch.FloatStorage, "0", "cpu", 6) if storage is None else storage
    return Rebuilt(held, offset, shape, stride, False, OrderedDict(), *more)


def archive(path: Path, value: object, members: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in {"data.pkl": pickled(value), "version": b"3\n", **members}.items():
            made.writestr(f"a/{name}", data)
    return path


def legacy(path: Path, value: object, keys: object, content: bytes) -> Path:
    start = [0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}]
    path.write_bytes(b"".join(pickled(v) for v in [*start, value, keys]) + content)
    return path


def counted(*floats: float) -> bytes:
    return struct.pack(f"<q{len(floats)}f", len(floats), *floats)


def refused(path: Path, said: str) -> TconvError:
    with pytest.raises(TconvError, match=said) as caught:
        raise_all(read_pt(path).others)
    assert caught.value.file == str(path)
    return caught.value


def test_what_is_made_by_hand_reads_as_it_does_with_torch(tmp_path: Path) -> None:
    value = {"w": tensor(), "t": tensor(None, 1, (2, 2), (1, 3))}
    for path in (
        archive(tmp_path / "zip.pt", value, {"data/0": FLOATS}),
        legacy(tmp_path / "legacy.pt", legacy_value(value), ["0"], counted(*range(6))),
    ):
        w, t = read_pt(path).tensors
        assert values(w).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert values(t).tolist() == [[1, 4], [2, 5]]
        loaded = torch.load(path, weights_only=True)
        assert loaded["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert loaded["t"].tolist() == [[1, 4], [2, 5]]


def legacy_value(value: Mapping[str, Rebuilt]) -> dict[str, Rebuilt]:
    """With identities of six parts, as the legacy layout has them."""
    return {n: Rebuilt(Stored(*r.call[1][0].identity, None), *r.call[1][1:]) for n, r in value.items()}


def test_views_of_storages_in_old_files(tmp_path: Path) -> None:
    part = Stored("storage", torch.FloatStorage, "0", "cpu", 6, ("view", 2, 3))
    value = {"whole": legacy_value({"w": tensor()})["w"], "part": tensor(part, 1, (2,), (1,))}
    path = legacy(tmp_path / "x.pt", value, ["0"], counted(*range(6)))
    whole, got = read_pt(path).tensors
    assert values(whole).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert values(got).tolist() == torch.load(path, weights_only=True)["part"].tolist() == [3, 4]
    past = {"w": tensor(part, 2, (2,), (1,))}
    refused(legacy(tmp_path / "y.pt", past, ["0"], counted(*range(6))), "beyond the end of its storage")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (tensor(None, 1), "beyond the end of its storage"),
        (tensor(None, 0, (2, 4)), "beyond the end of its storage"),
        (tensor(None, 0, (2, 3), (4, 1)), "beyond the end of its storage"),
        (tensor(None, 0, (1 << 40,), (1,)), "beyond the end of its storage"),
        (tensor(None, 1 << 62, (1,), (1,)), "beyond the end of its storage"),
        (tensor(None, 0, (2,), (1 << 62,)), "beyond the end of its storage"),
        (tensor(None, 0, (2,) * 64, (1 << 62,) * 64), "too large"),
        (tensor(None, 0, (1 << 62,), (0,)), "too large"),
        (tensor(None, 0, (1 << 32, 1 << 32), (0, 0)), "too large"),
        (tensor(None, -1, (2, 3), (3, 1)), "impossible offset"),
        (tensor(None, 1 << 63, (2, 3), (3, 1)), "impossible offset"),
        (tensor(None, True, (2, 3), (3, 1)), "impossible offset"),
        (tensor(None, 0, (2, -3), (3, 1)), "impossible shape"),
        (tensor(None, 0, (2, 3), (3, -1)), "impossible stride"),
        (tensor(None, 0, (2.0, 3), (3, 1)), "impossible shape"),
        (tensor(None, 0, "23", (3, 1)), "impossible shape"),
        (tensor(None, 0, (1,) * 65, (1,) * 65), "65 axes"),
        (tensor(None, 0, (2, 3), (3,)), "2 axes and 1 strides"),
        (tensor("0"), "no storage"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 7)), "should have 28 bytes and has 24"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", -1)), "impossible size"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 1 << 63)), "impossible size"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 1 << 61)), "should have .* bytes and has 24"),
        (tensor(Stored("storage", torch.DoubleStorage, "0", "cpu", 6)), "should have 48 bytes and has 24"),
        (tensor(Stored("storage", torch.FloatStorage, "7", "cpu", 6)), "no 'data/7'"),
        (tensor(Stored("storage", torch.FloatStorage, "../0", "cpu", 6)), "no 'data/../0'"),
        (tensor(Stored("storage", torch.FloatStorage, 0, "cpu", 6)), "no text"),
        (tensor(Stored("storage", torch.FloatStorage, "0", None, 6)), "no text"),
        (tensor(Stored("storage", "FloatStorage", "0", "cpu", 6)), "of no type"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu")), "no storage"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 6, ("v", 4, 3))), "part beyond the end"),
        (tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 6, ("v", 4))), "part of a storage that is none"),
        (tensor(Stored("storage", torch.QInt8Storage, "0", "cpu", 6)), "QInt8Storage"),
        ([tensor(), tensor(Stored("storage", torch.IntStorage, "0", "cpu", 6))], "in two ways"),
        ([tensor(), tensor(Stored("storage", torch.FloatStorage, "0", "cpu", 5))], "in two ways"),
        (tensor(None, 0, (2, 3), (3, 1), {"conj": True}), "marked to be conjugated"),
        (tensor(None, 0, (2, 3), (3, 1), {"flip": True}), "marks that are not known"),
        (tensor(None, 0, (2, 3), (3, 1), {"neg": 1}), "where a bool belongs"),
    ],
)
def test_impossible_tensors_are_refused(tmp_path: Path, made: object, said: str) -> None:
    refused(archive(tmp_path / "x.pt", made, {"data/0": FLOATS}), said)


def test_a_problem_with_a_tensor_names_it(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.pt", {"ok": tensor(), "layer": [tensor(None, 1)]}, {"data/0": FLOATS})
    assert refused(path, "beyond the end").tensor == "layer.0"


def test_attributes_of_tensors_are_plain_data(tmp_path: Path) -> None:
    itself: dict[str, object] = {}
    itself["me"] = itself
    rebuild = torch._utils._rebuild_parameter_with_state
    for state, said in (({"t": [tensor()]}, "whose attributes are tensors"), (itself, "holds itself")):
        made = Rebuilt(tensor(), True, OrderedDict(), state, function=rebuild)
        problem = refused(archive(tmp_path / "x.pt", {"w": made}, {"data/0": FLOATS}), said)
        assert problem.tensor == ("w" if "t" in state else "")
    state = {"scale": np.float32(2), "table": np.arange(3), "kind": torch.float16}
    path = archive(
        tmp_path / "x.pt", Rebuilt(tensor(), True, OrderedDict(), state, function=rebuild), {"data/0": FLOATS}
    )
    (got,) = read_pt(path).tensors
    kept = got.spec.attrs["state"]
    assert (kept["scale"], kept["table"].tolist(), str(kept["kind"])) == (2, [0, 1, 2], "torch.float16")
    written(tmp_path / "out.pt", read_pt(path))
    again = vars(torch.load(tmp_path / "out.pt", weights_only=False))
    assert (again["scale"], again["table"].tolist(), again["kind"]) == (2, [0, 1, 2], torch.float16)


def test_empty_tensors_lie_anywhere(tmp_path: Path) -> None:
    value = [tensor(None, 6, (0,), (1,)), tensor(None, 100, (3, 0), (7, 9))]
    for got, shape in zip(
        read_pt(archive(tmp_path / "x.pt", value, {"data/0": FLOATS})).tensors, [(0,), (3, 0)], strict=True
    ):
        assert values(got).shape == shape


def test_empty_storages_have_no_type(tmp_path: Path) -> None:
    empty = [
        tensor(Stored("storage", kind, "1", "cpu", 0), 0, (0,), (1,)) for kind in (torch.FloatStorage, torch.IntStorage)
    ]
    one, two = read_pt(archive(tmp_path / "x.pt", empty, {"data/1": b""})).tensors
    assert (one.spec.dtype.name, two.spec.dtype.name) == ("float32", "int32")


def test_the_stride_of_a_single_element_means_nothing(tmp_path: Path) -> None:
    value = [tensor(None, 0, (1, 3), (1 << 62, 2)), tensor(None, 3, (1, 1, 1), (1 << 62, 7, 0))]
    one, two = read_pt(archive(tmp_path / "x.pt", value, {"data/0": FLOATS})).tensors
    assert (values(one).tolist(), values(two).tolist()) == ([[0, 2, 4]], [[[3]]])


def test_an_expanded_tensor_of_a_tiny_storage(tmp_path: Path) -> None:
    (got,) = read_pt(archive(tmp_path / "x.pt", [tensor(None, 1, (1 << 40, 2), (0, 1))], {"data/0": FLOATS})).tensors
    assert got.source.read(1 << 40, (1 << 40) + 3).tolist() == [1, 2, 1]


def test_untyped_storages_are_bytes(tmp_path: Path) -> None:
    held = Stored("storage", torch.UntypedStorage, "0", "cpu", 24)
    value = Rebuilt(held, 1, (2,), (2,), False, OrderedDict(), torch.uint32, function=torch._utils._rebuild_tensor_v3)
    path = archive(tmp_path / "x.pt", [value], {"data/0": struct.pack("<6I", *range(6))})
    (got,) = read_pt(path).tensors
    assert values(got).tolist() == to_numpy(torch.load(path, weights_only=True)[0]).tolist() == [1, 3]
    past = Rebuilt(held, 5, (2,), (1,), False, OrderedDict(), torch.uint32, function=torch._utils._rebuild_tensor_v3)
    refused(archive(tmp_path / "y.pt", [past], {"data/0": bytes(24)}), "beyond the end of its storage")


@pytest.mark.parametrize(
    ("keys", "content", "said"),
    [
        (["0"], counted(*range(5)), "another size"),
        (["0"], struct.pack("<q", -1) + bytes(24), "another size"),
        (["0"], struct.pack("<q", 6) + bytes(23), "truncated"),
        (["0"], b"\6\0\0\0", "truncated"),
        ([], b"", "not that of its tensors"),
        (["0", "0"], counted(*range(6)) * 2, "not that of its tensors"),
        (["0", "1"], counted(*range(6)) * 2, "not that of its tensors"),
        (["1"], counted(*range(6)), "not that of its tensors"),
        ("0", counted(*range(6)), "no list of storages"),
        ([0], counted(*range(6)), "no list of storages"),
    ],
)
def test_legacy_storages_that_do_not_fit(tmp_path: Path, keys: object, content: bytes, said: str) -> None:
    refused(legacy(tmp_path / "x.pt", legacy_value({"w": tensor()}), keys, content), said)


def test_archives_that_are_none_of_torch(tmp_path: Path) -> None:
    good = {"data/0": FLOATS}
    for members, said in (
        ({**good, "byteorder": b"middle"}, "neither little nor big"),
        ({**good, "constants.pkl": b""}, "TorchScript archive of what is no module"),
        ({}, "no 'data/0'"),
        ({"data/0": FLOATS[:-1]}, "should have 24 bytes and has 23"),
    ):
        refused(archive(tmp_path / "x.pt", tensor(), members), said)
    refused(archive(tmp_path / "x.pt", tensor(), good, zipfile.ZIP_BZIP2), "compressed by method 12")
    with zipfile.ZipFile(tmp_path / "y.pt", "w") as made:
        made.writestr("a/readme", "x")
    refused(tmp_path / "y.pt", "no data.pkl")
    with zipfile.ZipFile(tmp_path / "z.pt", "w") as made:
        for folder in "ab":
            made.writestr(f"{folder}/data.pkl", pickled(None))
    refused(tmp_path / "z.pt", "no data.pkl in its one folder")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_play_tricks(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as made:
        for data in (FLOATS, bytes(24)):
            made.writestr("a/data/0", data)
        made.writestr("a/data.pkl", pickled(tensor()))
    refused(path, "two members")
    archive(path, tensor(), {"data/0": FLOATS})
    data = path.read_bytes()
    entry = data.index(b"PK\1\2")
    encrypted = data[: entry + 8] + b"\1" + data[entry + 9 :]
    path.write_bytes(encrypted)
    refused(path, "encrypted")
    last = data.rindex(b"PK\1\2")
    path.write_bytes(data[: last + 42] + struct.pack("<I", 0) + data[last + 46 :])  # where the first one is
    refused(path, "those of another member too")
