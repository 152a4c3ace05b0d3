"""Notes that say the same of many places, told in one line; what each says of its own is left to a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ALIKE = 3  # so many of one kind are told one by one
NAMED = 3  # places beside the first that are named where there are more

_VALUE = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?")
_DETAIL = re.compile(r" \([^()]*\)")


def kind(text: str) -> str:
    """What a note says, but for where (that is before the last colon), how much, and what is in brackets."""
    return _VALUE.sub("#", _DETAIL.sub("", text.rpartition(": ")[2]))


def folded(texts: Iterable[str]) -> list[str]:
    """The notes in their order, but of more than three of one kind only the first, with the places of some others."""
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(kind(text), []).append(text)
    return [line for group in groups.values() for line in (group if len(group) <= ALIKE else [_together(group)])]


def _together(alike: Sequence[str]) -> str:
    places = [text.split(": ")[:-1] for text in alike]
    while all(place and place[-1:] == places[0][-1:] for place in places):  # the step, which the first one has named
        places = [place[:-1] for place in places]
    named = list(filter(None, (": ".join(place) for place in places[1 : 1 + NAMED])))
    rest = len(alike) - 1 - len(named)
    more = f" and {rest} more" if rest else ""
    return f"{alike[0]}; likewise {', '.join(named)}{more}" if named else f"{alike[0]};{more}"
