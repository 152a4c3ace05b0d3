"""Tensors that meet a section on their way: gathered into batches of equals, sent, computed, and brought back.

What makes a tensor is a generator that yields a ``Crossing`` where values are to cross, and is sent what came of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tconv.account import Account
from tconv.errors import TconvError

if TYPE_CHECKING:
    from tconv.devices.lane import Load
    from tconv.ops import Array
    from tconv.placed.section import Section

    Making: TypeAlias = "Generator[Crossing, tuple[Array, Account], Account]"

BATCH = 64  # tensors that go at once, unless the user says otherwise


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


def release() -> None:
    """Give up the memory that this thread has for what is on its way, of which there is nothing."""
    if (module := sys.modules.get("tconv.devices.lane")) is not None:
        module.release()


class Batching:
    """How many tensors go at once, in all threads of a job: fewer once the memory of a device did not hold them."""

    def __init__(self, most: int = BATCH) -> None:
        self.most = most
        self.notes: list[str] = []
        self._lock = threading.Lock()

    def halve(self, count: int, device: str) -> None:
        """``count`` were too many."""
        with self._lock:
            if count // 2 < self.most:
                self.most = max(1, count // 2)
                text = f"{device} ran out of memory with {count} tensors at once, and went on with {self.most}"
                self.notes.append(f"{text}; --device-batch {self.most} starts with that")


def alone(making: Making) -> Account:
    """One tensor by itself. Raises what its making raises."""
    (made,) = together([making], Batching(1))
    if isinstance(made, BaseException):
        raise made
    return made


def together(makings: Sequence[Making], batching: Batching) -> list[Account | Exception]:
    """Of each what it lost, or what kept it from being made."""
    results: dict[int, Account | Exception] = {}
    with _Party() as party:
        for number, making in enumerate(makings):
            try:
                crossing = next(making)
            except StopIteration as done:
                results[number] = done.value
            except Exception as problem:
                results[number] = problem
            else:
                if crossing.x.size and crossing.section.holds(crossing.shape):
                    party.join(number, making, crossing)
                else:
                    on_cpu = crossing.section.on_cpu(crossing.x, crossing.shape, crossing.first)
                    results[number] = _finished(making, *on_cpu)
        for group in party.groups.values():
            for one, made, account in _through(group, batching):
                results[one.number] = made if isinstance(made, Exception) else _finished(one.making, made, account)
    return [results[number] for number in range(len(makings))]


class _Party:
    """Those who wait to cross, in groups of equals, their values where the device fetches them."""

    def __init__(self) -> None:
        self.groups: dict[tuple[Any, ...], list[_Waiting]] = {}
        self._loads: dict[str, Load] = {}

    def __enter__(self) -> _Party:
        return self

    def __exit__(self, *_: object) -> None:
        for load in self._loads.values():
            load.close()

    def join(self, number: int, making: Making, crossing: Crossing) -> None:
        from tconv.devices.lane import lane

        section, count = crossing.section, crossing.x.size
        with _refusing(section.device):
            load = self._loads.get(section.device)
            if load is None:
                load = self._loads[section.device] = lane(section.device).load()
            slot = load.slot(count, section.source)
        np.copyto(slot.numpy().view(crossing.x.dtype), crossing.x)
        self.groups.setdefault(crossing.key(), []).append(_Waiting(number, making, crossing, load, slot))


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
