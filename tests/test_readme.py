"""The README tells the truth: its recipes are run as they stand, in a copy of the examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def sessions() -> list[list[tuple[str, str]]]:
    """For each console block its commands, each with what the README says it prints."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf8"), re.DOTALL)
    found = []
    for block in blocks:
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        found.append([(part.partition("\n")[0], part.partition("\n")[2]) for part in parts])
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    tool = folder / "bin" / "tconv"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m tconv "$@"\n')
    tool.chmod(0o755)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("*.npy", "*.safetensors"))
    return folder


def run(place: Path, command: str) -> str:
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"], cwd=place / "examples", env=env, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.parametrize("session", sessions(), ids=lambda s: s[0][0])
def test_recipes_print_what_the_readme_shows(place: Path, session: list[tuple[str, str]]) -> None:
    for command, shown in session:
        assert run(place, command) == shown


def test_the_make_rule_halves_a_checkpoint(place: Path) -> None:
    shutil.copy(place / "examples" / "tiny.pt", place / "examples" / "made.pt")
    assert "made.float16.pt" in run(place, "make -s made.float16.pt")
    assert (place / "examples" / "made.float16.pt").is_file()


@pytest.mark.parametrize(
    ("command", "last"),
    [
        ("./prepare_images.sh photos batches 5", "batches/batch-0002.npy"),
        ("mkdir runs && cp tiny.pt runs && ./halve_checkpoints.sh runs", "runs/tiny.float16.pt"),
        ("./check_before_training.sh tiny.pt photos; echo $?", "0"),
    ],
)
def test_the_scripts_do_what_they_say(place: Path, command: str, last: str) -> None:
    assert run(place, command).splitlines()[-1] == last
