"""Shards that are put in place where others are: all of them in the end, whatever comes in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tconv.journal import JOURNAL
from tests.cli.conftest import Ran, tconv

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]
INDEX = "model.safetensors.index.json"
SHARDS = [f"model-{n:05d}-of-00003.safetensors" for n in range(1, 4)]
HALVED = ("m", "--step", "normalize(mean=0, std=2)", "-o", "m/")  # each time it is done, values are half of before


@pytest.fixture
def folder(tconv: Tconv, tmp_path: Path) -> Path:
    """Three shards, of the values 1, 2 and 3."""
    save_file({f"w{n}": torch.full((4,), float(n)) for n in (1, 2, 3)}, tmp_path / "x.safetensors")
    assert tconv("x.safetensors", "--shard-size", "16", "-o", "m/").code == 0
    return tmp_path / "m"


def values(folder: Path) -> list[float]:
    return [float(load_file(folder / shard)[f"w{n}"][0]) for n, shard in enumerate(SHARDS, 1)]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class Stopped:
    """Lets so many files be put in place, and then raises."""

    def __init__(self, after: int, problem: BaseException) -> None:
        self.left, self.problem, self.real = after, problem, Path.replace

    def __call__(self, staged: Path, target: Path) -> Path:
        if target.parent.name == "m":
            self.left -= 1
            if self.left < 0:
                raise self.problem
        return self.real(staged, target)


def interrupt(tconv: Tconv, monkeypatch: pytest.MonkeyPatch, after: int, problem: BaseException) -> Ran:
    with monkeypatch.context() as patch:
        stopped = Stopped(after, problem)
        patch.setattr(Path, "replace", lambda staged, target: stopped(staged, target))
        return tconv(*HALVED, "-f")


@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("problem", "code"), [(OSError(1, "Not permitted"), 1), (KeyboardInterrupt(), 130)], ids=["error", "ctrl-c"]
)
def test_what_was_interrupted_is_completed_once(
    after: int, problem: BaseException, code: int, folder: Path, tconv: Tconv, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = interrupt(tconv, monkeypatch, after, problem)
    assert ran.code == code
    assert f"{folder}: not all shards are in place; --resume completes that" in ran.err
    assert values(folder) == [0.5, 1.0, 1.5][:after] + [1.0, 2.0, 3.0][after:]
    others = [("m", "--half", "-o", "elsewhere/"), ("m", "--half", "-o", "one.safetensors")]
    for argv in (HALVED, (*HALVED, "-f"), *others):
        assert tconv(*argv).code == 1
    assert names(folder.parent) == {"m", "x.safetensors"}
    ran = tconv(*HALVED, "--resume")
    assert (ran.code, ran.out) == (0, "m/\n")
    assert ran.err == f"{folder}: all shards of the earlier run were done, and are in place now\n"
    assert values(folder) == [0.5, 1.0, 1.5]
    assert names(folder) == {*SHARDS, INDEX}


def test_the_way_out_is_told(folder: Path, tconv: Tconv, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(tconv, monkeypatch, 1, OSError(1, "Not permitted"))
    assert tconv(*HALVED, "-f").err == (
        f"tconv: {folder}: an earlier run was interrupted while it put its shards in place; --resume completes that, "
        "and does nothing else\n"
    )
    assert tconv("m", "--half", "-o", "elsewhere/").err == (
        f"tconv: m/{INDEX}: some of its shards are those of a run that was interrupted while it put them in place; "
        "--resume -o m/ completes that\n"
    )


def test_a_file_that_cannot_be_replaced_is_named(folder: Path, tconv: Tconv, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = interrupt(tconv, monkeypatch, 1, OSError(1, "Not permitted"))
    assert f"tconv: {folder / SHARDS[1]}: cannot be put in place: Not permitted" in ran.err


def test_shards_that_are_no_more_go_when_it_is_completed(tconv: Tconv, folder: Path) -> None:
    """Killed after the new index is there and before the old shards are gone, which nothing would name any more."""
    save_file({"new": torch.ones(4)}, folder.parent / "new.safetensors")
    code = (
        "import os, signal\n"
        "from tconv.superseded import Superseded\n"
        "Superseded.remove = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from tconv.cli.app import run\n"
        "run(['new.safetensors', '--shard-size', '8', '-o', 'm/', '-f'])\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], cwd=folder.parent, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert {*SHARDS, "model.safetensors"} < names(folder)
    assert tconv("new.safetensors", "--shard-size", "8", "-o", "m/", "--resume").code == 0
    assert names(folder) == {"model.safetensors"}


@pytest.mark.parametrize(
    "said",
    [
        {"files": ["../x.safetensors"], "gone": []},
        {"files": [], "gone": ["../x.safetensors"]},
        {"files": [], "gone": ["{tmp}/x.safetensors"]},
        {"files": [], "gone": ["link/x.safetensors"]},
        {"files": []},
        {"files": 3, "gone": []},
        [],
    ],
)
def test_nothing_elsewhere_is_touched_because_of_a_journal(said: object, folder: Path, tconv: Tconv) -> None:
    """A folder from a stranger may have one."""
    (folder / "link").symlink_to("..")
    left = folder / ".tconv-resume"
    left.mkdir()
    (left / JOURNAL).write_text(json.dumps(said).replace("{tmp}", str(folder.parent)))
    before = (folder.parent / "x.safetensors").read_bytes()
    ran = tconv(*HALVED, "--resume")
    assert ran.code == 1
    assert "what an interrupted run has left there cannot be put in place" in ran.err
    assert (folder.parent / "x.safetensors").read_bytes() == before
    assert values(folder) == [1.0, 2.0, 3.0]


def test_a_run_that_is_at_it_is_left_alone(folder: Path, tconv: Tconv) -> None:
    fcntl = pytest.importorskip("fcntl")
    left = folder / ".tconv-resume"
    left.mkdir()
    (left / JOURNAL).write_text('{"files": [], "gone": []}')
    fd = os.open(left, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert "another run is writing there" in tconv(*HALVED, "--resume").err
    finally:
        os.close(fd)
    assert left.exists()
