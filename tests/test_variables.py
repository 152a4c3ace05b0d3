"""Variables: typed where they stand alone, text within text, and nothing undefined or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from tconv.errors import UsageError
from tconv.variables import assignments, expand
from tconv.yaml_text import Document


def filled(text: str, **given: str) -> Any:
    document = Document(text)
    expand(document, given)
    return document.data(document.root)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x: ${size:224}", 224), ("x: '${size:224}'", 224), ('x: "${size:0.5}"', 0.5), ("x: ${on:true}", True),
        ("x: ${size:224x192}", "224x192"), ("x: ${name:}", None), ("x: resize(${size:224})", "resize(224)"),
        ("x: ${a:2}${b:4}", "24"), ("x: a${b:}c", "ac"), ("x: [1, '${n:2}']", [1, 2]),
        ("x: $${size}", "${size}"), ("x: $$", "$"), ("x: $HOME $1 a$", "$HOME $1 a$"), ("x: $$${n:5}", "$5"),
        ("x: !!str ${n:5}", 5),
    ],
)  # fmt: skip
def test_defaults(text: str, value: Any) -> None:
    found = filled(text)["x"]
    assert (found, type(found)) == (value, type(value))


def test_what_is_set_is_typed_as_yaml_has_it() -> None:
    assert filled("x: ${n:1}", n="256") == {"x": 256}
    assert filled("x: ${n}", n="1e-3") == {"x": 0.001}
    assert filled("x: ${n}", n="") == {"x": None}
    assert filled("x: ${n}", n="a b: c | [d") == {"x": "a b: c | [d"}
    assert filled("x: f(${n:1})", n="[2]") == {"x": "f([2])"}


@pytest.mark.parametrize(
    ("value", "means"),
    [('"1"', "1"), ("'null'", "null"), ("'true'", "true"), ("''", ""), ("'a", "'a"), ("\"a'", "\"a'"), ('"', '"')],
)
def test_in_quotes_it_is_text(value: str, means: str) -> None:
    assert filled("x: ${n:1}", n=value) == {"x": means}


def test_one_default_is_for_all_uses_and_aliases() -> None:
    assert filled("a: &a ${n:1}\nb: ${n}\nc: *a\nd: [*a]") == {"a": 1, "b": 1, "c": 1, "d": [1]}


def test_the_variables_are_told_with_their_defaults() -> None:
    document = Document("- ${b}\n- ${a:1}\n- $${c}\n- x${b}")
    assert expand(document, {"b": "2"}) == {"b": None, "a": "1"}


@pytest.mark.parametrize(
    ("text", "given", "says", "position"),
    [
        (
            "x: a ${size} ${n:1}",
            {},
            "'size' has no value; --set size=VALUE, or a default, ${size:VALUE}; its variables are size, n",
            5,
        ),
        ("x: ${n:1}\ny: '${n:2}'", {}, "two defaults, '1' and '2'", 13),
        ("x: ${n:1}", {"m": "2"}, "no variable 'm'; its variables are n", None),
        ("x: ${size:1}", {"sise": "2"}, "no variable 'sise'; did you mean size?", None),
        ("x: 1", {"m": "2"}, "no variable 'm'; it has none", None),
        ("x: ${}", {}, "'${}' is no variable; write ${name}", 3),
        ("x: '${1a}'", {}, "'${1a}' is no variable", 3),
        ("x: a${b", {}, "'${b' is no variable", 4),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, given: dict[str, str], says: str, position: int) -> None:
    with pytest.raises(UsageError) as caught:
        filled(text, **given)
    assert says in str(caught.value)
    assert caught.value.position == position


def test_assignments() -> None:
    assert assignments(["size=256", "name=a=b", "x="]) == {"size": "256", "name": "a=b", "x": ""}
    for wrong in ("size", "=3"):
        with pytest.raises(UsageError, match="is not NAME=VALUE"):
            assignments([wrong])
    with pytest.raises(UsageError, match="'a' twice"):
        assignments(["a=1", "a=2"])
