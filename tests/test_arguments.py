"""Arguments of the wrong type: each is told in a sentence, as what it is and with what is taken instead."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tconv.arguments import WrongType, path, position, shown, words

PHOTOS = Path(__file__).resolve().parents[1] / "examples" / "photos"


class Bytes(os.PathLike[Any]):
    def __fspath__(self) -> Any:
        return b"photos"


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


def several() -> Iterator[str]:
    yield from ("a", "b")


@pytest.mark.parametrize(
    ("given", "texts"),
    [("a", ("a",)), (Path("a/b"), ("a/b",)), (["a", Path("b")], ("a", "b")), (several(), ("a", "b")), ({"a"}, ("a",))],
)
def test_a_path_or_several(given: Any, texts: tuple[str, ...]) -> None:
    assert words(given) == texts


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "None names no file; give a path as text or a pathlib.Path, or several of them"),
        (3, "3 names no file"),
        (b"photos", r"b'photos' names no file; decode it: os\.fsdecode"),
        (bytearray(b"x"), "names no file; decode it"),
        ([b"photos"], "b'photos' names no file; decode it"),
        ([["a"]], r"\['a'\] names no file"),
        (["a", None], "None names no file"),
        (Bytes(), "an input is .*; give a path as text"),
        (np.zeros(2), r"array\(\[0\., 0\.\]\) names no file; tconv\.Pipeline\(steps\)\(x\) takes what is in memory"),
        ({"w": 1}, "names no file; tconv.Pipeline"),
        (Odd(), "a Odd names no file"),
    ],
)
def test_what_names_no_file(given: Any, said: str) -> None:
    with pytest.raises(WrongType, match=said) as caught:
        words(given)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, tconv.UsageError)


@pytest.mark.parametrize("given", ["", [""], ["a", ""], Path() / ""])
def test_an_empty_text_is_not_the_current_folder(given: Any) -> None:
    if isinstance(given, Path):
        assert words(given) == (".",)  # whoever writes Path() says so
        return
    with pytest.raises(tconv.UsageError, match=r"an input is an empty text; give a path; '\.' is the current folder"):
        words(given)


def test_nothing_is_no_input() -> None:
    with pytest.raises(tconv.UsageError, match="there is no input"):
        words([])


def test_one_path() -> None:
    assert path(Path("x.npz"), "dst") == path("x.npz", "dst") == "x.npz"
    for given, said in (
        (3, "dst is 3"),
        (b"x", "dst is b'x'"),
        ("", "dst is an empty text"),
        (["x"], r"dst is \['x'\]"),
    ):
        with pytest.raises(tconv.UsageError, match=said):
            path(given, "dst")


def test_which_one() -> None:
    assert position(np.int64(-3)) == -3
    for given in (1.0, "x", None, [0]):
        with pytest.raises(WrongType, match="is no number of a sample; give a whole number, or a slice"):
            position(given)


def test_long_values_are_called_by_their_type() -> None:
    assert shown("a" * 500) == "a str"
    assert shown(Odd()) == "a Odd"


api: Any = tconv  # what is given here is wrong, which a type checker would say

CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: api.open(PHOTOS, range=3), r"range is 3; give \(low, high\)"),
    (lambda: api.convert(PHOTOS, 3), "dst is 3; give a path"),
    (lambda: api.convert(PHOTOS, ""), "dst is an empty text"),
    (lambda: api.convert(PHOTOS, "x.npz", progress=3), "progress is 3; give an object with methods begin"),
    (lambda: api.convert(PHOTOS, "x.npz", b"scale"), "b'scale' are no steps; write them as text"),
    (lambda: api.Pipeline.from_yaml(3), "a pipeline is 3"),
    (lambda: api.Pipeline.from_yaml("imagenet", "size=3"), "variables are 'size=3'; give a dict"),
    (lambda: api.Pipeline("scale")(np.zeros(2), axes=3), "axes is 3; for example"),
    (lambda: api.Pipeline("scale")(np.zeros(2), range=3), "range is 3; give"),
    (lambda: api.cast(np.zeros(2), None), "None is no dtype"),
    (lambda: api.inspect(""), "an input is an empty text"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "said"), CALLS)
def test_calls_with_what_they_do_not_take(
    call: Callable[[], Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tconv.UsageError, match=said):
        call()
    assert list(tmp_path.iterdir()) == []


def test_frameworks_are_called_by_their_names() -> None:
    for name in (None, 1, ["torch"]):
        with pytest.raises(tconv.UsageError, match="there is no framework"):
            api.open(PHOTOS).pipe("resize(8x8) | scale").batches(2, name)
