"""Written values as parameters: what fits, and what is said of what does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tconv.errors import UsageError
from tconv.parameters import bind, check_names, shown


@dataclass
class Sample:
    """One parameter of every type that steps have."""

    size: int | str
    factor: float = 1.0
    mean: float | tuple[float, ...] | None = None
    name: str | None = None
    exact: bool = False
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((224,), {}, {"size": 224}),
        (("256x192", 2), {}, {"size": "256x192", "factor": 2.0}),
        ((1,), {"mean": [0, 0.5]}, {"size": 1, "mean": (0.0, 0.5)}),
        ((1,), {"mean": 3, "exact": True}, {"size": 1, "mean": 3.0, "exact": True}),
        ((1, 0.5, None, None), {}, {"size": 1, "factor": 0.5, "mean": None, "name": None}),
        ((), {"size": 1, "names": "a"}, {"size": 1, "names": ("a",)}),
        ((), {"size": 1, "names": ["a", "b"]}, {"size": 1, "names": ("a", "b")}),
    ],
)
def test_what_fits(args: tuple[Any, ...], kwargs: dict[str, Any], bound: dict[str, Any]) -> None:
    found = bind(Sample, args, kwargs)
    assert found == bound
    assert [type(v) for v in found.values()] == [type(v) for v in bound.values()]


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((1.5,), {}, "size takes a whole number or a word, not 1.5"),
        (([224, 224],), {}, "size takes a whole number or a word, not [224, 224]"),
        ((True,), {}, "size takes a whole number or a word, not true"),
        ((None,), {}, "size takes a whole number or a word, not none"),
        ((1, "high"), {}, "factor takes a number, not 'high'"),
        ((1, 10**400), {}, "factor takes a number, not 1000"),
        ((1,), {"mean": ["a"]}, "mean takes a number or numbers in brackets, not ['a']"),
        ((1,), {"mean": [[1]]}, "mean takes a number or numbers in brackets, not [[1]]"),
        ((1,), {"name": 3}, "name takes a word, not 3"),
        ((1,), {"exact": 1}, "exact takes true or false, not 1"),
        ((1,), {"names": [1]}, "names takes a word or words in brackets, not [1]"),
        ((1, 2, 3, "n", True, [], 7), {}, "it takes 6 values at most (size, factor, mean, name, exact, names), not 7"),
        ((1,), {"size": 2}, "the parameter 'size' is given twice"),
        ((), {}, "it needs size"),
        ((1,), {"facto": 2}, "there is no parameter 'facto'; did you mean factor?"),
        ((1,), {3: 2}, "there is no parameter 3; it has size"),
    ],
)
def test_what_does_not_fit_is_said_without_the_names_of_types(
    args: tuple[Any, ...], kwargs: dict[Any, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        bind(Sample, args, kwargs)
    assert says in str(caught.value)
    for name in ("int", "str", "float", "None", "null", "array", "Expected"):
        assert name not in str(caught.value).split("it has")[0].replace("it takes 6", "")


def test_names_alone() -> None:
    check_names(Sample, {"size": object()})
    with pytest.raises(UsageError, match="did you mean exact"):
        check_names(Sample, {"exat": 1})


def test_a_value_is_shown_short_however_large() -> None:
    bomb: Any = "ha"
    for _ in range(60):
        bomb = [bomb] * 9
    assert len(shown(bomb)) < 500
    assert len(shown("x" * 10_000)) < 100
