"""Which words are offered for a mistyped one, and in which order."""

from __future__ import annotations

import pytest

from tconv.suggest import did_you_mean, listed, nearest


@pytest.mark.parametrize(
    ("word", "known", "offered"),
    [
        ("haf", ["all", "alpha", "half"], ["half"]),
        ("flot32", ["float4", "float", "float32"], ["float32"]),
        ("nomalize", ["normalize", "resize"], ["normalize"]),
        ("Resize", ["normalize", "resize"], ["resize"]),
        ("floot16", ["bfloat16", "float16", "float64"], ["float16", "bfloat16"]),
        ("photos", ["inspect", "formats"], []),
        ("x", [], []),
        ("", ["a"], []),
    ],
)
def test_the_likeliest_comes_first_and_what_is_far_is_not_offered(
    word: str, known: list[str], offered: list[str]
) -> None:
    assert nearest(word, known) == offered


def test_in_words() -> None:
    assert did_you_mean("imgnet", ["imagenet", "clip"], "there are two") == "did you mean imagenet?"
    assert did_you_mean("zzz", ["imagenet", "clip"], "there are two") == "there are two"
    assert listed(["one"]) == "one"
    assert listed(["error", "saturate", "inf"]) == "error, saturate or inf"
