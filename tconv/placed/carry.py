"""Tensors that meet a section on their way: gathered into batches of equals, sent, computed, and brought back.

What makes a tensor is a generator that yields a ``Crossing`` where values are to cross, and is sent what came of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tconv.account import Account
from tconv.errors import TconvError
from tconv.placed.batching import Batching

if TYPE_CHECKING:
    from tconv.devices.lane import Load
    from tconv.ops import Array
    from tconv.placed.section import Section

    Making: TypeAlias = "Generator[Crossing, tuple[Array, Account], Account]"


@dataclass(frozen=True)
class Crossing:
    """Elements [first, first + x.size) of an array of ``shape`` that are to go through a section; all of it where that
    reorders axes. ``x`` is flat, and read before the generator is asked for more.
    """

    section: Section
    x: Array
    shape: tuple[int, ...]
    first: int = 0

    def key(self) -> tuple[Any, ...]:
        """Those that have it in common go in one batch."""
        alike = all(run.perm is None and run.axis is None for run in self.section.runs)
        return (self.section, self.x.size) if alike else (self.section, self.x.size, self.shape, self.first)


def alone(making: Making) -> Account:
    """One tensor by itself. Raises what its making raises."""
    (made,) = together([making], Batching(1))
    if isinstance(made, Exception):
        raise made
    return made


def together(makings: Sequence[Making], batching: Batching) -> list[Account | Exception]:
    """Of each what it lost, or what kept it from being made."""
    with _Party() as party:
        for number, making in enumerate(makings):
            try:
                crossing = next(making)
            except StopIteration as done:
                party.results[number] = done.value
            except Exception as problem:
                party.results[number] = problem
            else:
                party.join(number, making, crossing)
        party.cross(batching)
    return [party.results[number] for number in range(len(makings))]


class _Party:
    """Those who want to cross, in groups of equals, their values where the device fetches them; and what came of it."""

    def __init__(self) -> None:
        self.results: dict[int, Account | Exception] = {}
        self._groups: dict[tuple[Any, ...], list[_Waiting]] = {}
        self._loads: dict[str, Load] = {}

    def __enter__(self) -> _Party:
        return self

    def __exit__(self, *_: object) -> None:
        for load in self._loads.values():
            load.close()

    def join(self, number: int, making: Making, crossing: Crossing) -> None:
        """One more, who waits for the others, or does without the device if there is nothing or no way to do it."""
        section, x = crossing.section, crossing.x
        if not x.size or not section.holds(crossing.shape):
            self.results[number] = _finished(making, *section.on_cpu(x, crossing.shape, crossing.first))
            return
        with _refusing(section.device):
            load = self._load(section.device)
            slot = load.slot(x.size, section.source)
        np.copyto(slot.numpy().view(x.dtype), x)
        self._groups.setdefault(crossing.key(), []).append(_Waiting(number, making, crossing, load, slot))

    def _load(self, device: str) -> Load:
        from tconv.devices.lane import lane

        if device not in self._loads:
            self._loads[device] = lane(device).load()
        return self._loads[device]

    def cross(self, batching: Batching) -> None:
        """All of them."""
        for group in self._groups.values():
            for one, made, account in _through(group, batching):
                done = made if isinstance(made, Exception) else _finished(one.making, made, account)
                self.results[one.number] = done


@dataclass(frozen=True)
class _Waiting:
    """``slot``: where in ``load`` its values lie, to be sent."""

    number: int
    making: Making
    crossing: Crossing
    load: Load
    slot: Any


def _finished(making: Making, values: Array, account: Account) -> Account | Exception:
    """What comes after the crossing, and of all of it."""
    try:
        making.send((values, account))
    except StopIteration as done:
        found: Account = done.value
        return found
    except Exception as problem:
        return problem
    raise AssertionError("a chain crosses once")


def _through(group: Sequence[_Waiting], batching: Batching) -> Iterator[tuple[_Waiting, Array | Exception, Account]]:
    """Each with what came of it, in batches as large as they may be."""
    rest = list(group)
    while rest:
        batch, rest = rest[: batching.most], rest[batching.most :]
        first = batch[0]
        made = _worked(batch)
        if made is not None:
            for one, (values, account) in zip(batch, made, strict=True):
                yield one, values, account
        elif len(batch) == 1:
            yield first, _too_large(first.crossing), Account()
        else:
            batching.halve(len(batch), first.crossing.section.device)
            rest = batch + rest


def _worked(batch: Sequence[_Waiting]) -> list[tuple[Array, Account]] | None:
    """What becomes of a batch, or None if the device has not the memory for it."""
    from tconv.placed.work import worked

    first = batch[0]
    with _refusing(first.crossing.section.device):
        try:
            return worked(first.crossing, first.load, [one.slot for one in batch])
        except RuntimeError as problem:  # not all devices have a kind of error of their own for it
            if "out of memory" not in str(problem):
                raise
    return None


@contextmanager
def _refusing(device: str) -> Iterator[None]:
    """What torch says of a device that does not do as it should is an error of the whole job."""
    try:
        yield
    except RuntimeError as problem:
        reason = str(problem).partition("\n")[0]
        raise TconvError(f"{device}: {reason}", remedy="--device cpu does without") from problem


def _too_large(crossing: Crossing) -> TconvError:
    section, count = crossing.section, crossing.x.size
    size = section.source.nbytes(count) + section.dtype.nbytes(count)
    return TconvError(
        f"{section.device} has not the memory for it: what goes in and comes out alone takes {size:,} bytes",
        remedy="--device cpu does without",
    )
