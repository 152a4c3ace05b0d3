"""What a job says of the values that did not fit: what is refused, what was lost, where memory was short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tconv.errors import TconvError
from tconv.outcome import Outcome, Place
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.account import Account, RangeKey
    from tconv.lost import Lost
    from tconv.planner import Plan


def refusals(planned: Plan, accounted: Mapping[Place, Account]) -> list[TconvError]:
    """What did not fit, every tensor by its name, the one with the most values first."""
    found: list[tuple[int, Place, TconvError]] = []
    for place, account in accounted.items():
        file, name = _where(planned, place)
        for key, lost in account.refused():
            reason = lost.describe(key.src, key.dst)
            count = lost.overflow + lost.infinite + lost.nan
            remedy = lost.remedy(key.dst, of_cast=key.step.startswith("cast"))
            found.append((count, place, TconvError(reason, file=file, tensor=name, step=key.step, remedy=remedy)))
    found.sort(key=lambda one: (-one[0], _position(one[1])))
    return [problem for *_, problem in found]


def losses(planned: Plan, accounted: Mapping[Place, Account]) -> Iterator[str]:
    """One line for each tensor that lost something and was allowed to, and for each that broke its stated range."""
    for place, account in sorted(accounted.items(), key=lambda item: _position(item[0])):
        file, name = _where(planned, place)
        for key, lost in account.by_cast.items():
            if lost:
                yield str(TconvError(lost.describe(key.src, key.dst), file=file, tensor=name, step=key.step))
        for stated, lost in account.by_range.items():
            if lost:
                yield str(_broken(stated, lost).at(file=file, tensor=name))


def _position(place: Place) -> tuple[int, int, int]:
    """In the order of the outputs, whichever thread was done first."""
    return place.output, place.tensor, place.part or 0


def _broken(stated: RangeKey, lost: Lost) -> TconvError:
    remedy = "say the true range with --range LO,HI"
    if stated.by_file:
        remedy = f"they are clamped; {remedy}"
    elif stated.step:
        remedy = "as pixels they become the nearest in it"
    return TconvError(lost.outside(stated.range, stated.dtype, stated.called), step=stated.step, remedy=remedy)


def beyond(planned: Plan, outcome: Outcome) -> Iterator[str]:
    """That more memory was taken than the user said."""
    if outcome.beyond is not None:
        place, cost = outcome.beyond
        file, name = _where(planned, place)
        reason = f"took {cost:,} bytes at once, more than --max-memory {planned.request.max_memory:,}"
        yield str(TconvError(reason, file=file, tensor=name))


def _where(planned: Plan, place: Place) -> tuple[Path, str]:
    tensor = planned.files[place.output].stream.tensors[place.tensor]
    if isinstance(tensor.source, Parts) and place.part is not None:
        tensor = tensor.source.parts[place.part]
    return tensor.source.path, tensor.spec.name
