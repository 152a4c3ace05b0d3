"""Flags, text and YAML become the same steps; what is wrong is named before any file is opened."""

from __future__ import annotations

import re

import pytest

from tconv.errors import UsageError
from tconv.pipeline import Sugar, steps_from_text
from tconv.registry import STEPS, step

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
        ("nomalize(imagenet)", "no step 'nomalize'; did you mean normalize or denormalize?"),
        ("normalize(mean=0.5)", "std"),
        ("resize(224, methd=bicubic)", "no parameter 'methd'; did you mean method?"),
        ("crop(224, 0, 0, 3)", "it takes 3 values at most (size, top, left), not 4"),
        ("resize(224, size=225)", "'size' is given twice"),
        ("resize()", "size"),
        ("cast(floot16)", "floot16"),
        ("cast(float16, on_overflow=wrap)", "wrap"),
        ("clamp(0, high)", "hi takes a number, not 'high'; for example clamp(0, 1)"),
        ("resize(224, 224)", "method takes a word, not 224; for example resize(224), resize(256x192, method=bicubic)"),
        ("resize((224, 224))", "size takes a whole number or a word, not [224, 224]; for example resize(224)"),
        ("normalize(0.5, 0.5)", "stats takes a word, not 0.5; for example normalize(imagenet)"),
        ("scale(255)", "dtype takes a word, not 255; for example scale, scale(uint8)"),
        ("resize()", "it needs size; for example resize(224)"),
        ("stack(into=3)", "into takes a word, not 3; for example stack, stack(into=batch)"),
        ("crop(224, top=-1, left=0)", "for example crop(224), crop(256x192, top=0, left=16)"),
        ("permute(CHW, orde=HWC)", "no parameter 'orde'; did you mean order?"),
        ("normalize(imgnet)", "did you mean imagenet?"),
        ("resize(224, method=bicubc)", "no method 'bicubc'; did you mean bicubic?"),
        ("resize(640, aspect=inside)", "no aspect 'inside'; valid: contain, cover"),
        ("resize(640, aspect=contian)", "no aspect 'contian'; did you mean contain?"),
        ("scale(like=torch)", "no convention 'torch'; did you mean torchvision?"),
        ("cast('<f4')", "NumPy's '<f4' is called float32 here"),
    ],
)
def test_errors_name_the_step_and_what_is_wrong_with_it(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([text])
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nomalize", "position 1: there is no step 'nomalize'; did you mean normalize or denormalize?"),
        ("nomalize | scale", "position 1: there is no step 'nomalize'"),
        ("scale | nomalize", "position 9: there is no step 'nomalize'"),
        ("scale | cast(floot16)", "cast(floot16), position 14: there is no dtype 'floot16'"),
        ("scale | resize(8, methd=box)", "resize(8, methd=box), position 19: there is no parameter 'methd'"),
        ("scale | normalize(imgnet)", "normalize, position 19: 'imgnet' is neither imagenet nor clip"),
        ("cast(half, max_error=-1)", "cast, position 12: max_error is -1"),
        ("quantize(int8, axis=auto, group=0)", "position 27: group is 0"),
        ("scale | resize(0)", "resize, position 9: a side of 0 pixels"),
        ("scale | resize(224x)", "resize, position 16: '224x' is no size in pixels"),
        ("resize(0)", "resize: a side of 0 pixels"),
    ],
)
def test_errors_say_where_it_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([text])
    assert says in str(caught.value)


def test_an_error_repeats_no_long_text() -> None:
    with pytest.raises(UsageError) as caught:
        steps_from_text([f"cast(float16, keep=[{'a, ' * 5000}], kep=1)"])
    assert "there is no parameter 'kep'" in str(caught.value)
    assert len(str(caught.value)) < 300


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


@pytest.mark.parametrize("name", list(STEPS))
def test_every_step_says_how_it_is_written(name: str) -> None:
    examples = re.split(r", (?=[a-z]+(?:\(|,|$))", step(name).usage)
    assert all(example.startswith(name) for example in examples)
    for example in examples:
        steps_from_text([example])


def test_the_words_that_a_step_lists_are_those_it_takes() -> None:
    for word in step("resize").choices["method"]:
        steps_from_text([f"resize(8, method={word})"])
    for word in step("resize").choices["aspect"]:
        steps_from_text([f"resize(8, aspect={word})"])
    for word in step("scale").choices["like"]:
        steps_from_text([f"scale(float32, like={word})"])
    for word in step("normalize").choices["stats"]:
        steps_from_text([f"normalize({word})"])


@pytest.mark.parametrize(
    ("sugar", "chain"),
    [
        (Sugar(resize="224,224"), ["resize('224,224')"]),
        (Sugar(resize="8"), ["resize(8)"]),
        (Sugar(resize=""), ["resize('')"]),
        (Sugar(stats=""), ["normalize('')"]),
        (Sugar(layout="c h w"), ["permute('C H W')"]),
        (Sugar(stats="my stats.json"), ["normalize('my stats.json')"]),
    ],
)
def test_what_is_no_value_as_it_stands_is_quoted_and_nothing_given_is_dropped(sugar: Sugar, chain: list[str]) -> None:
    assert sugar.chain() == chain
    assert sugar.given()
