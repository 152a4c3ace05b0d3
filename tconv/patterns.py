"""Globs on names, in which ``*`` crosses dots and slashes: which names are wanted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache


@lru_cache(maxsize=1 << 10)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of ``patterns`` is for that name, the whole of it."""
    return any(_compiled(pattern).match(name) for pattern in patterns)


@dataclass(frozen=True)
class Patterns:
    """What ``--only`` and ``--skip`` say: names that match one of ``only``, if there are any, and none of ``skip``."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.only or self.skip)

    def wants(self, name: str) -> bool:
        return (not self.only or matches(name, self.only)) and not self.skips(name)

    def skips(self, name: str) -> bool:
        return matches(name, self.skip)

    def __str__(self) -> str:
        """The options that were given."""
        given = (("--only", self.only), ("--skip", self.skip))
        return " and ".join(option for option, patterns in given if patterns)
