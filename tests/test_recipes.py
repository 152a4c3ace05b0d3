"""Pipelines in YAML files: those that come with tconv, and broken ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tconv.errors import UsageError
from tconv.pipeline import steps_from_text
from tconv.recipes import recipe, recipe_files
from tests.test_pipeline import CHAIN


def test_names_are_sorted_with_the_plain_one_first() -> None:
    names = [path.stem for path in recipe_files()]
    assert names == sorted(names)
    assert names.index("imagenet") < names.index("imagenet-eval")


def test_the_pipelines_that_come_with_tconv_all_load_and_say_what_they_are_for() -> None:
    names = [path.stem for path in recipe_files()]
    assert {"imagenet", "imagenet-eval", "clip", "vit-inception", "half", "bf16"} <= set(names)
    for name in names:
        found = recipe(name)
        assert found.steps
        assert found.description


def test_a_shipped_pipeline_is_the_chain_it_says() -> None:
    assert list(recipe("imagenet").steps) == steps_from_text([CHAIN.replace("float16", "float32")])


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf8")
    return str(path)


def test_yaml_entries_may_be_written_in_every_way(tmp_path: Path) -> None:
    path = write(
        tmp_path / "mine.yaml",
        "version: 1\nsteps:\n  - resize: 224\n  - resize: {size: 224, method: bicubic}\n  - permute: [1, 0]\n"
        "  - scale\n  - crop(8) | clamp(0, 1)\n  - scale:\n",
    )
    assert list(recipe(path).steps) == steps_from_text(
        ["resize(224) | resize(224, method=bicubic) | permute(1, 0) | scale | crop(8) | clamp(0, 1) | scale"]
    )
    path = write(tmp_path / "text.yml", f"version: 1\nsteps: {CHAIN}\n")
    assert list(recipe(path).steps) == steps_from_text([CHAIN])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps: [scale]", "is no pipeline: it lacks version; a small one is\n  version: 1\n  steps:"),
        ("{}", "it lacks version; a small one is"),
        ("version: 1", "it lacks steps"),
        ("version: true\nsteps: [scale]", "version: expected a whole number, not true; a small one is"),
        ("version: '1'\nsteps: [scale]", "version: expected a whole number, not '1'"),
        ("version: 1\nsteps: []", "steps: expected a list of length >= 1"),
        ("version: 1\nsteps:", "steps: expected text or a list, not null"),
        ("version: 1\nsteps: [3]", "steps[0]: expected"),
        ("version: 1\nsteps: [scale]\ndescription: 3", "description: expected text, not 3"),
        ("version: 1\nsteps: !!set {scale}", "it has a value of the kind 'set'"),
        ("version: 1\nsteps: [{1: 2}]", "steps[0]: a key is no text"),
        ("version: 1\n1: 2\nsteps: [scale]", "is no pipeline: a key is no text"),
        (
            "version: 1\ninput: {exif: no}\nsteps: [scale]",
            "input.exif: expected true or false, not 'no'; whether images",
        ),
        (
            "version: 1\ninput: {range: [0, a]}\nsteps: [scale]",
            "input.range[1]: expected a number, not 'a'; the interval",
        ),
        ("version: 1\nsteps: [{quantize: {dtype: int8, axis: nine}}]", "axis takes a whole number or None, not 'nine'"),
        ("version: 1\nsteps: [normalize: foo]", "'foo' is neither imagenet nor clip nor MEAN/STD nor a file"),
        ("version: 1\nsteps: [resize: [224, 224]]", "method takes a word, not 224; for example resize(224)"),
        ("version: 1\nsteps: [resize: {1: 2}]", "there is no parameter 1; it has size and method"),
        ("version: 1\nsteps: [scale]\nname: x", "it has an unknown name; a small one is"),
        ("a: *x", ":1:4: is no pipeline: it is no YAML (found undefined alias 'x')"),
        ("version: !!bool x\nsteps: [scale]", "is no YAML"),
        ("[" * 100_000, "is no YAML"),
        ("#" * 2_000_000, "is larger than 1,048,576 bytes"),
        ("version: 2\nsteps: [scale]", "version: this tconv does not know 2"),
        ("version: 1\nsteps: [scale]\nstep: x", "step"),
        ("version: 1\nsteps: [nomalize]", "did you mean normalize or denormalize?"),
        ("version: 1\nsteps: [{scale: , crop: 3}]", "one step to an entry"),
        ("version: 1\nsteps: 3", "steps"),
        ("- just\n- a list", "is no pipeline"),
        ("version: [", "is no pipeline"),
        ("!!python/object/apply:os.system ['touch canary']", "is no pipeline"),
        ("\x00", "is no pipeline"),
    ],
)
def test_a_broken_file_is_refused_by_name(
    tmp_path: Path, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "bad.yaml", text)
    with pytest.raises(UsageError) as caught:
        recipe(path)
    assert says in str(caught.value)
    assert path in str(caught.value)
    assert not Path("canary").exists()


def test_the_small_pipeline_of_the_errors_is_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        recipe(write(tmp_path / "bad.yaml", "{}"))
    example = caught.value.remedy.partition("\n")[2]
    assert [str(s) for s in recipe(write(tmp_path / "good.yaml", example)).steps] == [
        "resize(224x224)", "scale", "cast(float16)",
    ]  # fmt: skip


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no pipeline 'imagnet'; did you mean imagenet\?"):
        recipe("imagnet")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        recipe(str(tmp_path / "gone.yaml"))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.yaml")
    with pytest.raises(UsageError, match=r"p\.yaml: is no file, so no pipeline"):
        recipe(str(tmp_path / "p.yaml"))


RULES = """version: 1
steps:
  - scale
  - match: ["*.norm.*", "bias"]
    steps: [cast(float32)]
  - match: "*"
    steps: clamp(0, 1) | cast(float16)
  - clamp: [0, 1]
  - match: "x"
    steps: []
