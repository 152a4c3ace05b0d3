"""Commands that take their values as they were typed."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer

from tconv.cli.verb import Verb
from tconv.errors import UsageError


def twice(ctx: Any, param: Any, value: Any) -> Any:
    return None if value is None else value * 2


def command(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Some names.", rich_help_panel="Input")],
    text: Annotated[str, typer.Option("--text", help="As it is.")] = "usual",
    times: Annotated[int | None, typer.Option("-n", "--times", metavar="N", help="Doubled.", callback=twice)] = None,
    count: Annotated[int, typer.Option("--count", help="Typer's.", rich_help_panel="More")] = 1,
    on: Annotated[bool, typer.Option("--on", help="A flag.", rich_help_panel="More")] = False,
    secret: Annotated[str | None, typer.Option("--secret", hidden=True)] = None,
) -> Any:
    """Do something."""
    return names, text, times, count, on, secret


def run(*argv: str) -> Any:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(cls=Verb)(command)
    return typer.main.get_command(app).main(args=list(argv), prog_name="do", standalone_mode=False)


def test_text_stays_text_callbacks_see_it_and_other_types_are_typers() -> None:
    assert run("a") == (["a"], "usual", None, 1, False, None)
    assert run("a", "b", "--text", "7", "--on", "--secret", "s") == (["a", "b"], "7", None, 1, True, "s")
    assert run("a", "-n", "12", "--count", "3") == (["a"], "usual", "1212", 3, False, None)


def test_what_is_missing_is_called_by_its_name() -> None:
    with pytest.raises(UsageError, match=r"^NAME is missing; see do --help$"):
        run("--on")


def test_the_help_is_in_groups_without_types(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    assert capsys.readouterr().out.splitlines() == [
        "Usage: do NAME... [OPTIONS]",
        "",
        "  Do something.",
        "",
        "Input:",
        "  NAME...  Some names.",
        "",
        "Options:",
        "  --text TEXT    As it is.",
        "  -n, --times N  Doubled.",
        "  --help         Show this message and exit.",
        "",
        "More:",
        "  --count COUNT  Typer's.",
        "  --on           A flag.",
    ]


def test_an_option_of_one_value_is_not_given_twice() -> None:
    for argv in (("-n", "1", "--times", "1"), ("--text=a", "--text", "b"), ("-n1", "-n2")):
        with pytest.raises(UsageError, match=r"^--(times|text) is given twice; it takes one value") as refused:
            run("a", *argv)
        assert refused.value.exit_code == 2
    with pytest.raises(UsageError, match=r"^--count is given 3 times"):
        run("a", "--count", "1", "--count", "2", "--count", "3")
    assert run("a", "a", "--on", "--on", "--text", "--text") == (["a", "a"], "--text", None, 1, True, None)
