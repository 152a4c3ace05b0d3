"""What the casts of one tensor lost, kept apart by the cast that lost it, and how it kept to its stated range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tconv.dtypes import DType
from tconv.lost import Lost


class CastKey(NamedTuple):
    """One rounding of a chain: the step that asked for it, from which dtype to which, under which policy; ``nth``
    tells it from those before it that are equal in all that.
    """

    step: str
    src: DType
    dst: DType
    on_overflow: str
    nth: int = 0


class RangeKey(NamedTuple):
    """One statement of the user, or of a step: that the values, of that dtype, lie in the range. ``by_file``: the step
    has it from the file.
    """

    dtype: DType
    range: tuple[float, float]
    step: str = ""
    by_file: bool = False

    @property
    def called(self) -> str:
        """How messages call the range: by whose word it is."""
        return "the range known from the file" if self.by_file else "the range" if self.step else "the stated range"


@dataclass
class Account:
    """Losses by cast, and values outside by statement; adds up over the pieces of a tensor."""

    by_cast: dict[CastKey, Lost] = field(default_factory=dict)
    by_range: dict[RangeKey, Lost] = field(default_factory=dict)

    def add(self, key: CastKey | RangeKey, lost: Lost) -> None:
        known: dict[Any, Lost] = self.by_cast if isinstance(key, CastKey) else self.by_range
        if (same := known.get(key)) is None:
            same = known[key] = Lost()
        same.merge(lost)

    def __iadd__(self, other: Account) -> Account:
        for key, lost in other.by_cast.items():
            self.add(key, lost)
        for stated, lost in other.by_range.items():
            self.add(stated, lost)
        return self

    def __bool__(self) -> bool:
        """Whether anything was lost at all, or lay outside."""
        return any(self.by_cast.values()) or any(self.by_range.values())

    def refused(self) -> Iterator[tuple[CastKey, Lost]]:
        """The casts whose policy does not put up with what they lost."""
        return ((key, lost) for key, lost in self.by_cast.items() if lost.bad(key.on_overflow))
