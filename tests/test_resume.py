"""A run that was interrupted goes on where it ended: what is done is checked and kept, if it is the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tconv.formats.positional import PositionalWriter
from tests.cli.conftest import Ran, tconv
from tests.formats.sharded import write_index

__all__ = ["tconv"]  # the fixture
Tconv = Callable[..., Ran]
NAMES = [f"model-{n:05d}-of-00003.safetensors" for n in range(1, 4)]
FOLDER = Path(".out.tconv-resume")
TINY = 1e-9  # becomes 0 in float16


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the shards that are begun, from here on."""
    begun: list[str] = []
    real = PositionalWriter.open

    def note(writer: Any, path: Path) -> None:
        begun.append(path.name)
        real(writer, path)

    monkeypatch.setattr(PositionalWriter, "open", note)
    return begun


@pytest.fixture
def interrupted(tconv: Tconv, tmp_path: Path) -> Ran:
    """Three shards, of which the second is done when the third cannot be written."""
    (tmp_path / "m").mkdir()
    for n, name in enumerate(NAMES):
        save_file({f"w{n}": torch.tensor([n + 1.0, TINY])}, tmp_path / "m" / name)
    write_index(tmp_path / "m" / "model.safetensors.index.json", {f"w{n}": name for n, name in enumerate(NAMES)})
    with pytest.MonkeyPatch.context() as patch:
        real = PositionalWriter.open

        def full(writer: Any, path: Path) -> None:
            if path.name == NAMES[2]:
                raise OSError(28, "No space left on device")
            real(writer, path)

        patch.setattr(PositionalWriter, "open", full)
        return tconv("m", "--half", "-o", "out/", "-j", "1")


