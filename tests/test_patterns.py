"""Globs on names: for the whole of a name, across dots and slashes."""

from __future__ import annotations

import pytest

from tconv.patterns import Patterns, matches


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("cats/1.png", "cats/*", True),
        ("cats/deep/1.png", "cats/*", True),
        ("cats/1.png", "*.png", True),
        ("cats/1.png", "1.png", False),
        ("layer.0.weight", "*.weight", True),
        ("layer.0.weight", "layer.?.weight", True),
        ("a[1].png", "a[[]1].png", True),
        ("A.png", "a.png", False),
        ("a\n.png", "a*", True),
    ],
)
def test_a_pattern_is_for_the_whole_name(name: str, pattern: str, fits: bool) -> None:
    assert matches(name, ["no", pattern]) is fits


def test_only_and_skip_together() -> None:
    wanted = Patterns(("*.png", "*.jpg"), ("bad*",))
    assert [name for name in ("a.png", "b.jpg", "bad.png", "c.gif") if wanted.wants(name)] == ["a.png", "b.jpg"]
    assert (bool(Patterns()), bool(wanted), str(wanted)) == (False, True, "--only and --skip")
    assert str(Patterns(skip=("x",))) == "--skip"
    assert Patterns().wants("anything")
