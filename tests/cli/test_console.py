"""Notes and errors on stderr: how many, how marked, in colours or not."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tconv.cli import console
from tconv.cli.console import Console
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


def said(
    capsys: pytest.CaptureFixture[str], texts: list[str], *, quiet: bool = False, verbose: bool = False
) -> list[str]:
    with Console(quiet=quiet, verbose=verbose) as console:
        for text in texts:
            console.note(text)
    return capsys.readouterr().err.splitlines()


FRAMES = [f"a/{n}.gif: the first of {n + 2} frames" for n in range(52)]


def test_many_notes_of_one_kind_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, [*FRAMES, "b: something else"])
    assert lines[:20] == FRAMES[:20]
    assert lines[20:] == [
        "b: something else",
        "… and 32 more like “a/0.gif: the first of 2 frames” (-v shows all)",
    ]


def test_numbers_and_places_make_no_kind(capsys: pytest.CaptureFixture[str]) -> None:
    losses = [f"x.npz: w{n}: cast(float16): {n} of {n * 10:,} values became 0 ({n}e-08)" for n in range(1, 31)]
    assert said(capsys, losses)[20:] == [f"… and 10 more like “{losses[0]}” (-v shows all)"]


def test_a_note_is_one_line_whatever_files_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, ["im: ignored a\nwarning: b.txt", "x\ty.gif: odd"]) == [
        "im: ignored a\\nwarning: b.txt",
        "x\\ty.gif: odd",
    ]


def test_all_of_them_are_shown_if_asked_and_none_if_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, FRAMES, verbose=True) == FRAMES
    assert said(capsys, FRAMES, quiet=True) == []
    assert said(capsys, FRAMES[:20]) == FRAMES[:20]


def test_what_a_conversion_says_is_cut_too(tconv: Tconv) -> None:
    arrays: dict[str, Any] = {f"w{n}": np.full(3, 1e-9) for n in range(25)}
    np.savez("x.npz", **arrays)
    ran = tconv("x.npz", "--half")
    assert ran.code == 0
    (line,) = ran.err.splitlines()
    assert re.fullmatch(r"x\.npz: w0: cast\(float16\): .*; likewise x\.npz: w1, .*, .* and 21 more", line)
    assert len(tconv("x.npz", "--half", "--force", "-v").err.splitlines()) > 50


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_errors_stand_out_on_a_terminal_only(tmp_path: Path, env: dict[str, str], coloured: bool) -> None:
    import pty

    np.save(tmp_path / "x.npy", np.array([1e-9]))
    ours, theirs = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    for argv in (["gone.npy", "--half"], ["x.npy", "--half"]):
        done = subprocess.run(
            [sys.executable, "-m", "tconv", *argv],
            cwd=tmp_path, env={**clean, **env}, stdout=subprocess.PIPE, stderr=theirs, check=False,
        )  # fmt: skip
        assert b"\x1b" not in done.stdout
    os.close(theirs)
    told = os.read(ours, 100_000).decode()
    error, note = told.splitlines()
    assert error.startswith("\x1b[1;31mtconv:\x1b[0m gone.npy: " if coloured else "tconv: gone.npy: ")
    assert "\x1b" not in note


def test_nothing_is_coloured_in_a_pipe(tconv_process: Tconv) -> None:
    ran = tconv_process("gone.npy", "--half")
    assert ran.err.startswith("tconv: gone.npy: ")


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_long_job_shows_a_bar_with_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0.0)
    monkeypatch.setenv("COLUMNS", "100")
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with console.Console(quiet=False, verbose=False) as terminal, console.progress(terminal) as progress:
        progress.begin("converting", 1000_000, "bytes")
        progress.advance(250_000)
        terminal.note("a note in between")
        progress.advance(250_000)
    text = shown.getvalue()
    assert "converting" in text
    assert "25%" in text.replace(" ", "")
    assert "MB" in text
    assert "a note in between\n" in text


def test_a_short_job_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with console.Console(quiet=False, verbose=False) as terminal, console.progress(terminal) as progress:
        progress.begin("converting", 1000, "bytes")
        progress.advance(500)
    assert shown.getvalue() == ""


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([0.0, 0.0, 4.0, 12.0, 13.0, 20.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    with console.Console(quiet=False, verbose=False) as terminal, console.progress(terminal) as progress:
        progress.begin("converting", 1_000_000, "bytes")
        progress.advance(100_000)  # after 4 seconds: too early
        progress.advance(200_000)  # after 12
        progress.advance(100_000)  # a second later: too early again
        progress.advance(600_000)  # done
    assert capsys.readouterr().err == "converting: 30 %, 25.0 kB/s, 28 s left\n"
