"""The JSON Schema of pipeline files: what tconv reads fits it, and what is mistyped does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tconv.recipes import recipe_files
from tconv.registry import STEPS, step
from tconv.request import Request
from tconv.schema import schema
from tconv.spelling import pipeline_file
from tconv.step import Step
from tconv.yaml_text import Document
from tests.chains import chains
from tests.test_recipes import RULES

SCHEMA = json.loads(schema())
SHIPPED = "pipelines/pipeline.schema.json"


def fits(text: str) -> bool:
    jsonschema = pytest.importorskip("jsonschema")
    document = Document(text)
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(document.data(document.root)))


def test_it_is_a_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_step_and_every_word_that_it_takes_is_in_it() -> None:
    entry = SCHEMA["$defs"]["Entry"]["properties"]
    assert set(entry) == {*STEPS, "steps"}
    for name in set(STEPS) - {"match"}:
        for parameter, words in step(name).choices.items():
            shown = json.dumps(SCHEMA["$defs"][name.capitalize()]["properties"][parameter])
            assert all(f'"{word}"' in shown for word in words)


@given(chains)
def test_whatever_is_printed_fits(steps: list[Step]) -> None:
    assert fits(pipeline_file(steps, Request((), skip=("a",), range=(0, 1), shard_size=7)))


@pytest.mark.parametrize("path", recipe_files(), ids=lambda path: path.stem)
def test_the_pipelines_that_come_with_tconv_fit_and_name_it(path: Any) -> None:
    text = path.read_text(encoding="utf8")
    assert text.startswith("# yaml-language-server: $schema=pipeline.schema.json\n")
    assert fits(text)


def test_the_schema_beside_them_is_this_one() -> None:
    beside = recipe_files()[0].with_name("pipeline.schema.json")
    assert beside.read_text(encoding="utf8") == schema(), f"tconv schema > {SHIPPED} writes it anew"


@pytest.mark.parametrize(
    "text",
    [
        RULES,
        "version: 1\nsteps: scale | cast(half)",
        "version: 1\nsteps: [resize: 8, permute: [1, 0], scale: , cast: {dtype: half, max_error: '${e:0.1}'}]",
        "version: 1\ninput: {channels: '${order:rgb}', exif: '${e:true}', range: '0,1'}\nsteps: [scale]",
        "version: 1\nsteps: [{resize: {size: 8, method: '${method:box}'}}]",
        "version: 1\nsteps: [cast: bf16, cast: torch.float16, cast: Half, scale: uint8, '${last:stack}']",
        "version: 1\nsteps: [{cast: {dtype: half, keep: '*.w'}}, {quantize: {dtype: int8, keep: ['*.w']}}]",
        "version: 1\nsteps: |\n  scale |\n    cast (half)\n",
    ],
)
def test_what_fits(text: str) -> None:
    assert fits(text)


@pytest.mark.parametrize(
    "text",
    [
        "steps: [scale]",
        "version: 2\nsteps: [scale]",
        "version: 1\nsteps: [nomalize: clip]",
        "version: 1\nsteps: [{resize: {size: 8, method: bx}}]",
        "version: 1\nsteps: [{resize: {sise: 8}}]",
        "version: 1\nsteps: [{cast: {dtype: half, on_overflow: wrap}}]",
        "version: 1\nsteps: [resize: ]",
        "version: 1\nsteps: [match: a]",
        "version: 1\nsteps: [cast: floot16]",
        "version: 1\nsteps: [{dequantize: {dtype: halv}}]",
        "version: 1\nsteps: scal",
        "version: 1\nsteps: ''",
        "version: 1\nsteps: [cst(half) | scale]",
        "version: 1\nsteps: [{match: [], steps: scale}]",
        "version: 1\nsteps: [{match: '', steps: scale}]",
        "version: 1\nsteps: [{match: a, steps: {scale: }}]",
        "version: 1\nsteps: [{match: a, steps: [{cst: half}]}]",
        "version: 1\ninput: {channels: grb}\nsteps: [scale]",
        "version: 1\ninput: {chanels: rgb}\nsteps: [scale]",
        "version: 1\nsteps: [scale]\noutput: {stack: 3}",
    ],
)
def test_what_does_not_fit(text: str) -> None:
    assert not fits(text)
