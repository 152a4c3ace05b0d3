"""JSON without what makes it mean two things."""

from __future__ import annotations

import pytest

from tconv.errors import TconvError
from tconv.formats.strict_json import parse


def test_an_object_is_what_it_says() -> None:
    assert parse(b'{"a": [1, 2.5, null, "\xc3\xa4"]}', "a broken thing") == {"a": [1, 2.5, None, "\u00e4"]}


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (b'{"a": {"b": 1, "b": 2}}', "'b' is there twice"),
        (b'{"a": Infinity}', "Infinity is no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number too long, or nesting too deep"),
        (b"\xff", "it is not UTF-8"),
        (b"[]", "not a JSON object"),
        (b"{", "not JSON at character 1 (Expecting property name enclosed in double quotes)"),
    ],
)
def test_all_else_is_refused_in_one_sentence(data: bytes, how: str) -> None:
    with pytest.raises(TconvError) as caught:
        parse(data, "a broken thing")
    assert str(caught.value) == f"a broken thing: {how}"
