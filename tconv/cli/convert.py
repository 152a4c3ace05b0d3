"""``tconv [convert] INPUT...``: the options turned into a request, and what is said of the result."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tconv.cli import options as o
from tconv.errors import UsageError, printable, raise_all

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.pipeline import Sugar
    from tconv.planner import Plan
    from tconv.request import Request
    from tconv.tensor import Step


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
    keep: o.Keep = None,
    policy: o.PolicyName = None,
    max_error: o.MaxError = None,
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
    shard_size: o.ShardSize = None,
    tie: o.Tie = False,
    force: o.Force = False,
    resume: o.Resume = False,
    report: o.Report = None,
    verify: o.Verify = False,
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
    tconv llama/ --bf16 -o out/            a Hugging Face folder, shard by shard
    tconv images/ --resize 224x224 --normalize --stats imagenet --layout CHW \\
        -o batch.npy

    A Hugging Face folder (*.index.json and its shards) goes to a folder: shard by shard, or packed by --shard-size,
    with a fresh index and a copy of what else is in it (configuration, tokenizer); other weights stay behind. -o FILE
    merges. A run that was interrupted leaves the shards that are done in a hidden folder; --resume checks and keeps
    them.

    Prints the path written, one line for a file or for a whole folder; all else goes to stderr. Exit 0: done,
    1: refused or failed, 2: the command is wrong, 3: done without the inputs that --on-bad skip left out,
    130: interrupted.
    """
    from tconv.cli import console, values
    from tconv.pipeline import Sugar
    from tconv.request import Request
    from tconv.tensor import ReadOptions

    flags = {"float16": half, "bfloat16": bf16, "float32": float_, "float64": double, "int32": int_, "int64": long}
    to = _one_dtype([to, *(name for name, on in flags.items() if on)])
    sugar = Sugar(resize, normalize, stats, layout, to, stack)
    _check(sugar, input_layout or "")  # what is wrong with the parameters is wrong before any file is opened
    request = Request(
        inputs=tuple(inputs),
        output=output,
        format=format_,
        sugar=sugar,
        steps=_explicit(step or [], pipeline, sugar),
        read=ReadOptions(channels, alpha, palette, frames, not no_exif, max_pixels),
        range=values.interval(range_) if range_ is not None else None,
        input_layout=values.axes(input_layout) if input_layout is not None else None,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        select=select,
        all=all_,
        fields=fields,
        strip_prefix=tuple(strip_prefix or ()),
        split=split,
        shard_size=values.size(shard_size, "--shard-size", "5GB") if shard_size is not None else None,
        tie=tie,
        on_overflow=on_overflow,
        keep=tuple(keep or ()),
        policy=policy,
        max_error=max_error,
        report=Path(report) if report else None,
        verify=verify,
        on_bad=on_bad,
        workers=workers,
        max_memory=values.size(max_memory),
        force=force,
        resume=resume,
    )
    with console.Console(quiet=quiet, verbose=verbose) as terminal:
        return _dry_run(request, terminal) if dry_run else _run(request, terminal)


def _run(request: Request, terminal: Console) -> int:
    from tconv.cli.console import progress
    from tconv.job import convert as run

    with progress(terminal) as shown:
        result = run(request, shown, terminal.note, lambda planned: _tell(planned, terminal))
    for problem in result.skipped:
        terminal.note(f"skipped: {problem}")
    sys.stdout.write("".join(f"{path}\n" for path in result.shown))
    return SKIPPED if result.skipped else 0


def _tell(planned: Plan, terminal: Console) -> None:
    """What of the options has no effect, and the plan for who wants to know what is being done."""
    from tconv.cli.plan import lines

    for text in _idle_options(planned):
        terminal.note(text)
    for line in lines(planned) if terminal.verbose else ():
        terminal.note(line)


