"""``tconv [convert] INPUT...``: the options turned into a request, and what is said of the result."""

from __future__ import annotations

import math
import re
import sys
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from tconv.cli import options as o
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.pipeline import Sugar
    from tconv.planner import Plan
    from tconv.request import Request
    from tconv.tensor import Range, Step


class Panels(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "rich_help_panel", None) or "Other", []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


SKIPPED = 3  # the exit code when inputs were left out, as asked


def convert(
    inputs: o.Inputs,
    resize: o.Resize = None,
    normalize: o.Normalize = False,
    stats: o.Stats = None,
    layout: o.Layout = None,
    to: o.To = None,
    half: o.Half = False,
    bf16: o.Bf16 = False,
    float_: o.Float = False,
    double: o.Double = False,
    int_: o.Int = False,
    long: o.Long = False,
    fields: o.Fields = None,
    on_overflow: o.OnOverflow = "error",
    step: o.StepList = None,
    pipeline: o.PipelineName = None,
    range_: o.RangeText = None,
    input_layout: o.InputLayout = None,
    only: o.Only = None,
    skip: o.Skip = None,
    select: o.Select = None,
    all_: o.All = False,
    strip_prefix: o.StripPrefix = None,
    output: o.Out = None,
    format_: o.FormatName = None,
    stack: o.StackFlag = False,
    split: o.Split = False,
    force: o.Force = False,
    channels: o.Channels = "rgb",
    alpha: o.Alpha = "white",
    palette: o.Palette = "rgb",
    frames: o.Frames = "first",
    no_exif: o.NoExif = False,
    max_pixels: o.MaxPixels = None,
    dry_run: o.DryRun = False,
    on_bad: o.OnBad = "error",
    workers: o.Workers = None,
    max_memory: o.MaxMemory = "1GB",
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    debug: o.Debug = False,  # the root looks for it
) -> int:
    """Convert files; the default verb.

    \b
    tconv images/ --to float32 --normalize
    tconv ckpt.pt --half
    tconv images/ --resize 224x224 --normalize --stats imagenet --layout CHW -o batch.npy

    Prints the path written, one line a target; all else goes to stderr. Exit 0: done, 1: refused or failed, 2: the
    command is wrong, 3: done without the inputs that --on-bad skip left out, 130: interrupted.
    """
    from tconv.cli import console
    from tconv.pipeline import Sugar, steps_from_text
    from tconv.request import Request
    from tconv.tensor import ReadOptions

    flags = {"float16": half, "bfloat16": bf16, "float32": float_, "float64": double, "int32": int_, "int64": long}
    to = _one_dtype([to, *(name for name, on in flags.items() if on)])
    if fields is not None and to is None:
        raise UsageError("--fields is for a cast", remedy="say which with --to")
    sugar = Sugar(resize, normalize, stats, layout, to, stack, fields)
    steps_from_text(sugar.chain())  # what is wrong with the parameters is wrong before any file is opened
    request = Request(
        inputs=tuple(inputs),
        output=output,
        format=format_,
        sugar=sugar,
        steps=_explicit(step or [], pipeline, sugar),
        read=ReadOptions(channels, alpha, palette, frames, not no_exif, max_pixels),
        range=_range(range_) if range_ else None,
        input_layout=_axes(input_layout) if input_layout else None,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        select=select,
        all=all_,
        strip_prefix=tuple(strip_prefix or ()),
        split=split,
        on_overflow=on_overflow,
        on_bad=on_bad,
        workers=workers,
        max_memory=_size(max_memory),
        force=force,
    )
    terminal = console.Console(quiet=quiet, verbose=verbose)
    if dry_run:
        return _dry_run(request, terminal)
    from tconv.job import convert as run

    with console.progress(terminal) as progress:
        result = run(request, progress, terminal.note, lambda planned: _tell(planned, terminal))
    for problem in result.skipped:
        terminal.note(f"skipped: {problem}")
    sys.stdout.write("".join(f"{path}\n" for path in result.shown))
    return SKIPPED if result.skipped else 0


def _tell(planned: Plan, terminal: Console) -> None:
    """The plan, for who wants to know what is being done."""
    from tconv.cli.plan import lines

    for line in lines(planned) if terminal.verbose else ():
        terminal.note(line)


def _dry_run(request: Request, terminal: Console) -> int:
    from tconv.cli.plan import lines
    from tconv.planner import plan
    from tconv.request import Silent

    planned = plan(request, Silent(), {})
    for text in planned.notes:
        terminal.note(text)
    for problem in planned.skipped:
        terminal.note(f"skipped: {problem}")
    sys.stdout.write("".join(f"{line}\n" for line in lines(planned)))
    return SKIPPED if planned.skipped else 0


def _one_dtype(named: list[str | None]) -> str | None:
    from tconv.dtypes import dtype

    names = [str(dtype(name)) for name in named if name is not None]
    if len(names) > 1:
        raise UsageError(
            f"one dtype only, not {' and '.join(names)}", remedy="--to and --half, --bf16 … exclude each other"
        )
    return names[0] if names else None


def _explicit(texts: list[str], pipeline: str | None, sugar: Sugar) -> tuple[Step, ...]:
    """The steps of --step or --pipeline, which the options that stand for steps cannot be mixed with."""
    from tconv.pipeline import recipe, steps_from_text

    if texts and pipeline:
        raise UsageError("--step and --pipeline exclude each other", remedy="put the steps into the YAML file")
    steps = steps_from_text(texts) if texts else list(recipe(pipeline).steps) if pipeline else []
    if steps and sugar.given():
        words = " ".join(f"--step '{text}'" for text in (*sugar.chain(), *map(str, steps)))
        raise UsageError(
            f"{'--step' if texts else '--pipeline'} cannot be mixed with the options that stand for steps",
            remedy=f"in the order that you mean, write: {words}",
        )
    return tuple(steps)


def _range(text: str) -> Range:
    try:
        lo, hi = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--range {text!r} is not LO,HI", remedy="for example --range 0,255") from None
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise UsageError(f"--range {text!r}: LO must be less than HI, both finite")
    return lo, hi


def _axes(text: str) -> str:
    axes = text.upper()
    if not axes.isalpha() or len(set(axes)) < len(axes):
        raise UsageError(f"--input-layout {text!r} is no list of axes", remedy="for example HWC, CHW or NHWC")
    return axes


def _size(text: str) -> int:
    """Bytes from ``500MB``, ``2G``, ``1GiB``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", text.strip().upper())
    if match is None or not float(match[1]):
        raise UsageError(f"--max-memory {text!r} is no size", remedy="for example 500MB or 2GB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2] or " "))


def register(app: typer.Typer) -> None:
    app.command(cls=Panels)(convert)
