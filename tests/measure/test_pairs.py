"""Two streams side by side: who belongs to whom, and comparing them piece by piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tconv import evaluate
from tconv.errors import TconvError
from tconv.measure.compare import Tolerance
from tconv.measure.pairs import Prefix, compare, pair
from tests.measure.test_policy import Torn
from tests.memory import ArraySource, tensor

if TYPE_CHECKING:
    from tconv.tensor import Tensor


def named(*names: str) -> list[Tensor]:
    return [tensor(np.ones(1), name) for name in names]


def test_names_pair_in_the_order_of_the_first() -> None:
    found = pair(named("b", "a", "x"), named("y", "a", "b"))
    assert [(p.spec.name, q.spec.name) for p, q in found.pairs] == [("b", "b"), ("a", "a")]
    assert found.alone == (("x",), ("y",))
    assert found.prefix is None


@pytest.mark.parametrize(
    ("a", "b", "prefix"),
    [
        (["module.w", "module.b"], ["w", "b"], Prefix(0, "module.", 2)),
        (["w", "b"], ["module.net.w", "module.net.b"], Prefix(1, "module.net.", 2)),
        (["a.w", "b.w", "b.x"], ["w", "x"], Prefix(0, "b.", 2)),
        (["w."], [""], Prefix(0, "w.", 1)),
        (["modulew"], ["w"], None),
    ],
)
def test_a_prefix_that_hides_matches_is_found(a: list[str], b: list[str], prefix: Prefix | None) -> None:
    assert pair(named(*a), named(*b)).prefix == prefix


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_sides_that_decode_whole_and_sides_that_do_not(
    monkeypatch: pytest.MonkeyPatch, first: bool, second: bool
) -> None:
    """The sign of the roles shows in the relative error, which is that to the first side."""
    monkeypatch.setattr(evaluate, "PIECE", 16)
    a, b = np.arange(1.0, 101), np.arange(1.0, 101)
    b[50] = 51.5
    b[99] = 200
    both = (
        replace(tensor(a, "t"), source=ArraySource(a, seekable=first)),
        replace(tensor(b, "t"), source=ArraySource(b, seekable=second)),
    )
    ((found,), problems) = compare([both], Tolerance())
    assert problems == []
    assert (found.count, found.unequal, found.first, found.max_abs, found.max_rel) == (100, 2, 50, 100, 1.0)


def test_shapes_are_no_matter_here_but_dtypes_are() -> None:
    pairs = [(tensor(np.ones((2, 3), np.float32)), tensor(np.ones((2, 3), np.int8))), (tensor(np.zeros((0, 2))),) * 2]
    found, _ = compare(pairs, Tolerance())
    assert [(d.count, d.unequal) for d in found] == [(6, 0), (0, 0)]


@pytest.mark.parametrize("broken", [0, 1])
def test_what_cannot_be_read_is_named(broken: int) -> None:
    x = np.ones(3)
    torn = replace(tensor(x, "t"), source=Torn(x, Path("torn.npy")))
    both = (torn, tensor(x, "t")) if broken == 0 else (tensor(x, "t"), torn)
    try:
        _, (problem,) = compare([both], Tolerance())
    except TconvError as raised:
        problem = raised
    assert str(problem) == "torn.npy: t: torn"
