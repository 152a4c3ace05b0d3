"""YAML 1.2's scalars, positions, and text that reads back as the same data."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tconv.errors import UsageError
from tconv.yaml_text import Block, Document, dump, entry


def read(text: str) -> Any:
    document = Document(text)
    return document.data(document.root)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001), ("1.5", 1.5), (".5", 0.5), ("-2.", -2.0), ("224", 224), ("0224", "0224"),
        ("224x192", "224x192"), ("true", True), ("yes", "yes"), ("no", "no"), ("on", "on"), ("null", None), ("~", None),
        ("", None), ("12:30", "12:30"), ("2024-01-01", "2024-01-01"), ("1_000", "1_000"), ("0x1F", "0x1F"),
        ("'1'", "1"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    found = read(text)
    assert (found, type(found)) == (value, type(value))


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", min_size=1), inner)))
def test_what_is_dumped_reads_back(data: Any) -> None:
    assert read(dump(data)) == data


@pytest.mark.parametrize("text", ["0224", "1e-3", "no", "null", "~", "", "12:30", "=", "<<", "a: b", "- x", "*.w", "'"])
def test_text_that_looks_like_something_else_reads_back_as_text(text: str) -> None:
    assert read(dump([text])) == [text]


def test_a_block_has_a_key_a_line() -> None:
    assert dump([Block(a=1, b={"c": 2})]) == "- a: 1\n  b: {c: 2}\n"


def test_nodes_know_where_they_are() -> None:
    document = Document("a:\n  - one: 1\n  - 'two words'\n  - >\n    folded\n")
    first, second, third = entry(document.root, "a")[1].value
    assert document.text[document.place(first.value[0][0]) :].startswith("one: 1")
    assert document.text[document.place(second, 4) :].startswith("words")
    assert document.text[document.place(third, 3) :].startswith("ded\n")
    assert document.text[document.at("$.a[1]") :].startswith("'two")
    assert document.at("$.a[7].b") == document.at("$.a")
    assert entry(document.root, "b") == (None, None)
    assert Document("").at("$.a") == 0


@pytest.mark.parametrize(
    ("text", "why", "position"),
    [
        ("a: [", "expected the node content", 4),
        ("a: 1\na: 2", "'a' is there twice", 5),
        ("a: !!set {b}", "a value of the kind 'set'", 3),
        ("a: !!timestamp 2020-01-01", "a value of the kind 'timestamp'", 3),
        ("a: !mine [b]", "a value of the kind '!mine'", 3),
        ("a\n---\nb", "found another document", 2),
    ],
)
def test_what_is_no_yaml_has_a_position(text: str, why: str, position: int) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        read(text)
    assert caught.value.position == position


def test_aliases_that_stand_for_too_much_are_refused() -> None:
    assert read("a: &a [1, 2]\nb: [*a, *a]") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    laughs = "l0: &l0 [x]\n" + "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    for text in (laughs, "a: &a [*a]", "&a {b: [*a]}"):
        with pytest.raises(UsageError, match="aliases stand for more than 100,000 values"):
            read(text)


@pytest.mark.parametrize(
    ("text", "value", "there"),
    [
        ("a: >\n  one\n  two\n", "one two\n", "two\n"),
        ("a: |-  # said\n    one\n      two\n", "one\n  two", "two\n"),
        ("a: one\n  two", "one two", "two"),
        ("a: 'it''s  two'", "it's  two", "two'"),
        ('a: "one two"', "one two", 'two"'),
        ('a: "one\\ttwo"', "one\ttwo", '"one\\ttwo"'),  # what is escaped is not counted
    ],
)
def test_a_place_within_a_text_is_found_however_it_is_written(text: str, value: str, there: str) -> None:
    document = Document(text)
    node = entry(document.root, "a")[1]
    assert node.value == value
    assert document.text[document.place(node, value.index("two")) :] == there
