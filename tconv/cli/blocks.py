"""Lists for reading: a heading and indented paragraphs for each entry, wrapped to the width of the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

WIDEST = 100
PIPED = 88  # columns where there is no terminal to ask
INDENT = "    "


def write(entries: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Each entry a heading and its paragraphs, on stdout, a blank line between entries."""
    width = max(40, min(shutil.get_terminal_size((PIPED, 24)).columns, WIDEST))
    sys.stdout.write("\n\n".join("\n".join(_lines(*entry, width)) for entry in entries) + "\n")


def _lines(heading: str, paragraphs: Sequence[str], width: int) -> list[str]:
    lines = textwrap.wrap(heading, width, subsequent_indent=INDENT)
    for text in paragraphs:
        lines += textwrap.wrap(
            text, width, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False, break_long_words=False
        )
    return lines