def _idle_options(planned: Plan) -> list[str]:
    """A note on the options for images if no input is one."""
    from tconv.tensor import ReadOptions

    if any(one.format.group == "image" for file in planned.files for one in file.target.inputs):
        return []
    usual = asdict(ReadOptions())
    given = [name for name, value in asdict(planned.request.read).items() if value != usual[name]]
    names = ["--no-exif" if name == "exif" else f"--{name.replace('_', '-')}" for name in given]
    return [f"no input is an image, so nothing comes of {' and '.join(names)}"] if names else []


def _dry_run(request: Request, terminal: Console) -> int:
    from tconv.cli.plan import lines
    from tconv.planner import plan
    from tconv.request import Silent

    planned = plan(request, Silent(), {})
    for text in planned.notes:
        terminal.note(text)
    for text in _idle_options(planned):
        terminal.note(text)
    for problem in planned.skipped:
        terminal.note(f"skipped: {problem}")
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines(planned)))
    raise_all(planned.in_the_way)  # what a run would say first
    return SKIPPED if planned.skipped else 0


def _one_dtype(named: list[str | None]) -> str | None:
    from tconv.dtypes import dtype

    names = [str(dtype(name)) for name in named if name is not None]
    if len(names) > 1:
        raise UsageError(
            f"one dtype only, not {' and '.join(names)}", remedy="--to and --half, --bf16 … exclude each other"
        )
    return names[0] if names else None


_OPTIONS = {  # for each step that an option stands for, the option and how it is written
    "resize": ("--resize", "--resize 224 for the shorter side, --resize 256x192 for height x width"),
    "normalize": ("--stats", "--stats imagenet, --stats 0.5/0.5 (MEAN/STD), --stats 0.4,0.5,0.6/0.2,0.2,0.2"),
    "permute": ("--layout", "--layout CHW, --layout NCHW; by numbers it is --step 'permute(2, 0, 1)'"),
}


def _check(sugar: Sugar, input_layout: str) -> None:
    """Refuse options that stand for wrong steps, in the words of the options."""
    from tconv.pipeline import steps_from_text

    layout = (sugar.layout or "").upper()
    if "B" in layout and "B" not in input_layout.upper():
        raise UsageError("the axis of a batch is called N", remedy=f"write {layout.replace('B', 'N')}", step="--layout")
    if sugar.stats and re.fullmatch(r"[-+0-9.,eE ]+", sugar.stats):
        alone = f"--stats {sugar.stats}"
        raise UsageError("it takes mean and std", remedy="write MEAN/STD, as in --stats 0.5/0.5", step=alone)
    given = {"resize": sugar.resize, "normalize": sugar.stats, "permute": sugar.layout}
    for text in sugar.chain():
        name = text.partition("(")[0]
        try:
            steps_from_text([text])
        except UsageError as problem:
            if name not in _OPTIONS:
                raise
            option, example = _OPTIONS[name]
            typed = f"{option} {given[name] or repr(given[name])}"
            of_steps = not problem.remedy or f"{name}(" in problem.remedy
            remedy = f"for example {example}" if of_steps else problem.remedy
            raise UsageError(problem.reason, remedy=remedy, step=typed) from None


def _explicit(texts: list[str], pipeline: str | None, sugar: Sugar) -> tuple[Step, ...]:
    """The steps of --step or --pipeline, which the options that stand for steps cannot be mixed with."""
    from tconv.pipeline import steps_from_text

    if texts and pipeline:
        raise UsageError("--step and --pipeline exclude each other", remedy="put the steps into the YAML file")
    steps = steps_from_text(texts) if texts else []
    if pipeline is not None:
        from tconv.recipes import recipe

        steps = list(recipe(pipeline).steps)
    if steps and sugar.given():
        words = " ".join(f"--step '{text}'" for text in (*sugar.chain(), *map(str, steps)))
        raise UsageError(
            f"{'--step' if texts else '--pipeline'} cannot be mixed with the options that stand for steps",
            remedy=f"in the order that you mean, write: {words}",
        )
    return tuple(steps)


def register(app: typer.Typer) -> None:
    app.command()(convert)