"""


def test_rules_that_follow_each_other_are_one_set(tmp_path: Path) -> None:
    assert list(recipe(write(tmp_path / "x.yaml", RULES)).steps) == steps_from_text(
        [
            'scale | match(["*.norm.*", "bias"]: cast(float32), "*": clamp(0, 1) | cast(float16))',
            'clamp(0, 1) | match("x": [])',
        ]
    )


def test_the_file_of_the_readme_is_one(tmp_path: Path) -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf8")
    (text,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert list(recipe(write(tmp_path / "x.yaml", text), {"dtype": "half"}).steps) == steps_from_text(
        ['match(["*.norm.*", "head.*"]: cast(float32), "*": cast(float16))']
    )


def test_options_and_variables_come_with_the_steps(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.yaml",
        "version: 1\ninput: {channels: '${order:rgb}', only: '*.jpg'}\nsteps: resize(${size:224})\n"
        "output:\n  stack: ${stack:true}\n",
    )
    found = recipe(path, {"size": "256x128", "order": "bgr"})
    assert list(found.steps) == steps_from_text(["resize(256x128)"])
    assert found.settings == {"channels": "bgr", "only": ("*.jpg",), "stack": True}
    assert found.variables == {"order": "rgb", "size": "224", "stack": "true"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "version: 1\nsteps:\n  - scale\n  - nomalize: clip\n",
            "x.yaml:4:5: there is no step 'nomalize'; did you mean normalize",
        ),
        ("version: 1\nsteps:\n  - 'scale | nomalize'\n", "x.yaml:3:14: there is no step 'nomalize'"),
        ("version: 1\nsteps: scale | nomalize\n", "x.yaml:2:16: there is no step 'nomalize'"),
        (
            "version: 1\nsteps:\n- resize: {size: 9, methd: box}\n",
            "x.yaml:3:21: resize: there is no parameter 'methd'; did you mean method?",
        ),
        (
            "version: 1\nsteps:\n- resize: {size: 9, method: bx}\n",
            "x.yaml:3:21: resize: there is no method 'bx'; did you mean box?",
        ),
        ("version: 1\nsteps:\n- clamp: [0, x]\n", "x.yaml:3:14: clamp: hi takes a number, not 'x'"),
        ("version: 1\nsteps:\n- resize(9, 9)\n", "x.yaml:3:13: resize(9, 9): method takes a word, not 9"),
        ("version: 1\nsteps:\n- clamp(0;1)\n", "x.yaml:3:10: 'clamp(0;1)': expected"),
        ("version: 1\nsteps:\n- resize: ${s:0}\n", "x.yaml:3:3: resize: a side of 0 pixels"),
        ("version: 1\nsteps:\n- 'resize(${s:0})'\n", "x.yaml:3:3: resize: a side of 0 pixels"),
        ("version: 1\nsteps:\n- crop: ${s}\n", "x.yaml:3:9: the variable 's' has no value; --set s=VALUE"),
        (
            "version: 1\nsteps: [scale]\ninput: {chanels: rgb}\n",
            "x.yaml:3:9: is no pipeline: input: it has an unknown chanels; did you mean channels?",
        ),
        ("version: 1\nsteps: [scale]\ninput: {batch: rgb}\n", "there are channels, alpha, "),
        (
            "version: 1\nsteps: [scale]\ninput:\n  channels: grb\n",
            "x.yaml:4:13: is no pipeline: input.channels: this tconv does not know 'grb'; did you mean rgb or bgr?",
        ),
        (
            "version: 1\nsteps: [scale]\noutput:\n  stack: 3\n",
            "x.yaml:4:10: is no pipeline: output.stack: expected true or false, not 3; equal shapes become one array",
        ),
        ("version: 1\nstps: [scale]\n", "is no pipeline: "),
        ("version: 1\nsteps: [scale]\ninput: {range: [1, 0]}\n", "LO must be less than HI"),
        ("version: 1\nsteps:\n- match: a\n", "x.yaml:3:3: a rule needs steps"),
        ("version: 1\nsteps:\n- steps: scale\n", "x.yaml:3:3: a rule needs a match"),
        ("version: 1\nsteps:\n- match: a\n  steps: {scale: }\n", "x.yaml:4:10: a rule needs steps, as text or a list"),
        (
            "version: 1\nsteps:\n- match: a\n  steps: [[scale]]\n",
            "x.yaml:4:11: a step is text or a mapping, not a list",
        ),
        ("version: 1\nsteps: [scale]\nversion: 1\n", "x.yaml:3:1: is no pipeline: 'version' is there twice"),
        ("version: 1\nsteps: [scale]\ninput: {layout: HHW}\n", "x.yaml:3:17: layout 'HHW' is no list of axes"),
        ("version: 1\nsteps: [scale]\noutput: {shard-size: 5XB}\n", "x.yaml:3:22: shard-size '5XB' is no size"),
        ("version: 1\nsteps: [scale]\noutput: {format: npyy}\n", "x.yaml:3:18: there is no output format 'npyy'; did"),
        ("version: 1\nsteps: >\n  scale\n  | cst(half)\n", "x.yaml:4:5: there is no step 'cst'; did you mean cast?"),
        ("version: 1\nsteps:\n- cast: floot16\n", "x.yaml:3:9: cast: there is no dtype 'floot16'"),
        (
            "version: 1\nsteps:\n- match: a\n  step: scale\n",
            "x.yaml:4:3: there is no 'step' in a rule; did you mean steps?",
        ),
        (
            "version: 1\nsteps:\n- match: 3\n  steps: scale\n",
            "x.yaml:3:10: match: a rule is for a pattern of names, not for 3",
        ),
        (
            "version: 1\nsteps:\n- match: [a]\n  steps:\n  - scale\n  - cst: half\n",
            "x.yaml:6:5: there is no step 'cst'; did you mean cast?",
        ),
        ("version: 1\nsteps:\n- match: {a: b}\n  steps: scale\n", "not for {'a': 'b'}"),
        ("\xff", "it is no text in UTF-8"),
    ],
)
def test_errors_say_the_line_and_the_column(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(UsageError) as caught:
        recipe(str(path))
    assert says in str(caught.value)


def test_a_variable_that_the_file_does_not_have(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", "version: 1\nsteps:\n- resize: ${size:9}\n")
    with pytest.raises(UsageError, match=r"x\.yaml: it has no variable 'sizes'; did you mean size\?"):
        recipe(path, {"sizes": "3"})


@pytest.mark.parametrize(
    "text", ["version: 1\nsteps: [scale]\nsteps: [scale]", "version: 1\nsteps: [cast: {dtype: half, dtype: bf16}]"]
)
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="is there twice"):
        recipe(write(tmp_path / "x.yaml", f"version: 1\n{text}"))


def test_a_variable_may_be_text_that_looks_like_a_number(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.yaml", 'version: 1\nsteps: [stack: "${name:batch}", {quantize: {dtype: int8, axis: None}}]\n'
    )
    assert list(recipe(path, {"name": "'2024'"}).steps) == steps_from_text(
        ["stack(into='2024') | quantize(int8, axis=None)"]
    )
    with pytest.raises(UsageError, match=r"x\.yaml:2:16: stack: into takes a word, not 2024"):
        recipe(path, {"name": "2024"})


def test_one_glob_needs_no_brackets(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", "version: 1\nsteps: [{cast: {dtype: half, keep: '*.w'}}]\n")
    for text in ("cast(half, keep=['*.w'])", "cast(half, keep='*.w')"):
        assert list(recipe(path).steps) == steps_from_text([text])
