"""Small text files that a command names (a pipeline, statistics): never waited for, never read without end."""

from __future__ import annotations

from pathlib import Path

from tconv.errors import UsageError

MAX_BYTES = 1 << 20


def read_small(path: Path, what: str, most: int = MAX_BYTES) -> bytes:
    """All of a regular file. Raises ``UsageError`` for anything else, and for more than ``most`` bytes: no ``what``."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"is no file, so no {what}")
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as problem:
        raise UsageError(f"cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
    if len(raw) > most:
        raise UsageError(f"is larger than {most:,} bytes, so it is no {what}")
    return raw
