"""``tconv check PATH...``: which tensors break a policy on dtype, shape or values; nothing is converted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tconv.cli import complete, reading
from tconv.cli.reading import counted, number
from tconv.errors import TconvError, UsageError

if TYPE_CHECKING:
    from tconv.cli.reading import Opened
    from tconv.measure.policy import Checked, Finding
    from tconv.measure.rules import Rule, Shape

BROKEN = 1  # the exit code of a policy that does not hold


def check(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect",
            metavar="DTYPE",
            help="This dtype, or one of several: float32,int64; repeatable.",
            show_default=False,
            autocompletion=complete.dtypes,
        ),
    ] = None,
    finite: Annotated[bool, typer.Option("--finite", help="No NaN and no infinity.", show_default=False)] = False,
    fits: Annotated[
        list[str] | None,
        typer.Option(
            "--fits",
            metavar="DTYPE",
            help="A cast to it would not overflow; repeatable.",
            show_default=False,
            autocompletion=complete.dtypes,
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="SIZES", help="This shape; * is any size: '*,3,224,224'.", show_default=False),
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option("--range", metavar="LO,HI", help="All values lie in [LO, HI].", show_default=False),
    ] = None,
    only: reading.Only = None,
    skip: reading.Skip = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="--expect and --fits concern integers and the training state of checkpoints too.",
            show_default=False,
        ),
    ] = False,
    as_json: reading.Json = False,
    quiet: reading.Quiet = False,
    debug: reading.Debug = False,  # the root looks for it
) -> int:
    """Name every tensor that is not as asked.

    \b
    tconv check ckpt.pt --expect float32    found Double: which one?
    tconv check ckpt.pt --fits float16      would it overflow in half?
    tconv check runs/*.pt --finite -q || echo "do not resume from these"
    tconv check batch.npy --shape '*,3,224,224' --range 0,1

    One line for each tensor and each rule that it breaks: the file, the tensor, what it is, how many values are
    wrong, the worst of them and its index. Values are read only for --finite, --fits and --range, in bounded memory;
    every rule is asked in one pass.

    --expect and --fits concern what a cast would touch: all tensors of data files (arrays, images); of weights
    (checkpoints, safetensors) those that are floating, so that counters may be int64, and no optimizer state. --all
    lifts that. The other rules concern every tensor. --only and --skip choose among all of them.

    --fits takes rounding into account: 65519 fits float16, 65520 does not. Values that would become 0, or integers
    that would not be exact, are told on stderr and break nothing.

    \b
    --json prints one object:
      holds: true or false; checked: {files, tensors}
      broken: a list of {file, tensor, dtype, shape, rule, wanted, reason,
        values}
        rule: expect, finite, fits, shape or range; wanted: what it asks for
        values: null where no value was read, else {count, bad, worst, index};
          an infinite or NaN worst is text
      warnings: a list of the same

    Exit 0: all holds, 1: something breaks a rule, 2: a file could not be read, or the command is wrong.
    """
    from tconv.cli import console
    from tconv.cli.console import progress
    from tconv.errors import raise_all
    from tconv.measure.policy import check as ask

    rules = _rules(expect or [], finite, fits or [], shape, range_)
    with reading.trouble(), console.Console(quiet=quiet, verbose=False) as terminal:
        opened, problems = reading.read(paths, only or [], skip or [], terminal)
        with progress(terminal) as shown:
            checked = ask([one.stream for one in opened], rules, whole=all_, progress=shown)
        if as_json:
            reading.say_json(_as_json(checked, opened))
        for finding in checked.broken if not (quiet or as_json) else ():
            reading.say(_line(finding))
        reading.flush()
        for finding in checked.warnings:
            terminal.note(_line(finding))
        terminal.note(_verdict(checked, opened, all_))
        raise_all([*problems, *checked.failures])
    return BROKEN if checked.broken else 0


def _rules(
    expect: Sequence[str], finite: bool, fits: Sequence[str], shape: str | None, range_: str | None
) -> list[Rule]:
    from tconv.dtypes import dtype
    from tconv.measure.rules import Expect, Finite, Fits, Within
    from tconv.values import interval

    rules: list[Rule] = []
    if expect:
        rules.append(Expect(tuple(dict.fromkeys(dtype(name) for text in expect for name in text.split(",")))))
    if shape is not None:
        rules.append(_shape(shape))
    if finite:
        rules.append(Finite())
    rules += [Fits(target) for target in dict.fromkeys(map(dtype, fits))]
    if range_ is not None:
        rules.append(Within(*interval(range_)))
    if not rules:
        raise UsageError(
            "there is nothing to check", remedy="ask with --expect, --finite, --fits, --shape or --range; see --help"
        )
    return rules


def _shape(text: str) -> Shape:
    """``*,3,224,224`` or ``*x3x224x224``; ``()`` is a scalar's."""
    from tconv.measure.rules import Shape

    plain = text.strip().strip("()[]").rstrip(", ")  # as NumPy and PyTorch print a shape
    sizes = re.split(r"\s*[,x]\s*", plain) if plain else []
    if not text.strip() or not all(re.fullmatch(r"\*|[0-9]{1,18}", size) for size in sizes):
        raise UsageError(f"--shape {text!r} is no list of sizes", remedy="for example --shape '*,3,224,224'")
    return Shape(tuple(None if size == "*" else int(size) for size in sizes))


def _line(finding: Finding) -> str:
    """``ckpt.pt: fc.weight: float32 10x128: 3 of 1280 values …``"""
    from tconv.plan_text import shape

    spec = finding.tensor.spec
    reason = finding.reason if finding.seen is None else f"{spec.dtype} {shape(spec.shape)}: {finding.reason}"
    return str(TconvError(reason, file=finding.tensor.source.path, tensor=spec.name))


def _verdict(checked: Checked, opened: Sequence[Opened], whole: bool) -> str:
    files = counted(len(opened), "file")
    if not checked.concerned:
        hint = "" if whole else "; of weights, --expect and --fits concern floating tensors only, unless --all"
        return f"nothing to check in {files}{hint}"
    broken = len({id(finding.tensor) for finding in checked.broken})
    tensors = counted(checked.concerned, "tensor")
    return f"{broken} of {tensors} in {files}: not as asked" if broken else f"{tensors} in {files}: all as asked"


def _as_json(checked: Checked, opened: Sequence[Opened]) -> dict[str, Any]:
    return {
        "holds": not checked.broken,
        "checked": {"files": len(opened), "tensors": checked.concerned},
        "broken": [_finding(finding) for finding in checked.broken],
        "warnings": [_finding(finding) for finding in checked.warnings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    from tconv.measure.elements import index

    spec, rule, seen = finding.tensor.spec, finding.rule, finding.seen
    found: dict[str, Any] | None = None
    if seen is not None:
        found = {"count": seen.count, "bad": seen.bad, "worst": None, "index": None}
        if seen.bad:
            found |= {"worst": number(seen.worst), "index": list(index(seen.at, spec.shape))}
    return {
        "file": str(finding.tensor.source.path),
        "tensor": spec.name,
        "dtype": spec.dtype.name,
        "shape": list(spec.shape),
        "rule": rule.option,
        "wanted": rule.wanted,
        "reason": finding.reason,
        "values": found,
    }


def register(app: typer.Typer) -> None:
    app.command()(check)
