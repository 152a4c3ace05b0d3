"""Bad inputs that were left out: each by its name, and hundreds of them in a few lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


@pytest.fixture
def made(tmp_path: Path) -> Callable[[int], str]:
    def make(bad: int) -> str:
        folder = tmp_path / "d"
        folder.mkdir()
        np.save(folder / "good.npy", np.ones(3))
        whole = (folder / "good.npy").read_bytes()
        for n in range(bad):
            (folder / f"{n}.npy").write_bytes(whole[: -(n % 7) - 1])
        (folder / "empty.npy").write_bytes(b"")
        return "d"

    return make


VERBS = [("-o", "x.npz"), ("-o", "x.npz", "-n"), ()]


def run(tconv: Tconv, folder: str, options: tuple[str, ...], *more: str) -> Ran:
    return tconv(*(() if options else ("stats",)), folder, *options, "--on-bad", "skip", *more)


@pytest.mark.parametrize("options", VERBS)
def test_some_have_a_line_each(tconv: Tconv, made: Callable[[int], str], options: tuple[str, ...]) -> None:
    folder = made(19)
    ran = run(tconv, folder, options, *(() if options else ("--raw",)))
    assert ran.code == 3
    lines = [line for line in ran.err.splitlines() if line.startswith("skipped: ")]
    assert [line.split(": ")[1] for line in lines] == [*(f"d/{n}.npy" for n in range(19)), "d/empty.npy"]


@pytest.mark.parametrize("options", VERBS)
def test_many_that_are_alike_share_a_line_that_names_them(
    tconv: Tconv, made: Callable[[int], str], options: tuple[str, ...]
) -> None:
    folder = made(99)
    ran = run(tconv, folder, options, *(() if options else ("--raw",)))
    assert ran.code == 3
    lines = [line for line in ran.err.splitlines() if line.startswith("skipped: ")]
    assert [line.split(": ")[1] for line in lines[:3]] == ["d/0.npy", "d/1.npy", "d/2.npy"]
    assert lines[3] == f"skipped: likewise {', '.join(f'd/{n}.npy' for n in range(3, 99))}"
    assert lines[4:] == ["skipped: d/empty.npy: the file is empty (0 bytes); fetch or write it again"]


def test_of_hundreds_a_hundred_are_named_and_the_report_has_all(tconv: Tconv, made: Callable[[int], str]) -> None:
    folder = made(300)
    ran = run(tconv, folder, VERBS[0], "--report", "r.json")
    lines = ran.err.splitlines()
    assert len(lines) == 5
    assert lines[3].startswith("skipped: likewise d/3.npy, ")
    assert lines[3].endswith(", d/102.npy and 197 more (-v and --report name them)")
    skipped = json.loads(Path("r.json").read_text(encoding="utf8"))["skipped"]
    assert {Path(one["path"]).name for one in skipped} == {"empty.npy", *(f"{n}.npy" for n in range(300))}
    assert all(one["reason"] for one in skipped)
    every = run(tconv, folder, VERBS[0], "-f", "-v").err.splitlines()
    assert len([line for line in every if line.startswith("skipped: ")]) == 301
