"""What devices are called, and which one is meant: torch is imported when it is none but the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

from tconv.errors import TconvError
from tconv.parameters import WrongParameter
from tconv.suggest import did_you_mean

WORDS = ("cuda", "cuda:1", "mps", "cpu", "auto")
CPU = "cpu"
BY_TORCH = "torch"  # the CPU by the way of devices, through torch: so that tests need none
INSTALL = "pip install 'tconv[torch]' brings it"


class Meant(NamedTuple):
    """``device``: its full name, cuda:0 for cuda. ``note``: what the user should hear of the choice."""

    device: str
    note: str = ""


def check(name: str) -> None:
    """Raise ``UsageError`` for what no device is called."""
    if not re.fullmatch(r"cpu|auto|mps|cuda(:\d{1,3})?", name) and name != BY_TORCH:
        hint = "there are cuda, cuda:1 …, mps, cpu, and auto for the best of them"
        remedy = hint if name.lower() == "gpu" else did_you_mean(name, WORDS, hint)
        raise WrongParameter("where", f"there is no device {name!r}", remedy=remedy)


_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)


@contextmanager
def elsewhere() -> Iterator[None]:
    """What is planned in here may be done on another machine: no device is looked for."""
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def resolve(name: str) -> Meant:
    """The device of that name. Raises ``TconvError`` where it is not there, and never takes another one instead;
    ``UsageError`` for what no device is called.
    """
    check(name)
    return Meant(name) if name == CPU or _elsewhere.get() else _found(name)


@cache
def _found(name: str) -> Meant:
    try:
        from tconv.devices import there
    except ImportError:
        return _without_torch(name)
    if name == BY_TORCH:
        return Meant(name)
    if name != "auto":
        return Meant(there.device(name))
    device, told = there.best()
    return Meant(device, f"device auto: {device}{told}")


def _without_torch(name: str) -> Meant:
    if name == "auto":
        return Meant(CPU, f"device auto: cpu, as PyTorch is not installed; {INSTALL}")
    raise TconvError(f"the device {name} needs PyTorch, which is not installed", remedy=INSTALL)
