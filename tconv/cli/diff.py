"""``tconv diff A B``: how far the tensors of two files are apart, whatever their formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    a: Annotated[str, typer.Argument(metavar="A", help="A file, the reference.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="A file of any format.", show_default=False)],
    rtol: Annotated[float | None, _tolerance("--rtol", "Values may be this part of |a| apart.")] = None,
    atol: Annotated[float | None, _tolerance("--atol", "Values may be this much apart.")] = None,
    only: reading.Only = None,
    skip: reading.Skip = None,
    as_json: reading.Json = False,
    quiet: reading.Quiet = False,
    debug: reading.Debug = False,  # the root looks for it
) -> int:
    """Tell whether two files hold the same tensors.

    \b
    tconv diff model.pt model.safetensors           did the conversion keep all?
    tconv diff model.pt model.float16.pt --rtol 1e-3
    tconv diff before.npz after.npz --only 'pos*' -q && echo same

    Tensors are compared by name; the only tensors of two files whatever they are called, if one has no name but its
    file's (.npy, images). The table has all that is not the same, and how far apart it is: how many values, the largest
    distance, the largest one relative to |a|, the largest in ULPs (steps from one number of the dtype to the next, for
    two floats of one dtype), the signal-to-noise ratio 10 log10(Σa²/Σ(a-b)²) in dB (none where a difference is
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
        sides = _read(a, b, only or [], skip or [], terminal)
        pairing = _pair(*sides)
        alike = [pair for pair in pairing.pairs if pair[0].spec.shape == pair[1].spec.shape]
        with console.progress(terminal) as shown:
            differences, problems = compare(alike, tolerance or Tolerance(), shown)
        raise_all(problems)
        known = {id(first): found for (first, _), found in zip(alike, differences, strict=True)}
        compared = [Compared(x.spec, y.spec, known.get(id(x)), tolerance) for x, y in pairing.pairs]
        result = Result((a, b), compared, pairing, tolerance)
        if as_json:
            reading.say_json(verdict.as_json(result))
        for line in verdict.lines(result) if not (quiet or as_json) else ():
            reading.say(line)
        reading.flush()
    return 0 if result.equal else DIFFERENT


def _read(a: str, b: str, only: Sequence[str], skip: Sequence[str], terminal: Console) -> tuple[Opened, Opened]:
    """Both files, with the tensors whose names match; one of them may have none."""
    both = [_one(word) for word in (a, b)]
    kept = {id(one.input): one for one in reading.matching(both, only, skip, terminal)}
    raise_all([other for one in kept.values() for other in one.stream.others])
    first, second = (kept.get(id(one.input), one._replace(stream=one.stream.with_tensors(()))) for one in both)
    return first, second


def _one(word: str) -> Opened:
    from tconv.cli.console import Console

    if Path(word).is_dir():
        raise TconvError("is a folder", remedy="diff compares two files", file=word)
    opened, problems = reading.read([word], (), (), Console(quiet=True, verbose=False))
    raise_all([problem for problem in problems if not isinstance(problem, NotTensor)])  # that may be skipped
    if len(opened) != 1:
        raise TconvError(f"names {len(opened)} files", remedy="diff compares two files", file=word)
    return opened[0]


def _pair(a: Opened, b: Opened) -> Pairing:
    """Tensors of one name; and, of two files that hold one each, these, if the name of one is that of its file only."""
    from tconv.measure.pairs import Pairing, pair

    first, second = a.stream.tensors, b.stream.tensors
    nameless = any(one.stream.tensors[0].spec.name == one.input.name for one in (a, b) if one.stream.tensors)
    if len(first) == len(second) == 1 and nameless:
        return Pairing(((first[0], second[0]),), ((), ()))
    return pair(first, second)


def register(app: typer.Typer) -> None:
    app.command()(diff)
