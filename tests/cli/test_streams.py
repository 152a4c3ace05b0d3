"""Standard streams that are closed, full, or read no further: the work is done all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest


def shell(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    """``words`` in a shell, ``T`` standing for the command."""
    script = f'T() {{ {sys.executable} -m tconv "$@"; }}\n{words}'
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.array([1.5, 1e-9]))  # so that there is something to tell
    return tmp_path


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_keeps_nothing_from_being_done(folder: Path, closed: str) -> None:
    ran = shell(folder, f"T x.npy --half -o y.npy {closed}")
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
    assert np.load(folder / "y.npy").tolist() == [1.5, 0]


def test_a_reader_that_went_away_is_no_error(folder: Path) -> None:
    for words in ("T x.npy --half -o y.npy", "T formats", "T inspect x.npy", "T x.npy --half -o z.npy -n", "T --help"):
        ran = shell(folder, f"set -o pipefail; {words} | head -c 0")
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), words
    assert (folder / "y.npy").exists()


def test_a_full_standard_output_is_named(folder: Path) -> None:
    ran = shell(folder, "T formats > /dev/full")
    assert (ran.returncode, ran.stderr) == (1, "tconv: standard output: No space left on device\n")


def test_a_path_of_any_bytes_is_printed_as_it_is(folder: Path) -> None:
    (folder / "x.npy").rename(folder / os.fsdecode(b"caf\xe9.npy"))
    script = f"{sys.executable} -m tconv caf*.npy --half -q"
    ran = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, b"caf\xe9.float16.npy\n")


@pytest.mark.parametrize("after", [0, 0.02, 0.05, 0.1])
def test_an_interrupt_is_quiet_from_the_start(folder: Path, after: float) -> None:
    from_the_start = (
        "import os, sys; os.write(2, b'.'); from tconv.cli import main; sys.argv = ['tconv', 'formats']; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", from_the_start], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    process.stderr.read(1)  # before that Python itself is interrupted, in whatever it does
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    # While the command is imported it is Python that is interrupted, and that dies of the signal.
    assert process.returncode in (0, 130, -signal.SIGINT)
    assert process.returncode == -signal.SIGINT or b"Traceback" not in told


def test_the_answer_is_the_same_if_nobody_reads_it(folder: Path) -> None:
    np.save(folder / "y.npy", np.array([1.5, 2.5]))
    for words, code in (("diff x.npy y.npy", 1), ("check x.npy --expect half", 1), ("check x.npy --finite", 0)):
        ran = shell(folder, f"T {words} | true; exit ${{PIPESTATUS[0]}}")
        assert ran.returncode == code, words


def test_names_reach_a_terminal_without_their_escapes(folder: Path) -> None:
    (folder / "x.npy").rename(folder / "f\x1b[31m.npy")
    ran = shell(folder, "T inspect f*; T f* --half -n; T check f* --expect half")
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "f\\x1b[31m.npy" in ran.stdout


@pytest.mark.parametrize(
    "words",
    [
        "''",
        "x.npy --half -o ''",
        "x.npy --half --report ''",
        "inspect ''",
        "check '' --finite",
        "diff '' ''",
        "x.npy --half --only ''",
        "x.npy --half --keep ''",
        "x.npy --to ''",
    ],
)
def test_an_empty_word_is_no_word(folder: Path, words: str) -> None:
    before = sorted(p.name for p in folder.iterdir())
    ran = shell(folder, f"T {words} -f" if "x.npy" in words else f"T {words}")
    assert (ran.returncode, "is empty" in ran.stderr) == (2, True)
    assert sorted(p.name for p in folder.iterdir()) == before
