"""``tconv plan`` and ``--print``: the plan without the work, and steps in any spelling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]
FLAGS = ("--resize", "8x8", "--normalize", "--stats", "imagenet", "--layout", "CHW", "--half", "--stack")
CHAIN = "resize(8x8) | scale | normalize(imagenet) | permute(CHW) | stack | cast(float16)"


@pytest.fixture
def images(tmp_path: Path) -> str:
    (tmp_path / "images").mkdir()
    for n in range(3):
        Image.fromarray(np.full((12, 10 + n, 3), 40 * n, np.uint8)).save(tmp_path / "images" / f"{n}.png")
    return "images"


def test_plan_is_the_dry_run_as_a_verb(tconv: Tconv, images: str) -> None:
    assert tconv("plan", images, *FLAGS) == tconv(images, *FLAGS, "--dry-run")
    assert tconv("plan", images, *FLAGS).code == 0
    assert not Path("images.safetensors").exists()
    assert tconv("plan").code == 2
    assert "INPUT" in tconv("plan", "--help").out
    assert "--resize SIZE" in tconv("plan", "--help").out
    assert tconv("plan", images, "--dry-run").code == 2


def test_flags_become_text_and_yaml_and_the_same_plan(tconv: Tconv, images: str) -> None:
    more = ("--channels", "bgr", "--skip", "2*", "--on-overflow", "saturate")
    planned = tconv("plan", images, *FLAGS, *more)
    assert planned.code == 0
    text = tconv("plan", images, *FLAGS, *more, "--print", "steps").out
    assert text == CHAIN.replace("float16", "float16, on_overflow=saturate") + "\n"
    assert tconv("plan", images, "--step", text, *more).out == planned.out
    Path("mine.yaml").write_text(tconv(images, *FLAGS, *more, "--print", "yaml").out)
    assert tconv("plan", images, "--pipeline", "mine.yaml") == planned
    assert tconv("plan", images, "--pipeline", "mine.yaml", "--print", "steps").out == text
    again = tconv("plan", images, "--pipeline", "mine.yaml", "--print", "yaml").out
    assert again == Path("mine.yaml").read_text()


def test_printing_converts_nothing_and_minds_no_target(tconv: Tconv, images: str) -> None:
    Path("images.safetensors").touch()
    ran = tconv(images, "--resize", "8", "--print", "yaml")
    assert ran == (0, "version: 1\nsteps:\n  - resize: 8\n", "")
    assert Path("images.safetensors").stat().st_size == 0
    assert tconv(images, "-o", "x.npz", "--print", "yaml").code == 2
    assert tconv(images, "--resize", "8", "--print", "ymal").err.endswith("did you mean yaml?\n")


def test_what_was_typed_beats_the_file(tconv: Tconv, images: str) -> None:
    Path("p.yaml").write_text(
        "version: 1\ninput: {channels: gray, skip: '0*'}\nsteps: [scale]\noutput: {format: npz, stack: true}\n"
    )

    def planned(*argv: str) -> list[str]:
        return [
            line.split()[0] for line in tconv("plan", images, "--pipeline", "p.yaml", *argv).out.splitlines() if line
        ]

    assert "uint8 12x11x1" in tconv("plan", images, "--pipeline", "p.yaml", "--only", "1*").out
    assert "uint8 12x11x3" in tconv("plan", images, "--pipeline", "p.yaml", "--only", "1*", "--channels", "rgb").out
    assert "images.pt" in planned("--only", "1*", "--format", "pt")
    assert tconv("plan", images, "--pipeline", "p.yaml", "--only", "0*").code == 1  # the file skips it
    assert tconv("plan", images, "--pipeline", "p.yaml", "--only", "0*", "--skip", "1*").code == 0


def test_variables_are_set(tconv: Tconv, images: str) -> None:
    Path("p.yaml").write_text("version: 1\nsteps: ['resize(${size:4}x${size})', cast: '${dtype}']\n")
    said = tconv("plan", images, "--pipeline", "p.yaml", "--set", "dtype=half", "--set", "size=6", "--print", "steps")
    assert said.out == "resize(6x6) | cast(float16)\n"
    for argv, says in (
        ((), "p.yaml:2:44: the variable 'dtype' has no value; --set dtype=VALUE, or a default, ${dtype:VALUE}; its "),
        (("--set", "dtpe=half"), "p.yaml: it has no variable 'dtpe'; did you mean dtype?"),
        (("--set", "half"), "--set 'half' is not NAME=VALUE"),
    ):
        ran = tconv("plan", images, "--pipeline", "p.yaml", *argv)
        assert ran.code == 2
        assert says in ran.err
    assert tconv("plan", images, "--set", "a=b").err == (
        "tconv: --set without --pipeline; variables are those of a pipeline file\n"
    )


def test_rules_for_names(tconv: Tconv) -> None:
    arrays: Any = {"a.norm.w": np.ones(2), "b.w": np.ones(2)}
    np.savez("x.npz", **arrays)
    chain = 'match("*.norm.*": cast(float32), "*": cast(float16))'
    assert tconv("x.npz", "--step", chain, "-o", "y.npz").code == 0
    with np.load("y.npz") as made:
        assert {name: made[name].dtype.name for name in made} == {"a.norm.w": "float32", "b.w": "float16"}
    wrong = tconv("plan", "x.npz", "--step", chain.replace("norm", "nrm"))
    assert "match '*.nrm.*' matches no name; names here are a.norm.w, b.w" in wrong.err
    shadowed = tconv("plan", "x.npz", "--step", 'match("*": cast(float32), "b*": cast(float16))')
    assert "the rules before 'b*' take all that it matches" in shadowed.err
    assert "float16" in tconv("plan", "x.npz", "--step", chain).out.splitlines()[2]  # the last cast names the file
    kept = tconv("x.npz", "--step", chain, "--keep", "b*", "-o", "z.npz")
    assert kept.code == 0
    with np.load("z.npz") as made:
        assert {name: made[name].dtype.name for name in made} == {"a.norm.w": "float32", "b.w": "float64"}


def test_mixed_spellings_are_refused_in_words_that_a_shell_takes(tconv: Tconv, images: str) -> None:
    ran = tconv("plan", images, "--half", "--step", "cast(half, keep=['a'])")
    assert ran.code == 2
    assert """write: --step 'cast(float16, keep=['"'"'a'"'"'])' --step 'cast(float16)'""" in ran.err
