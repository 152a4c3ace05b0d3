"""Options in files: of the types that they have elsewhere, beaten by what was typed."""

from __future__ import annotations

import msgspec
import pytest

from tconv.errors import UsageError
from tconv.request import Request
from tconv.settings import INPUT, OUTPUT, applied, model, said, settings
from tconv.writer import ReadOptions

Input = model("Input", INPUT)
Output = model("Output", OUTPUT)


def test_what_a_file_says_is_meant_as_on_the_command_line() -> None:
    read = msgspec.convert({"range": "0,255", "only": "*.w", "skip": ["a", "b"], "layout": "hwc", "exif": False}, Input)
    write = msgspec.convert({"shard-size": "5GB", "stack": True}, Output)
    assert settings(read, write) == {
        "range": (0, 255),
        "only": ("*.w",),
        "skip": ("a", "b"),
        "input_layout": "HWC",
        "exif": False,
        "shard_size": 5_000_000_000,
        "stack": True,
    }
    assert settings(msgspec.convert({"range": [0, 1.5]}, Input)) == {"range": (0, 1.5)}


def test_what_was_typed_beats_the_file() -> None:
    typed = Request((), read=ReadOptions(channels="rgb", alpha="black"), only=("x",))
    found = applied(typed, {"channels": "bgr", "alpha": "drop", "only": ("y",), "stack": True}, {"channels", "only"})
    assert found.read == ReadOptions(channels="rgb", alpha="drop")
    assert found.only == ("x",)
    assert found.sugar.stack


def test_what_nobody_said_needs_no_saying() -> None:
    assert said(Request(()), [*INPUT, *OUTPUT]) == {}


@pytest.mark.parametrize("option", [*INPUT, *OUTPUT])
def test_every_option_is_one_of_the_command_line(option: str) -> None:
    import typer

    from tconv.cli.app import with_verbs

    group = typer.main.get_command(with_verbs(["convert"]))
    verb = group.commands["convert"]  # type: ignore[attr-defined]  # it is a group
    known = {name for param in verb.params for name in param.opts}
    assert {"layout": "--input-layout", "exif": "--no-exif"}.get(option, f"--{option}") in known


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": "grb"}, {"channels": 3}, {"max-pixels": 0}, {"max_pixels": 3}, {"range": [0]},
        {"range": [0, 1, 2]}, {"exif": "no"}, {"only": [3]}, {"stack": True}, {"frames": None},
    ],
)  # fmt: skip
def test_what_an_option_does_not_take(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Input)


def test_what_only_its_meaning_shows_to_be_wrong() -> None:
    for option, value, says in (("range", "1,0", "LO must be less"), ("layout", "HH", "no list of axes")):
        with pytest.raises(UsageError, match=says):
            settings(msgspec.convert({option: value}, Input))
