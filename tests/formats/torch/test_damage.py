"""Checkpoints with bytes changed, lost or added, in the pickle above all: what torch makes of them, or a refusal."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tconv.errors import TconvError, raise_all
from tests.formats.conformance import values
from tests.formats.torch.made import read_pt, saved, tensors_of, to_numpy


def sample(path: Path, legacy: bool) -> bytes:
    w = torch.arange(6.0).view(2, 3)
    model = OrderedDict(w=w, b=torch.nn.Parameter(torch.tensor([1, 2]).to(torch.bfloat16)), t=w.t())
    model._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]  # as torch does
    z = torch.tensor([1 + 2j]).conj()
    saved(path, {"epoch": 300, "model": model, 3: [z, (1.5, "x", None), {2}, b"ab"]}, legacy=legacy)
    return path.read_bytes()


def damaged(data: bytes, chosen: random.Random) -> bytes:
    """One to three changes: a bit, a byte, a byte lost, a byte put in, a run of bytes over others."""
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 3))):
        at, other = chosen.randrange(len(changed)), chosen.randrange(len(changed))
        kind = chosen.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << chosen.randrange(8)
        elif kind == 1:
            changed[at] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF, *b"(.0RbQhquset}])cKNX", chosen.randrange(256)))
        elif kind == 2:
            del changed[at]
        elif kind == 3:
            changed.insert(at, chosen.randrange(256))
        else:
            run = chosen.randrange(1, 9)
            changed[at : at + run] = data[other : other + run]
    return bytes(changed)


def with_damaged_pickle(data: bytes, chosen: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, damaged(content, chosen) if name.endswith("data.pkl") else content)
    return buffer.getvalue()


def loaded(path: Path) -> Any:
    try:
        return torch.load(path, weights_only=True, map_location="cpu")
    except Exception:  # torch says no in many ways
        return None


@pytest.mark.parametrize(
    ("legacy", "damage"),
    [(False, damaged), (False, with_damaged_pickle), (True, damaged)],
    ids=["zip", "pickle in a zip", "legacy"],
)
@pytest.mark.filterwarnings("ignore")  # torch's, of odd files
def test_damaged_checkpoints(tmp_path: Path, legacy: bool, damage: Callable[[bytes, random.Random], bytes]) -> None:
    data = sample(tmp_path / "x.pt", legacy)
    chosen = random.Random(0)
    path = tmp_path / "y.pt"
    refused = 0
    for _ in range(700):
        path.write_bytes(damage(data, chosen))
        try:
            stream = read_pt(path)
            raise_all(stream.others)
            got = [(t.spec, values(t)) for t in stream.tensors]
        except TconvError as problem:
            message = str(problem)
            refused += 1
            assert message.startswith(str(path))
            continue
        want = loaded(path)
        if want is None:
            continue
        others = dict(tensors_of(want, stream.extra.tree))
        assert [spec.name for spec, _ in got] == list(others)
        for spec, array in got:
            assert f"torch.{spec.dtype}" == str(others[spec.name].dtype)
            assert array.tobytes() == to_numpy(others[spec.name]).tobytes()
            assert bool(spec.attrs.get("requires_grad")) == others[spec.name].requires_grad
    assert refused > 300


def test_a_description_that_has_changed_is_refused(tmp_path: Path) -> None:
    """One bit makes a learning rate of 0.1 one of 0.025, and everything else fits as before."""
    path = tmp_path / "x.pt"
    torch.save({"w": torch.ones(2), "lr": 0.1}, path)
    raw, double = path.read_bytes(), struct.pack(">d", 0.1)
    assert raw.count(double) == 1
    path.write_bytes(raw.replace(double, struct.pack(">d", 0.025)))
    assert torch.load(path, weights_only=True)["lr"] == 0.025
    with pytest.raises(TconvError, match=r"the bytes of its 'data\.pkl' are not those that were written"):
        read_pt(path)


def test_a_checksum_of_zero_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    compute = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(2)}, path)
    finally:
        torch.serialization.set_crc32_options(compute)
    with zipfile.ZipFile(path) as archive:
        assert {member.CRC for member in archive.infolist()} == {0}
    assert [t.spec.name for t in read_pt(path).tensors] == ["w"]
