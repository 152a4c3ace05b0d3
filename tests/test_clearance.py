"""Whether outputs may go where they are to go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tconv.clearance import check
from tconv.errors import TconvError
from tconv.inputs import Input
from tconv.targets import choose
from tests.test_targets import source


def problems(paths: list[tuple[Path, list[Input]]]) -> str:
    with pytest.raises(TconvError) as caught:
        check(paths)
    return str(caught.value)


def test_two_inputs_for_one_file_are_named() -> None:
    a, b = source("in/a.png", "png", "in"), source("in/a.jpg", "jpeg", "in")
    chosen = choose([a, b], "out/", "npy", "")
    assert "in/a.png and in/a.jpg would both become it" in problems([(t.path, list(t.inputs)) for t in chosen])


def test_what_exists_is_in_the_way(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    target.touch()
    one = source(str(target), "npy")
    (other,) = check([(target, [source("b.npy", "npy")])])
    assert "exists already; --force" in str(other)
    (itself,) = check([(target, [one])])
    assert "is an input too" in str(itself)
    assert check([(tmp_path / "new.npy", [one])]) == []


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "neither a file nor a folder" in problems([(Path("/dev/null"), [])])
    assert "is a folder" in problems([(tmp_path, [])])
    (tmp_path / "f").touch()
    assert f"{tmp_path / 'f'} is not a folder" in problems([(tmp_path / "f" / "x.npy", [])])


def test_a_link_to_itself_is_no_target(tmp_path: Path) -> None:
    loop = tmp_path / "loop.npy"
    loop.symlink_to(loop)
    (target,) = choose([source("a.npy", "npy")], str(loop), None, "")
    assert "is a link that leads back to itself" in problems([(target.path, [])])
