"""What the casts of one tensor lost, kept apart by the cast that lost it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tconv.dtypes import DType
from tconv.lost import Lost


class CastKey(NamedTuple):
    """One rounding of a chain: the step that asked for it, from which dtype to which, under which policy."""

    step: str
    src: DType
    dst: DType
    on_overflow: str


@dataclass
class Account:
    """Losses by cast; adds up over the pieces of a tensor."""

    by_cast: dict[CastKey, Lost] = field(default_factory=dict)

    def add(self, key: CastKey, lost: Lost) -> None:
        if key in self.by_cast:
            self.by_cast[key] += lost
        else:
            self.by_cast[key] = lost

    def __iadd__(self, other: Account) -> Account:
        for key, lost in other.by_cast.items():
            self.add(key, lost)
        return self

    def __bool__(self) -> bool:
        """Whether anything was lost at all."""
        return any(self.by_cast.values())

    def refused(self) -> Iterator[tuple[CastKey, Lost]]:
        """The casts whose policy does not put up with what they lost."""
        return ((key, lost) for key, lost in self.by_cast.items() if lost.bad(key.on_overflow))
