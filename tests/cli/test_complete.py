"""What the shell offers for the values of options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def complete(words: str, folder: Path) -> list[str]:
    env = {
        **os.environ,
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
        "_TCONV_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from tconv.cli import main; main()"],
        env=env, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tconv x.npy --to flo", ["float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]),
        ("tconv convert x.npy --to bf", ["bfloat16"]),
        ("tconv x --pipeline imagenet", ["imagenet", "imagenet-eval"]),
        ("tconv x --stats ", ["imagenet", "clip"]),
        ("tconv x --layout N", ["NCHW", "NHWC"]),
        ("tconv x --input-layout H", ["HWC"]),
        ("tconv x --format ", ["npy", "npz", "safetensors", "pt"]),
        ("tconv x --channels ", ["rgb", "bgr", "gray", "rgba", "keep"]),
        ("tconv x --alpha ", ["white", "black", "drop"]),
        ("tconv x --on-bad ", ["error", "skip"]),
        ("tconv x --on-overflow s", ["saturate"]),
        ("tconv x --step re", ["resize"]),
        ("tconv --stats cl", ["clip"]),
    ],
)
def test_values_are_offered(tmp_path: Path, words: str, offered: list[str]) -> None:
    found = complete(words, tmp_path)
    assert [word for word in offered if word not in found] == []
    assert all(word.startswith(words.split(" ")[-1]) for word in found)


def test_files_are_left_to_the_shell(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    assert complete("tconv x -o ph", tmp_path) == []
    assert complete("tconv x --stats ph", tmp_path) == []
