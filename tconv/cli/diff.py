"""``tconv diff A B``: how far the tensors of two files are apart, whatever their formats."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tconv.cli import reading
from tconv.errors import NotTensor, TconvError, UsageError, raise_all

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.cli.reading import Opened
    from tconv.measure.pairs import Pairing

DIFFERENT = 1  # the exit code where they differ


def _tolerance(name: str, text: str) -> Any:
    def check(ctx: Any, param: Any, value: str | None) -> float | None:
        if value is None:
            return None
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not 0 <= found < math.inf:
            raise UsageError(f"{name} takes a number that is not negative, not {value!r}", remedy="for example 1e-3")
        return found

    return typer.Option(name, metavar="NUMBER", help=text, show_default=False, callback=check)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A file or folder; the reference.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another, of any format.", show_default=False)],
    rtol: Annotated[float | None, _tolerance("--rtol", "Values may be this part of |a| apart.")] = None,
    atol: Annotated[float | None, _tolerance("--atol", "Values may be this much apart.")] = None,
    only: reading.Only = None,
    skip: reading.Skip = None,
    select: Annotated[
        str | None,
        typer.Option("--select", metavar="KEY", help="What lies under this key, where it is.", show_default=False),
    ] = None,
    strip_prefix: Annotated[
        list[str] | None,
        typer.Option(
            "--strip-prefix", metavar="TEXT", help="Cut this off the front of names; repeatable.", show_default=False
        ),
    ] = None,
    as_json: reading.Json = False,
    quiet: reading.Quiet = False,
    debug: reading.Debug = False,  # the root looks for it
) -> int:
    """Tell whether two files hold the same tensors.

    \b
    tconv diff model.pt model.safetensors           did the conversion keep all?
    tconv diff model.pt model.float16.pt --rtol 1e-3
    tconv diff ckpt.pt model.safetensors --select state_dict
    tconv diff before.npz after.npz --only 'pos*' -q && echo same

    Tensors are compared by name; the only ones without a partner whatever they are called, if one has no name but its
    file's (.npy, images). --select and --strip-prefix are done to each side where there is such a key or prefix. A
    folder stands for the sharded checkpoint in it.

    The table has all that is not the same, and how far apart it is: how many values, the largest distance, the largest
    one relative to |a|, the largest in ULPs (steps from one number of the dtype to the next, for two floats of one
    dtype; left out where a value is off by all of itself or more), the signal-to-noise ratio 10 log10(Σa²/Σ(a-b)²) in
    dB, of all values together too (none where a difference is
    infinite), and the index of the first value that differs. Values are compared exactly, 64-bit integers too; NaN
    equals NaN and 0 equals -0. A value that is NaN on one side only is counted, and is left out of all distances.
    Memory does not grow with the files, but for what decodes whole (images, deflated .npz).

    With --rtol or --atol, values are close enough if |a - b| <= atol + rtol * |a| (what is not given is 0), and
    another dtype alone is no difference; without them it is one. Another shape, and a name that only one side has,
    always are.

    \b
    --json prints one object:
      equal: true or false; a, b: the paths
      tensors: a list of {name, dtype: [of a, of b], shape: [of a, of b], equal,
        values}
        values: null for two shapes, else {count, unequal, beyond, nan, max_abs,
          max_rel, ulps, sqnr, first}
          unequal: values that are not the same; beyond: not close either;
          first: the index of the first of those; sqnr: in dB; an infinite
          number is text, what there is not is null
      sqnr: of all values together, likewise
      only_a, only_b: lists of names
      hint: null, or {side: a or b, prefix, names}: so many names would match
        without the prefix

    Exit 0: equal, 1: they differ, 2: a file could not be read, or the command is wrong.
    """
    from tconv.cli import console, verdict
    from tconv.cli.verdict import Compared, Result
    from tconv.measure.compare import Tolerance
    from tconv.measure.pairs import compare

    tolerance = None if rtol is None and atol is None else Tolerance(rtol or 0.0, atol or 0.0)
    with reading.trouble(), console.Console(quiet=quiet, verbose=False) as terminal:
        sides = _read(a, b, _Chosen(only or [], skip or [], select, strip_prefix or []), terminal)
        pairing = _pair(*sides)
        alike = [pair for pair in pairing.pairs if pair[0].spec.shape == pair[1].spec.shape]
        with console.progress(terminal) as shown:
            differences, problems = compare(alike, tolerance or Tolerance(), shown)
        raise_all(problems)
        known = {id(first): found for (first, _), found in zip(alike, differences, strict=True)}
        compared = [Compared(x.spec, y.spec, known.get(id(x)), tolerance) for x, y in pairing.pairs]
        result = Result((a, b), compared, pairing, tolerance, _way(sides, pairing))
        if as_json:
            reading.say_json(verdict.as_json(result))
        for line in verdict.lines(result) if not (quiet or as_json) else ():
            reading.say(line)
        reading.flush()
    return 0 if result.equal else DIFFERENT


class _Chosen(NamedTuple):
    """What of both files is compared, and under which names."""

    only: Sequence[str]
    skip: Sequence[str]
    select: str | None
    strip_prefix: Sequence[str]


def _read(a: str, b: str, chosen: _Chosen, terminal: Console) -> tuple[Opened, Opened]:
    """Both files, with the tensors whose names match; one of them may have none."""
    both = _renamed([_one(word) for word in (a, b)], chosen)
    kept = {id(one.input): one for one in reading.matching(both, chosen.only, chosen.skip, terminal)}
    raise_all([other for one in kept.values() for other in one.stream.others])
    first, second = (kept.get(id(one.input), one._replace(stream=one.stream.with_tensors(()))) for one in both)
    return first, second


def _one(word: str) -> Opened:
    from tconv.cli.console import Console

    opened, problems = reading.read([_file(word)], (), (), Console(quiet=True, verbose=False))
    raise_all([problem for problem in problems if not isinstance(problem, NotTensor)])  # that may be skipped
    if len(opened) != 1:
        raise TconvError(f"names {len(opened)} files", remedy="diff compares two files", file=word)
    return opened[0]


def _file(word: str) -> str:
    """The one file that a folder stands for: the index of its shards, or its model."""
    if not Path(word).is_dir():
        return word
    from tconv.inputs import find

    found = find([word]).inputs
    if len(found) != 1:
        remedy = "diff compares two files, or folders that hold one sharded checkpoint"
        raise TconvError(f"is a folder of {len(found)} files", remedy=remedy, file=word)
    return str(found[0].path)


def _renamed(both: Sequence[Opened], chosen: _Chosen) -> list[Opened]:
    """Both after --select and --strip-prefix, either of which may concern one of them only."""
    from tconv import selection

    made = list(both)
    if chosen.select is not None:
        problems = []
        for n, one in enumerate(made):
            try:
                made[n] = one._replace(stream=selection.select(one.stream, chosen.select))
            except TconvError as problem:
                problems.append(problem.at(file=one.input.path))
        raise_all(problems if len(problems) == len(made) else [])
    for n, one in enumerate(made):
        try:
            stripped = selection.strip_prefixes(one.stream, chosen.strip_prefix)
        except TconvError as problem:
            raise problem.at(file=one.input.path) from None
        made[n] = one._replace(stream=replace(stripped, notes=one.stream.notes))
    return made


def _pair(a: Opened, b: Opened) -> Pairing:
    """Tensors of one name; and the only two that are left, if the name of one is that of its file only."""
    from tconv.measure.pairs import Pairing, pair

    found = pair(a.stream.tensors, b.stream.tensors)
    left = [
        [t for t in one.stream.tensors if t.spec.name in names] for one, names in zip((a, b), found.alone, strict=True)
    ]
    if len(left[0]) == len(left[1]) == 1:
        first, second = left[0][0], left[1][0]
        if first.spec.name == a.input.name or second.spec.name == b.input.name:
            return Pairing((*found.pairs, (first, second)), ((), ()))
    return found


def _way(sides: tuple[Opened, Opened], pairing: Pairing) -> str:
    """The option that takes the prefix away which keeps names from matching."""
    from tconv import selection

    if pairing.prefix is None:
        return ""
    key = pairing.prefix.text.removesuffix(".")
    try:
        selection.select(sides[pairing.prefix.side].stream, key)
    except TconvError:
        return f"--strip-prefix {shlex.quote(pairing.prefix.text)}"
    return f"--select {shlex.quote(key)}"


def register(app: typer.Typer) -> None:
    app.command()(diff)
