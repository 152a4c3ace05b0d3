"""Flags, text and YAML become the same steps; what is wrong is named before any file is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tconv.errors import UsageError
from tconv.pipeline import Sugar, recipe, recipe_files, steps_from_text

CHAIN = "resize(224x224) | scale | normalize(imagenet) | permute(CHW) | cast(float16)"


def test_text_becomes_steps_that_print_as_the_same_text() -> None:
    steps = steps_from_text([CHAIN])
    assert " | ".join(map(str, steps)) == CHAIN
    assert steps_from_text([str(s) for s in steps]) == steps


@pytest.mark.parametrize(
    "text",
    [
        "resize(224)", "resize(256x192, method=bicubic)", "crop(224)", "permute(1, 0)", "permute(NCHW)", "stack",
        "scale",
        "scale(uint8)", "scale(uint8, like=torchvision)", "normalize(mean=[0.5], std=[0.25])", "clamp(-1, 2.5)",
        "cast(float16, on_overflow=saturate)", "normalize(clip)", "normalize('0.5,0.5,0.5/0.2,0.2,0.2')",
    ],
)  # fmt: skip
def test_every_step_prints_as_what_it_parses_from(text: str) -> None:
    (step,) = steps_from_text([text])
    assert steps_from_text([str(step)]) == [step]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nomalize(imagenet)", "no step 'nomalize'; did you mean normalize?"),
        ("normalize(mean=0.5)", "std"),
        ("resize(224, methd=bicubic)", "no parameter 'methd'; did you mean method?"),
        ("resize(224, bicubic, 3)", "takes at most 2 arguments"),
        ("resize(224, size=225)", "'size' is given twice"),
        ("resize()", "size"),
        ("cast(floot16)", "floot16"),
        ("cast(float16, on_overflow=wrap)", "wrap"),
        ("clamp(0, high)", "hi"),
    ],
)
def test_errors_name_the_step_and_what_is_wrong_with_it(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([text])
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("sugar", "chain"),
    [
        (Sugar(), []),
        (Sugar(to="float32", normalize=True), ["scale", "cast(float32)"]),
        (
            Sugar("224x224", True, "imagenet", "chw", "float16"),
            ["resize(224x224)", "scale", "normalize(imagenet)", "permute(CHW)", "cast(float16)"],
        ),
        (Sugar(layout="CHW", stack=True, to="half"), ["permute(CHW)", "stack", "cast(half)"]),
        (Sugar(layout="NCHW", stack=True), ["stack", "permute(NCHW)"]),
        (Sugar(layout="NCHW"), ["permute(NCHW)"]),
        (Sugar(stats="0.5/0.5"), ["normalize('0.5/0.5')"]),
    ],
)
def test_options_stand_for_steps_in_their_fixed_order(sugar: Sugar, chain: list[str]) -> None:
    assert sugar.chain() == chain
    steps_from_text(sugar.chain())


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
        ("steps: [scale]", "version"),
        ("version: 2\nsteps: [scale]", "this tconv reads version 1"),
        ("version: 1\nsteps: [scale]\nstep: x", "step"),
        ("version: 1\nsteps: [nomalize]", "did you mean normalize?"),
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


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no pipeline 'imagnet'; did you mean imagenet\?"):
        recipe("imagnet")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        recipe(str(tmp_path / "gone.yaml"))
