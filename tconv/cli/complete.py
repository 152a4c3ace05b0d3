"""What the shell offers for the values of options; nothing is looked up before it asks."""

from __future__ import annotations

from collections.abc import Callable


def words(*known: str) -> Callable[[], list[str]]:
    """A completion by one of ``known``."""

    def offered() -> list[str]:
        return list(known)

    return offered


def dtypes() -> list[str]:
    from tconv.dtypes import DTYPES

    return [d.name for d in DTYPES.values()]


def stats() -> list[str]:
    from tconv.steps.normalize import NAMED

    return list(NAMED)


def steps() -> list[str]:
    from tconv.registry import every_step

    return sorted(every_step()[0])


def pipelines() -> list[str]:
    from tconv.recipes import recipe_files

    return [path.stem for path in recipe_files()]


def formats() -> list[str]:
    from tconv.registry import every_writable

    return [row.name for row in every_writable()]
