"""A file that is replaced or written to while it is read is refused: no output has values of two files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import tconv
from tconv import registry, stamps
from tconv.errors import TconvError
from tconv.inputs import Input
from tconv.request import Silent
from tests.formats.sharded import safetensors_folder


class Meddler(Silent):
    """Does something to the files when a phase of the run begins."""

    def __init__(self, phase: str, meddle: Callable[[], object]) -> None:
        self._phase, self._meddle = phase, meddle

    def begin(self, what: str, total: int, unit: str) -> None:
        if what == self._phase:
            self._meddle()


def weights(path: Path, value: int) -> Path:
    torch.save({"a": torch.full((100,), float(value)), "b": torch.full((100,), float(value))}, path)
    return path


def replaced(path: Path, by: Path) -> None:
    by.replace(path)


def written_into(path: Path, by: Path) -> None:
    path.write_bytes(by.read_bytes())


def touched(path: Path, by: Path) -> None:
    os.utime(path, ns=(0, 0))


@pytest.mark.parametrize("meddle", [replaced, written_into, touched])
def test_a_checkpoint_that_changes_meanwhile_is_refused(tmp_path: Path, meddle: Callable[[Path, Path], None]) -> None:
    latest, fresh, out = weights(tmp_path / "l.pt", 1), weights(tmp_path / "f.pt", 2), tmp_path / "o.pt"
    with pytest.raises(TconvError, match=r"l\.pt: changed while it was read"):
        tconv.convert(latest, out, "cast(float16)", progress=Meddler("converting", lambda: meddle(latest, fresh)))
    assert not out.exists()
    assert tconv.convert(latest, out, "cast(float16)").path == out


def test_a_shard_counts_as_much(tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "m")
    shard = folder / "model-00002-of-00002.safetensors"
    meddler = Meddler("converting", lambda: os.utime(shard, ns=(0, 0)))
    with pytest.raises(TconvError, match=r"model-00002-of-00002\.safetensors: changed while it was read"):
        tconv.convert(folder, tmp_path / "o.safetensors", "cast(float16)", progress=meddler)
    assert not (tmp_path / "o.safetensors").exists()


def test_tensors_that_are_read_later_are_those_of_the_file_that_was_opened(tmp_path: Path) -> None:
    found = tconv.open(weights(tmp_path / "l.pt", 1))
    assert found["a"].tolist() == [1] * 100
    weights(tmp_path / "f.pt", 2).replace(tmp_path / "l.pt")
    for read in (lambda: found["b"], lambda: dict(found), lambda: list(found.batches(2))):
        with pytest.raises(TconvError, match="changed while it was read"):
            read()
    assert tconv.open(tmp_path / "l.pt")["b"].tolist() == [2] * 100


def test_what_is_gone_or_never_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    one = Input(path, registry.FORMATS["npy"], "x")
    assert stamps.stamps([one]) == {}
    np.save(path, np.zeros(3))
    known = stamps.stamps([one])
    stamps.refuse_changed(known)
    path.unlink()
    with pytest.raises(TconvError, match="changed"):
        stamps.refuse_changed(known)
    stamps.refuse_changed(known, [tmp_path / "another.npy"])