def check_result(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == [*NAMES, "model.safetensors.index.json"]
    for n, name in enumerate(NAMES):
        (found,) = load_file(folder / name).values()
        assert torch.equal(found, torch.tensor([n + 1.0, 0.0], dtype=torch.float16))


def test_what_is_done_is_kept_and_not_made_again(tconv: Tconv, interrupted: Ran, opened: list[str]) -> None:
    assert interrupted.code == 1
    assert "No space left on device" in interrupted.err
    assert "the shards that are done are kept; --resume goes on from there" in interrupted.err
    assert not Path("out").exists()
    ran = tconv("m", "--half", "-o", "out/", "--resume")
    assert (ran.code, ran.out) == (0, "out/\n")
    assert ran.err.splitlines() == ["2 of 3 shards were done already"] + [
        f"m/{name}: w{n}: cast(float16): 1 of 2 values became 0" for n, name in enumerate(NAMES)
    ]
    assert opened == NAMES[2:]
    check_result(Path("out"))
    assert not FOLDER.exists()


def test_a_new_run_starts_afresh(tconv: Tconv, interrupted: Ran, opened: list[str]) -> None:
    assert FOLDER.exists()
    assert tconv("m", "--half", "-o", "out/").code == 0
    assert opened == NAMES
    check_result(Path("out"))
    assert not FOLDER.exists()


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_shard_that_is_not_what_was_written_is_made_again(
    how: str, tconv: Tconv, interrupted: Ran, opened: list[str]
) -> None:
    done = FOLDER / NAMES[0]
    raw = bytearray(done.read_bytes())
    raw[-1] ^= 1
    done.unlink()
    if how == "changed":
        done.write_bytes(raw)
    (FOLDER / "leftover").write_text("x")
    ran = tconv("m", "--half", "-o", "out/", "--resume", "--verify")
    assert ran.code == 0
    assert f"{NAMES[0]}: is not what was written, and is made again" in ran.err
    assert opened == [NAMES[0], NAMES[2]]
    check_result(Path("out"))


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--bf16"], "the steps and the tensors"),
        (["--half", "--on-overflow", "saturate"], "the steps"),
        (["--half", "--skip", "w0"], "the inputs and the tensors"),
        (["--half", "--range", "0,3"], "what is said of the values"),
    ],
)
def test_another_run_is_refused_and_what_is_done_stays(
    argv: list[str], what: str, tconv: Tconv, interrupted: Ran, opened: list[str]
) -> None:
    ran = tconv("m", *argv, "-o", "out/", "--resume")
    assert (ran.code, ran.out) == (1, "")
    assert f"cannot go on with the run that was interrupted: {what}" in ran.err
    assert "without --resume it starts afresh" in ran.err
    assert "--resume goes on from there" not in ran.err
    assert not Path("out").exists()
    assert tconv("m", "--half", "-o", "out/", "--resume").code == 0
    assert opened == NAMES[2:]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["--step", "normalize(mean=0, std=1e-38)", "--on-overflow", "saturate"], ["--on-overflow", "inf"]),
        (["--format", "pt", "--device", "torch", "--save-device"], ["--device", "torch"]),
    ],
    ids=["what overflows", "what the file says"],
)
def test_all_shards_are_made_alike(
    first: list[str], then: list[str], tconv: Tconv, interrupted: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some things that are said of a run are in no step of it, or change no dtype, shape or size."""
    argv, again = ["m", *first, "-o", "two/", "-j", "1"], ["m", *first[:2], *then, "-o", "two/", "-j", "1", "--resume"]
    with monkeypatch.context() as patch:
        real = PositionalWriter.open

        def full(writer: Any, path: Path) -> None:
            if "00002-of" in path.name:
                raise OSError(28, "No space left on device")
            real(writer, path)

        patch.setattr(PositionalWriter, "open", full)
        assert tconv(*argv).code == 1
    ran = tconv(*again)
    assert ran.code == 1
    assert "cannot go on with the run that was interrupted: " in ran.err
    assert "the tensors, what is done to them or the shards they go into changed since" in ran.err
    assert "1 of 3 shards were done already\n" in tconv(*argv, "--resume").err


def test_a_changed_input_is_refused(tconv: Tconv, interrupted: Ran) -> None:
    shard = Path("m", NAMES[0])
    before = shard.stat()
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    ran = tconv("m", "--half", "-o", "out/", "--resume")
    assert ran.code == 1
    assert "the inputs changed since" in ran.err


@pytest.mark.parametrize("state", ["", "{", "[]", '{"tconv": "x"}', "nothing"])
def test_a_state_that_makes_no_sense_is_no_state(state: str, tconv: Tconv, interrupted: Ran, opened: list[str]) -> None:
    path = FOLDER / ".tconv-state.json"
    path.unlink()
    if state != "nothing":
        path.write_text(state)
    assert tconv("m", "--half", "-o", "out/", "--resume").code == 0
    assert opened == NAMES
    check_result(Path("out"))


def test_the_state_tells_which_run_it_was(interrupted: Ran) -> None:
    found = json.loads((FOLDER / ".tconv-state.json").read_text())
    assert found["steps"] == ["cast(float16)"]
    assert sorted(found["done"]) == NAMES[:2]
    assert sorted(Path(p).name for p in found["inputs"]) == [*NAMES, "model.safetensors.index.json"]


def test_what_is_done_is_found_where_the_target_was_made_since(
    tconv: Tconv, interrupted: Ran, opened: list[str]
) -> None:
    Path("out").mkdir()
    ran = tconv("m", "--half", "-o", "out/", "--resume")
    assert ran.err.startswith("2 of 3 shards were done already\n")
    assert opened == NAMES[2:]
    check_result(Path("out"))
    assert not FOLDER.exists()


def test_a_new_run_removes_what_is_kept_wherever_the_target_was_missing_from(tconv: Tconv, interrupted: Ran) -> None:
    Path("out").mkdir()
    assert tconv("m", "--half", "-o", "out/").code == 0
    assert not FOLDER.exists()
    check_result(Path("out"))


@pytest.mark.parametrize("made", ["", "a", "a/b", "a/b/out"])
def test_the_folders_on_the_way_to_the_target_may_have_been_made_since(
    made: str, tconv: Tconv, interrupted: Ran, opened: list[str]
) -> None:
    FOLDER.rename(".a.b.out.tconv-resume")
    Path(made).mkdir(parents=True, exist_ok=True)
    assert tconv("m", "--half", "-o", "a/b/out/", "--resume").err.startswith("2 of 3 shards were done already\n")
    assert opened == NAMES[2:]
    check_result(Path("a/b/out"))
    assert sorted(p.name for p in Path().iterdir()) == ["a", "m"]


def test_two_targets_of_one_name_keep_what_is_theirs(tconv: Tconv, interrupted: Ran, opened: list[str]) -> None:
    assert tconv("m", "--bf16", "-o", "a/out/").code == 0
    assert tconv("m", "--half", "-o", "out/", "--resume").err.startswith("2 of 3 shards were done already\n")
    assert opened == [*NAMES, *NAMES[2:]]


def test_killed_while_the_shards_are_put_in_place(tconv: Tconv, interrupted: Ran, opened: list[str]) -> None:
    Path("out").mkdir()
    (FOLDER / NAMES[0]).rename(Path("out", NAMES[0]))
    ran = tconv("m", "--half", "-o", "out/", "--resume")
    assert ran.code == 1
    assert f"{Path.cwd()}/out/{NAMES[0]}: exists already; --force replaces it" in ran.err
    assert Path("out", NAMES[0]).exists()
    ran = tconv("m", "--half", "-o", "out/", "--resume", "-f")
    assert ran.err.startswith("2 of 3 shards were done already\n")
    assert opened == NAMES[2:]
    check_result(Path("out"))
    assert not FOLDER.exists()


def test_a_run_that_is_complete_says_so(tconv: Tconv, interrupted: Ran) -> None:
    assert interrupted.code == 1
    assert tconv("m", "--half", "-o", "out/", "--resume").code == 0
    ran = tconv("m", "--half", "-o", "out/", "--resume")
    assert (ran.code, ran.out) == (1, "")
    said = "is complete: its 3 shards are there, and no interrupted run is left to resume; nothing needs doing"
    assert ran.err == f"tconv: {Path.cwd()}/out: {said}; --force makes it anew\n"
    Path("out", NAMES[1]).unlink()
    assert "exists already" in tconv("m", "--half", "-o", "out/", "--resume").err
    assert tconv("m", "--half", "-o", "out/", "--resume", "--force").code == 0
    check_result(Path("out"))


def test_there_need_be_nothing_to_resume(tconv: Tconv, interrupted: Ran) -> None:
    ran = tconv("m", "--half", "-o", "elsewhere/", "--resume")
    assert ran.code == 0
    assert ran.err.startswith("there is nothing to resume here, so all shards are made\n")
    check_result(Path("elsewhere"))


def test_what_is_refused_leaves_nothing(tconv: Tconv, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    for name, value in (("a.safetensors", 1.0), ("b.safetensors", 1e6)):
        save_file({name[0]: torch.tensor([value])}, tmp_path / "m" / name)
    write_index(tmp_path / "m" / "model.safetensors.index.json", {"a": "a.safetensors", "b": "b.safetensors"})
    assert tconv("m", "--half", "-o", "out/").code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_only_shards_are_resumed(tconv: Tconv, tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "x.safetensors")
    ran = tconv("x.safetensors", "--half", "--resume")
    assert ran.code == 2
    assert "--resume goes on with shards, and none are written here" in ran.err


def test_a_second_run_for_the_same_folder_waits_its_turn(tconv: Tconv, interrupted: Ran) -> None:
    fcntl = pytest.importorskip("fcntl")
    fd = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        ran = tconv("m", "--half", "-o", "out/")
    finally:
        os.close(fd)
    assert ran.code == 1
    assert "another run is writing there" in ran.err
    assert tconv("m", "--half", "-o", "out/", "--resume").err.startswith("2 of 3 shards were done already")


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    """However it ends, a run leaves nothing at its target, and what it has done is found again."""
    state = {f"w{n:02d}": torch.full((1 << 20,), n / 8) for n in range(16)}  # 64 MB
    torch.save(state, tmp_path / "x.pt")
    tool = [sys.executable, "-m", "tconv"]
    argv = [*tool, "x.pt", "--half", "--shard-size", "2MiB", "--format", "safetensors", "-o", "out/"]
    process = subprocess.Popen(argv, cwd=tmp_path)
    record = tmp_path / FOLDER / ".tconv-state.json"
    end = time.monotonic() + 60
    while not record.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert not (tmp_path / "out").exists()
    done = subprocess.run([*argv, "--resume"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert " of 16 shards were done already" in done.stderr
    found: dict[str, torch.Tensor] = {}
    for path in (tmp_path / "out").glob("*.safetensors"):
        found |= load_file(path)
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name].half()) for name in state)
    assert {p.name for p in tmp_path.iterdir()} == {"x.pt", "out"}


def test_a_report_cannot_tell_of_what_was_done_before(tconv: Tconv) -> None:
    ran = tconv("m", "--half", "-o", "out/", "--resume", "--report", "r.json")
    assert ran.code == 2
    assert "--resume does not know all that a --report tells" in ran.err
