"""``tconv steps``: all of them, or one."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


def test_one_step_is_its_part_of_the_list(tconv: Tconv) -> None:
    every, one = tconv("steps"), tconv("steps", "resize")
    assert (one.code, one.err) == (0, "")
    assert one.out.startswith("resize(size")
    assert one.out.strip() in every.out
    assert "crop(" not in one.out.splitlines()[0]


def test_a_mistyped_step_is_pointed_at(tconv: Tconv) -> None:
    ran = tconv("steps", "resise")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no step 'resise'; did you mean resize?" in ran.err
