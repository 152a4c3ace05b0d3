"""The table, the verdict and the JSON of ``tconv diff``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tconv.cli.reading import counted, number, short
from tconv.errors import one_line
from tconv.lost import decibels
from tconv.measure.elements import index
from tconv.plan_text import shape
from tconv.selection import first_few
from tconv.table import table

if TYPE_CHECKING:
    from tconv.measure.compare import Difference, Tolerance
    from tconv.measure.pairs import Pairing
    from tconv.tensor import Spec

NAMED = 20  # names without a partner that are written out


@dataclass(frozen=True)
class Compared:
    """A tensor of both sides. ``difference`` is None where the shapes are not the same."""

    a: Spec
    b: Spec
    difference: Difference | None
    tolerance: Tolerance | None

    @property
    def same(self) -> bool:
        """Whether there is nothing to tell."""
        return self.a.dtype == self.b.dtype and self.difference is not None and not self.difference.unequal

    @property
    def equal(self) -> bool:
        """Whether it is as was asked for."""
        alike = self.a.dtype == self.b.dtype or self.tolerance is not None
        return alike and self.difference is not None and not self.difference.far


@dataclass(frozen=True)
class Result:
    """All of it. ``tolerance`` is None where none was given."""

    paths: tuple[str, str]
    compared: Sequence[Compared]
    pairing: Pairing
    tolerance: Tolerance | None
    way: str = ""  # what would make more names match

    @property
    def sqnr(self) -> float | None:
        """The signal-to-noise ratio in dB of all values together, None where one tensor has none."""
        found = [one.difference for one in self.compared if one.difference is not None]
        if not found or any(one.sqnr is None for one in found):
            return None
        return decibels(sum((d.signal for d in found), Fraction(0)), sum((d.noise for d in found), Fraction(0)))

    @property
    def equal(self) -> bool:
        return all(one.equal for one in self.compared) and not any(self.pairing.alone)


def lines(result: Result) -> Iterator[str]:
    """A row for each tensor that is not the same, what has no partner, and the verdict."""
    told = [one for one in result.compared if not one.same]
    if told:
        yield from _table(told)
    for path, names in zip(result.paths, result.pairing.alone, strict=True):
        if names:
            yield one_line(f"only in {path}: {first_few(names, NAMED)}")
    if prefix := result.pairing.prefix:
        side, other = result.paths[prefix.side], result.paths[1 - prefix.side]
        count = counted(prefix.names, "name")
        yield one_line(f"{count} of {side} would match {other} without {prefix.text!r} in front: {result.way}")
    if sum(bool(one.difference and one.difference.unequal) for one in told) > 1 and result.sqnr is not None:
        yield f"all values together: SQNR {result.sqnr:.1f} dB"
    yield one_line(_verdict(result, told))


def _table(told: Sequence[Compared]) -> Iterator[str]:
    columns: list[tuple[str, Callable[[Compared], str], bool]] = [
        ("name", lambda one: one.a.name, False),
        ("dtype", lambda one: _change(str(one.a.dtype), str(one.b.dtype)), False),
        ("shape", lambda one: _change(shape(one.a.shape), shape(one.b.shape)), False),
        ("differ", lambda one: _of(one, lambda d: f"{d.unequal:,} of {d.count:,}"), True),
        ("too far", lambda one: _of(one, lambda d: f"{d.far:,}" if one.tolerance else ""), True),
        ("max abs", lambda one: _of(one, lambda d: short(d.max_abs)), True),
        ("max rel", lambda one: _of(one, lambda d: short(d.max_rel, 3)), True),
        ("ULPs", lambda one: _of(one, lambda d: short(d.ulps) if d.max_rel < 1 else ""), True),
        ("SQNR dB", lambda one: _of(one, lambda d: "" if d.sqnr is None else f"{d.sqnr:.1f}"), True),
        ("NaN", lambda one: _of(one, lambda d: f"{d.nan:,}" if d.nan else ""), True),
        ("first at", lambda one: "" if (at := _first(one)) is None else str(at), False),
        ("", lambda one: "close enough" if one.equal else "", False),
    ]
    cells = [[cell(one) for one in told] for _, cell, _ in columns]
    kept = [n for n in range(len(columns)) if n < 3 or any(cells[n])]
    right = [at for at, n in enumerate(kept) if columns[n][2]]
    return table([columns[n][0] for n in kept], list(zip(*(cells[n] for n in kept), strict=True)), right)


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def _of(one: Compared, text: Callable[[Difference], str]) -> str:
    """What there is to say of values: nothing, if they were not compared or are the same."""
    return text(one.difference) if one.difference is not None and one.difference.unequal else ""


def _first(one: Compared) -> list[int] | None:
    """The index of the first value that is too far off."""
    if one.difference is None or one.difference.first is None:
        return None
    return list(index(one.difference.first, one.a.shape))


def _verdict(result: Result, told: Sequence[Compared]) -> str:
    a, b = result.paths
    tensors = counted(len(result.compared), "tensor")
    if result.equal:
        within = f", {len(told)} of them within the tolerance" if told else ""
        return f"{a} and {b} are equal: {tensors}{within}"
    reasons = [
        (sum(bool(one.difference and one.difference.far) for one in told), "in values"),
        (sum(one.a.dtype != one.b.dtype for one in told if not one.equal), "in dtype"),
        (sum(one.difference is None for one in told), "in shape"),
    ]
    texts = [f"{n} of {tensors} {what}" for n, what in reasons if n]
    texts += [
        f"{counted(len(names), 'tensor')} only in {path}"
        for path, names in zip(result.paths, result.pairing.alone, strict=True)
        if names
    ]
    return f"{a} and {b} differ: {', '.join(texts)}"


def as_json(result: Result) -> dict[str, Any]:
    """What the help of ``diff`` says."""
    prefix = result.pairing.prefix
    return {
        "equal": result.equal,
        "a": result.paths[0],
        "b": result.paths[1],
        "tensors": [_tensor(one) for one in result.compared],
        "sqnr": number(result.sqnr),
        "only_a": list(result.pairing.alone[0]),
        "only_b": list(result.pairing.alone[1]),
        "hint": {"side": "ab"[prefix.side], "prefix": prefix.text, "names": prefix.names} if prefix else None,
    }


def _tensor(one: Compared) -> dict[str, Any]:
    found = one.difference
    return {
        "name": one.a.name,
        "dtype": [one.a.dtype.name, one.b.dtype.name],
        "shape": [list(one.a.shape), list(one.b.shape)],
        "equal": one.equal,
        "values": found
        and {
            "count": found.count,
            "unequal": found.unequal,
            "beyond": found.far,
            "nan": found.nan,
            "max_abs": number(found.max_abs),
            "max_rel": number(found.max_rel),
            "ulps": found.ulps,
            "sqnr": number(found.sqnr),
            "first": _first(one),
        },
    }
