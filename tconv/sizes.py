"""Bytes in words that people read."""

from __future__ import annotations


def human(count: float) -> str:
    """Bytes for people: ``1.5 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
