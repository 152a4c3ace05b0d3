"""Errors in words: place, reason, remedy; nothing that a file says reaches the terminal raw."""

from __future__ import annotations

import pickle

import pytest

from tconv.api.opened import NoSuchTensor
from tconv.errors import Problems, TconvError, TconvErrors, UsageError, printable, raise_all
from tconv.parameters import WrongParameter


def test_an_error_reads_place_reason_remedy() -> None:
    error = TconvError("3 values overflow", file="a.pt", tensor="w", step="cast(float16)", remedy="clamp them")
    assert str(error) == "a.pt: w: cast(float16): 3 values overflow; clamp them"


def test_places_are_filled_in_later_but_never_overwritten() -> None:
    error = TconvError("broken", file="inner.pt").at(file="outer.pt", tensor="w")
    assert str(error) == "inner.pt: w: broken"


def test_the_tensor_of_an_image_is_not_said_twice() -> None:
    assert str(TconvError("truncated", file="images/cats/a.png", tensor="cats/a.png")) == "images/cats/a.png: truncated"
    assert str(TconvError("truncated", file="x.npy", tensor="y")) == "x.npy: y: truncated"


def test_control_characters_of_a_file_are_escaped() -> None:
    assert str(TconvError("bad", tensor="w\x1b[31m\r\n")) == "w\\x1b[31m\\r\\n: bad"
    assert printable("\ud800") == "\\ud800"


def test_several_problems_are_listed_and_the_rest_counted() -> None:
    with pytest.raises(TconvErrors) as caught:
        raise_all([TconvError(f"p{n}") for n in range(23)], remedy="do this")
    lines = str(caught.value).splitlines()
    assert lines == [*(f"p{n}" for n in range(20)), "… and 3 more", "do this"]


def test_problems_that_differ_in_their_place_only_are_folded() -> None:
    problems = [TconvError("truncated", file=f"{n}.png", remedy="fetch it again") for n in range(28)]
    with pytest.raises(TconvErrors) as caught:
        raise_all([*problems, TconvError("broken", file="x.png")])
    lines = str(caught.value).splitlines()
    assert lines[:3] == [f"{n}.png: truncated; fetch it again" for n in range(3)]
    assert lines[3] == f"… and likewise {', '.join(f'{n}.png' for n in range(3, 23))} and 5 more"
    assert lines[4:] == ["x.png: broken"]


def test_no_problem_raises_nothing_and_one_raises_itself() -> None:
    raise_all([])
    one = UsageError("x")
    with pytest.raises(UsageError) as caught:
        raise_all([one])
    assert caught.value is one


def test_a_usage_error_among_several_decides_the_exit_code() -> None:
    assert TconvErrors([TconvError("a"), UsageError("b")]).exit_code == 2
    assert TconvErrors([TconvError("a")]).exit_code == 1


def test_problems_of_several_places_are_one_list_with_each_remedy_once() -> None:
    found = Problems()
    found.raise_all()
    found.add(TconvError("one", file="a"))
    found.add(TconvErrors([TconvError("two", file="b"), UsageError("three", file="b")], remedy="mend it"))
    found.add(TconvErrors([TconvError("four", file="c")], remedy="mend it"))
    with pytest.raises(TconvErrors) as caught:
        found.raise_all()
    assert str(caught.value) == "a: one\nb: two\nb: three\nc: four\nmend it"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "error",
    [
        TconvError("a", file="x", tensor="w", step="cast", remedy="b"),
        NoSuchTensor("there is no tensor 'x'", remedy="did you mean y?"),
        WrongParameter("size", "size takes a number"),
        TconvErrors([TconvError("a", file="x"), UsageError("b")], remedy="c"),
    ],
)
def test_errors_go_from_one_process_to_another(error: TconvError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.exit_code == error.exit_code
