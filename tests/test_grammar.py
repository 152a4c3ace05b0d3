"""The text of a chain: what parses to what, and where an error is said to be."""

from __future__ import annotations

from typing import Any

import pytest

from tconv.errors import UsageError
from tconv.grammar import Call, literal, parse_chain


@pytest.mark.parametrize(
    ("text", "name", "args", "kwargs"),
    [
        ("scale", "scale", (), {}),
        ("scale()", "scale", (), {}),
        ("resize(224)", "resize", (224,), {}),
        ("resize(256x192)", "resize", ("256x192",), {}),
        ("resize( 224 , method = bicubic )", "resize", (224,), {"method": "bicubic"}),
        ("cast(torch.float16)", "cast", ("torch.float16",), {}),
        ("device(cuda:1)", "device", ("cuda:1",), {}),
        ("clamp(-1.5, 2e3)", "clamp", (-1.5, 2000.0), {}),
        ("clamp(lo=-.5, hi=+7)", "clamp", (), {"lo": -0.5, "hi": 7}),
        ("permute(1, 0,)", "permute", (1, 0), {}),
        ("normalize(mean=[0.5, 0.25], std=(1, 2))", "normalize", (), {"mean": [0.5, 0.25], "std": [1, 2]}),
        ("normalize('0.5,0.5/1')", "normalize", ("0.5,0.5/1",), {}),
        ('normalize("a b|c")', "normalize", ("a b|c",), {}),
        ("f(None, true, False, [])", "f", (None, True, False, []), {}),
    ],
)
def test_one_call(text: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    (call,) = parse_chain(f"  {text} ")
    assert (call.name, call.args, dict(call.kwargs), call.text) == (name, args, kwargs, text)


def test_a_chain_keeps_the_order_and_the_text_of_each_call() -> None:
    assert parse_chain("resize(8)|scale | cast( float16 )") == [
        Call("resize", (8,), {}, "resize(8)"),
        Call("scale", (), {}, "scale"),
        Call("cast", ("float16",), {}, "cast( float16 )"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the name of a step at position 1, found the end"),
        ("resize(224", "')' at position 11, found the end"),
        ("resize(224) scale", "'|' or the end at position 13, found 'scale'"),
        ("scale |", "the name of a step at position 8, found the end"),
        ("resize(,)", "a value at position 8, found ',)'"),
        ("f(a=1, 2)", "name=value"),
        ("f(a=1, a=2)", "each parameter once at position 8"),
        ("f(__import__('os'))", "')' at position 13"),
        ("f(1 + 1)", "at position 5, found '+ 1)'"),
        ("f(;)", "one of ( ) [ ] , = : | at position 3, found ';)'"),
        ("f('open)", "expected a text that ends with ' at position 3, found \"'open)\""),
        ("f(\"open')", 'expected a text that ends with " at position 3'),
        ("f(∞)", "at position 3"),
        ("(1)", "the name of a step at position 1"),
    ],
)
def test_errors_say_what_was_expected_and_where(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chain(text)
    assert says in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("resize 224", "parameters stand in parentheses: resize(224)"),
        ("resize=224", "parameters stand in parentheses: resize(224)"),
        ("normalize mean=0.5, std=0.5", "parameters stand in parentheses: normalize(mean=0.5, std=0.5)"),
        ("resize(224),scale", "between steps stands a |: resize(224) | scale"),
        ("resize(224) scale", "between steps stands a |: resize(224) | scale"),
        ("scale, cast(float16)", "between steps stands a |: scale | cast(float16)"),
        ("scale cast(float16)", "between steps stands a |: scale | cast(float16)"),
        ("cast float16", "parameters stand in parentheses: cast(float16); between steps stands a |: cast | float16"),
        ("scale )", "for example resize(224) | scale | cast(float16)"),
        ("scale,", "for example resize(224) | scale | cast(float16)"),
        ("resize(224*224)", "for example resize(224) | scale | cast(float16)"),
        ("resize(224", "for example resize(224) | scale | cast(float16)"),
        ("", "for example resize(224) | scale | cast(float16)"),
        (f"clamp({'9' * 5000}, 1)", "for example"),
    ],
)
def test_the_remedy_is_what_was_meant_or_an_example(text: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chain(text)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("224", "224"), ("256x192", "256x192"), ("imagenet", "imagenet"), ("stats/mine.json", "stats/mine.json"),
        ("0.5/0.5", "'0.5/0.5'"), ("224*224", "'224*224'"), ("2, 0, 1", "'2, 0, 1'"), ("a|b", "'a|b'"), ("", "''"),
        ("it's", '"it\'s"'), ("cuda:1", "cuda:1"), ("a:b", "'a:b'"), ("none", "'none'"), (" x", "' x'"),
    ],
)  # fmt: skip
def test_a_text_becomes_a_value_of_a_chain(text: str, written: str) -> None:
    assert literal(text) == written
    (call,) = parse_chain(f"f({written})")
    assert str(call.args[0]) == text


def test_brackets_end_somewhere() -> None:
    with pytest.raises(UsageError, match="fewer brackets in each other at position 1"):
        parse_chain(f"permute({'[' * 5000}")


def test_digits_are_those_of_ascii() -> None:
    (call,) = parse_chain("f(１２, ٣, 4)")
    assert call.args == ("１２", "٣", 4)


@pytest.mark.parametrize(("text", "position"), [("f(" + "a, " * 50_000 + "!)", 150_003), ("f(" * 50_000, 4)])
def test_a_long_text_is_repeated_where_it_is_wrong_only(text: str, position: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chain(text)
    assert f"at position {position}, found" in str(caught.value)
    assert len(str(caught.value)) < 400
