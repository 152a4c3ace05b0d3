"""Running the command line, in this process or as a user does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tconv.cli.app import run


class Ran(NamedTuple):
    """What one command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def tconv(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs a command in this process, in a folder of its own; a traceback is a failure."""
    monkeypatch.chdir(tmp_path)

    def call(*argv: str | Path) -> Ran:
        capfd.readouterr()
        code = run([str(a) for a in argv])
        ran = Ran(code, *capfd.readouterr())
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err
        return ran

    return call


@pytest.fixture
def tconv_process(tmp_path: Path) -> Callable[..., Ran]:
    """Runs a command as a process."""

    def call(*argv: str | Path) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "tconv", *map(str, argv)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call
