"""``tconv pipelines``: a line for each that comes with tconv, and the file of one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tconv.recipes import recipe, recipe_files
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


def test_there_is_one_line_for_each_and_it_fits(tconv: Tconv) -> None:
    ran = tconv("pipelines")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in lines] == [path.stem for path in recipe_files()]
    assert max(map(len, lines)) <= 105
    assert any(re.match("imagenet +ImageNet classifiers in training form: 224x224", line) for line in lines)


def test_the_file_of_one_is_a_beginning(tconv: Tconv) -> None:
    Path("mine.yaml").write_text(tconv("pipelines", "clip").out)
    assert recipe("mine.yaml").steps == recipe("clip").steps
    assert tconv("pipelines", "mine.yaml").out == Path("mine.yaml").read_text()


def test_what_there_is_not(tconv: Tconv) -> None:
    assert tconv("pipelines", "imgnet") == Ran(2, "", "tconv: there is no pipeline 'imgnet'; did you mean imagenet?\n")
    assert tconv("pipelines", "gone.yaml").code == 2
