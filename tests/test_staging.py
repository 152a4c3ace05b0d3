"""Targets appear whole or not at all; what dead processes left is swept, what live ones use is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tconv.errors import TconvError
from tconv.staging import SUFFIX, Staging, check_space


def left_over(folder: Path) -> list[Path]:
    return list(folder.rglob(f"*{SUFFIX}"))


def test_what_is_published_replaces_the_old_file_and_nothing_else_stays(tmp_path: Path) -> None:
    target = tmp_path / "out.npy"
    target.write_text("old")
    with Staging([tmp_path]) as stage:
        stage.path(tmp_path, target).write_text("new")
        assert target.read_text() == "old"
        stage.publish([(tmp_path, target)])
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_what_replaces_a_file_has_its_mode(mode: int, tmp_path: Path) -> None:
    target, other = tmp_path / "out.npy", tmp_path / "new.npy"
    target.write_text("old")
    target.chmod(mode)
    with Staging([tmp_path]) as stage:
        for path in (target, other):
            stage.path(tmp_path, path).write_text("new")
        usual = stage.path(tmp_path, other).stat().st_mode
        stage.publish([(tmp_path, target), (tmp_path, other)])
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o7777 == mode
    assert other.stat().st_mode == usual


ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.skipif(not ROOT, reason="gives files to others, as root may")
@pytest.mark.parametrize(
    ("mode", "without_group"),
    [(0o600, 0o600), (0o640, 0o600), (0o660, 0o600), (0o644, 0o644), (0o664, 0o644), (0o666, 0o666), (0o606, 0o606)],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_what_replaces_a_file_is_to_nobody_more_than_that_was(
    mode: int, without_group: int, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.npy"
    target.write_text("old")
    os.chown(target, 1234, 2345)
    target.chmod(mode)
    if not allowed:
        monkeypatch.setattr(os, "chown", not_permitted)
    with Staging([tmp_path]) as stage:
        stage.path(tmp_path, target).write_text("new")
        stage.publish([(tmp_path, target)])
    found = target.stat()
    assert target.read_text() == "new"
    assert (found.st_uid, found.st_gid) == ((1234, 2345) if allowed else (os.geteuid(), os.getegid()))
    assert found.st_mode & 0o7777 == (mode if allowed else without_group)


def not_permitted(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_what_is_not_published_never_was(tmp_path: Path) -> None:
    def fail() -> None:
        with Staging([tmp_path]) as stage:
            stage.path(tmp_path, tmp_path / "out.npy").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_folders_that_do_not_exist_are_made_when_published_only(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    with Staging([root]) as stage:
        staged = stage.path(root, root / "c" / "x.npy")
        staged.parent.mkdir(parents=True)
        staged.write_text("x")
        assert not root.exists()
        stage.publish([(root, root / "c" / "x.npy")])
    assert (root / "c" / "x.npy").read_text() == "x"
    assert not left_over(tmp_path)


def test_several_roots_have_a_stage_each(tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
    with Staging(roots) as stage:
        for root in roots:
            assert stage.path(root, root / "x").parent.parent == root
    assert not left_over(tmp_path)


def hold(folder: Path) -> subprocess.Popen[str]:
    """A process that stages in ``folder`` until it is killed."""
    code = (
        "import sys, time; from pathlib import Path; from tconv.staging import Staging\n"
        "root = Path(sys.argv[1])\n"
        "with Staging([root]) as s:\n"
        "    s.path(root, root / 'x').write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_the_stage_of_a_living_process_is_left_alone_and_that_of_a_dead_one_swept(tmp_path: Path) -> None:
    process = hold(tmp_path)
    with process:
        with Staging([tmp_path]):
            assert len(left_over(tmp_path)) == 2
        assert len(left_over(tmp_path)) == 1
        process.kill()
    assert len(left_over(tmp_path)) == 1
    with Staging([tmp_path]):
        assert len(left_over(tmp_path)) == 1  # its own
    assert not left_over(tmp_path)


def test_a_link_with_the_name_of_a_stage_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("kept")
    (tmp_path / f".0{SUFFIX}").symlink_to(precious)
    with Staging([tmp_path]):
        pass
    assert (precious / "data").read_text() == "kept"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder in which nobody may write")
def test_a_folder_that_cannot_be_written_is_refused_by_name() -> None:
    with pytest.raises(TconvError, match=r"^/proc/self: cannot write there"), Staging([Path("/proc/self")]):
        pass


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def _small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(1000, 0, 1000))


@pytest.mark.usefixtures("_small_disk")
def test_what_the_disk_has_no_room_for_is_refused_with_the_numbers(tmp_path: Path) -> None:
    check_space({tmp_path / "new": 400, tmp_path: 600})
    with pytest.raises(TconvError, match=r"takes 1,001 bytes and the disk has 1,000 free"):
        check_space({tmp_path / "new": 401, tmp_path: 600})
