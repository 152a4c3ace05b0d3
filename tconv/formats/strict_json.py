"""JSON as the formats need it: one object, in which no key is there twice and no number is NaN or infinite."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tconv.errors import TconvError


def parse(data: bytes, what: str) -> dict[str, Any]:
    """The object that ``data`` holds; ``TconvError`` that begins with ``what`` ("a broken header") if it holds none."""

    def broken(how: str) -> TconvError:
        return TconvError(f"{what}: {how}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise broken(f"{name!r} is there twice")
        return found

    def no_number(text: str) -> None:
        raise broken(f"{text} is no JSON")

    try:
        found = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=no_number)
    except UnicodeDecodeError as problem:
        raise broken("it is not UTF-8") from problem
    except json.JSONDecodeError as problem:
        raise broken(f"not JSON at character {problem.pos} ({problem.msg})") from problem
    except (ValueError, RecursionError) as problem:
        raise broken("a number too long, or nesting too deep") from problem
    if not isinstance(found, dict):
        raise broken("not a JSON object")
    return found
