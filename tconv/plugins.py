"""Formats and steps of other packages, found by their entry points when a name is asked for that tconv has not.

A package brings them in the groups ``tconv.formats`` and ``tconv.steps``. Looking for them takes a noticeable part of a
small conversion, so it is left until it is needed; what is broken is named to who asks for it, or for a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from tconv.errors import TconvError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["tconv.formats", "tconv.steps"]

_loaded: dict[str, str] = {}  # of the plugins in use, by the name of their topmost module the package


@dataclass(frozen=True)
class Plugin:
    """One entry point: the format or step (``kind``) of that ``name`` in a ``package``, which is said with its version.

    ``refused``: why it cannot be what it wants to be, from its name alone.
    """

    kind: str
    name: str
    package: str
    entry: EntryPoint
    refused: str = ""

    def load(self, wanted: type) -> Any:
        """What it names: an instance of ``wanted``, or a class derived from it. Raises ``TconvError`` with the package
        named, whatever is wrong.
        """
        if self.refused:
            raise self.broken(self.refused)
        try:
            found = self.entry.load()
        except Exception as problem:  # importing runs code of any kind
            raise self.broken(f"{type(problem).__name__}: {problem}".splitlines()[0]) from problem
        _loaded[self.entry.module.partition(".")[0]] = self.package
        if not (isinstance(found, wanted) or (isinstance(found, type) and issubclass(found, wanted))):
            raise self.broken(f"{self.entry.value} is no {wanted.__module__}.{wanted.__qualname__}")
        if getattr(found, "name", None) != self.name:
            raise self.broken(f"{self.entry.value} is called {getattr(found, 'name', None)!r} in itself")
        return found

    def broken(self, reason: str) -> TconvError:
        """That it cannot be used, and whose business that is."""
        what = f"the {self.kind} {self.name!r} of the package {self.package} cannot be used"
        return TconvError(f"{what}: {reason}", remedy="mend that package, or uninstall it")


def plugins(group: Group, taken: Collection[str]) -> Sequence[Plugin]:
    """All that there are, by name; those that have a name that tconv has ``taken`` itself, or two packages, refused."""
    return _found(group, frozenset(taken))


@cache
def _found(group: Group, taken: frozenset[str]) -> Sequence[Plugin]:
    from importlib.metadata import entry_points

    kind = group.removeprefix("tconv.").removesuffix("s")
    entries = entry_points(group=group)
    often = Counter(entry.name for entry in entries)

    def refusal(name: str) -> str:
        if name in taken:
            return f"tconv has a {kind} of that name itself"
        return f"another package has a {kind} of that name too" if often[name] > 1 else ""

    found = [Plugin(kind, e.name, _package(e), e, refusal(e.name)) for e in entries]
    return sorted(found, key=lambda plugin: (plugin.name, plugin.package))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


def blamed(problem: BaseException) -> str:
    """The package of the plugin in whose code an unforeseen error occurred, or nothing."""
    at = problem.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = at.tb_frame.f_globals.get("__name__", "").partition(".")[0] if at is not None else ""
    return _loaded.get(where, "")
