"""Did you mean …: the nearest of the words that there are."""

from __future__ import annotations

from collections.abc import Iterable

_AS_GOOD = 0.1  # how much less alike than the best another word may be to be named beside it


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Those of ``known`` that ``word`` may be a slip of the fingers for, the likeliest first."""
    import difflib  # only a mistyped word pays for the import

    def likeness(other: str) -> float:
        return difflib.SequenceMatcher(None, other.lower(), word.lower()).ratio()

    found = sorted(((likeness(other), other) for other in dict.fromkeys(known)), key=lambda pair: -pair[0])
    best = found[0][0] if found else 0
    return [other for ratio, other in found[:most] if ratio >= max(0.6, best - _AS_GOOD)]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """``did you mean cast?``, or ``otherwise`` where nothing is near."""
    near = nearest(word, known)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def listed(words: Iterable[str]) -> str:
    """``error, saturate or inf``."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
