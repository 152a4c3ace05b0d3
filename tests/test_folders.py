"""What lies in a folder: all the way down, through links, and what is hidden by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tconv.folders import listed


def made(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def test_what_is_hidden_is_listed_by_itself_if_it_would_be_read(tmp_path: Path) -> None:
    made(tmp_path, "a.png", "sub/b.txt", ".c.png", "sub/._d.jpg", ".DS_Store", ".notes.txt")
    made(tmp_path, ".ipynb_checkpoints/a-checkpoint.png", ".git/objects/e.png", ".git/HEAD")
    made(tmp_path, ".0123.tconv-part/x.safetensors", ".x.tconv-resume/y.safetensors")
    found = listed(tmp_path)
    assert {p.relative_to(tmp_path).as_posix() for p in found.paths} == {"a.png", "sub/b.txt"}
    assert {p.relative_to(tmp_path).as_posix() for p in found.hidden} == {
        ".c.png", "sub/._d.jpg", ".ipynb_checkpoints"
    }  # fmt: skip
    assert found.failures == []


def test_a_hidden_folder_that_cannot_be_listed_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "a.png", ".locked/b.png")

    def refusing(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("tconv.folders.os.scandir", refusing)
    assert listed(tmp_path / ".locked").failures[0].reason == "the folder cannot be read: Permission denied"
    monkeypatch.undo()
    assert [p.name for p in listed(tmp_path).hidden] == [".locked"]
