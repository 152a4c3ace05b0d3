"""What the remedies for words of other tools point at is there."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer

from tconv import vocabulary
from tconv.cli.app import with_verbs
from tconv.errors import UsageError
from tconv.pipeline import steps_from_text
from tconv.registry import STEPS


def options() -> set[str]:
    """The options of convert."""
    command: Any = typer.main.get_command(with_verbs(["convert"]))
    return {name for param in command.commands["convert"].params for name in param.opts}


def test_every_option_that_is_named_exists() -> None:
    assert {"--to", "--half", "-o"} <= options()
    named = {text.split()[0] for text in vocabulary.OPTIONS.values()}
    assert named <= options()
    assert not set(vocabulary.OPTIONS) & options()


@pytest.mark.parametrize("word", vocabulary.STEPS)
def test_every_step_that_is_named_exists(word: str) -> None:
    hint = vocabulary.STEPS[word]
    assert set(re.findall(r"([a-z]+)\(", hint)) <= set(STEPS)
    assert set(re.findall(r"--[a-z]+", hint)) <= options()
    with pytest.raises(UsageError) as caught:
        steps_from_text([f"{word}(1)"])
    assert hint in str(caught.value)


@pytest.mark.parametrize("text", ["ToTensor", "to_tensor", "toTensor()"])
def test_steps_are_known_in_every_spelling(text: str) -> None:
    with pytest.raises(UsageError, match=r"scale \| permute\(CHW\)"):
        steps_from_text([text])
