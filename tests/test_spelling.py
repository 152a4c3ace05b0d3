"""One grammar, three spellings: what is written as text or as YAML reads back as the same steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tconv.errors import UsageError
from tconv.pipeline import steps_from_text
from tconv.recipes import recipe
from tconv.registry import STEPS
from tconv.request import Request
from tconv.settings import INPUT, OUTPUT, applied
from tconv.spelling import pipeline_file
from tconv.step import Step
from tconv.writer import ReadOptions, WriteOptions
from tests.chains import BY_NAME, chains

NOTHING = Request(())


@given(chains)
def test_text_reads_back(steps: list[Step]) -> None:
    assert steps_from_text([" | ".join(map(str, steps))]) == steps


@given(chains)
def test_yaml_reads_back(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    path = tmp_path_factory.mktemp("yaml") / "x.yaml"
    path.write_text(pipeline_file(steps, NOTHING), encoding="utf8")
    assert list(recipe(str(path)).steps) == steps


def test_a_file_is_as_short_as_people_write_it() -> None:
    text = 'resize(224) | scale | permute(2, 0, 1) | match("*.w": cast(half), ["a", "b"]: []) | match("*": stack(x))'
    assert pipeline_file(steps_from_text([text]), NOTHING) == (
        "version: 1\n"
        "steps:\n"
        "  - resize: 224\n"
        "  - scale\n"
        "  - permute: [2, 0, 1]\n"
        "  - match: '*.w'\n"
        "    steps:\n"
        "      - cast: float16\n"
        "  - match: [a, b]\n"
        "    steps: []\n"
        "  - 'match(\"*\": stack(into=''x''))'\n"
    )


ASKED: dict[str, Any] = {
    "read": ReadOptions("bgr", "drop", "index", "all", exif=False, max_pixels=7, fast=True),
    "range": (0, 2**53 + 1),
    "input_layout": "NHWC",
    "only": ("*.w", "a"),
    "skip": ("b",),
    "select": "model",
    "all": True,
    "fields": "",
    "strip_prefix": ("module.",),
    "on_bad": "skip",
    "format": "npz",
    "split": True,
    "batch_size": 5,
    "drop_last": True,
    "tie": True,
    "shard_size": 5_000_000_000,
    "write": WriteOptions(quality=9),
    "verify": True,
    "gpu_jpeg": True,
}


def test_options_read_back(tmp_path: Path) -> None:
    asked = Request((), **ASKED)
    path = tmp_path / "x.yaml"
    path.write_text(pipeline_file(steps_from_text(["scale"]), asked), encoding="utf8")
    assert applied(NOTHING, recipe(str(path)).settings, ()) == asked


def test_every_option_of_a_file_is_among_them() -> None:
    read = {"channels", "alpha", "palette", "frames", "exif", "max_pixels", "fast"}
    named = {"input_layout" if key == "layout" else key.replace("-", "_") for key in (*INPUT, *OUTPUT)}
    assert named - {"stack"} == ASKED.keys() - {"read", "write"} | read | {"quality"}  # stack is a step


def test_every_step_is_among_the_chains() -> None:
    assert {*BY_NAME, "match"} == STEPS.keys()


def test_without_a_step_there_is_nothing_to_write() -> None:
    with pytest.raises(UsageError, match="no step to print"):
        pipeline_file([], NOTHING)
