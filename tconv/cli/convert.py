"""``tconv [convert] INPUT...``: the options turned into a request, and what is said of the result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tconv.cli import options as o
from tconv.cli import skipped
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.planner import Plan
    from tconv.request import Request


SKIPPED = 3  # the exit code when inputs were left out, as asked


def convert(
    ctx: typer.Context,
    inputs: o.Inputs,
    resize: o.Resize = None,
    pad: o.Pad = None,
    normalize: o.Normalize = False,
    stats: o.Stats = None,
    denormalize: o.Denormalize = None,
    layout: o.Layout = None,
    quantize: o.QuantizeTo = None,
    to: o.To = None,
    half: o.Half = False,
    bf16: o.Bf16 = False,
    float_: o.Float = False,
    double: o.Double = False,
    int_: o.Int = False,
    long: o.Long = False,
    fields: o.Fields = None,
    on_overflow: o.OnOverflow = None,
    keep: o.Keep = None,
    policy: o.PolicyName = None,
    max_error: o.MaxError = None,
    min_sqnr: o.MinSqnr = None,
    step: o.StepList = None,
    pipeline: o.PipelineName = None,
    set_: o.Set = None,
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
    batch_size: o.BatchSize = None,
    drop_last: o.DropLast = False,
    split: o.Split = False,
    shard_size: o.ShardSize = None,
    tie: o.Tie = False,
    quality: o.Quality = None,
    force: o.Force = False,
    resume: o.Resume = False,
    report: o.Report = None,
    verify: o.Verify = False,
    channels: o.Channels = None,
    alpha: o.Alpha = None,
    palette: o.Palette = "rgb",
    frames: o.Frames = "first",
    labels: o.Labels = None,
    no_labels: o.NoLabels = False,
    no_exif: o.NoExif = False,
    max_pixels: o.MaxPixels = None,
    fast: o.Fast = False,
    device: o.DeviceName = None,
    device_batch: o.DeviceBatch = None,
    save_device: o.SaveDevice = False,
    dry_run: o.DryRun = False,
    print_: o.Print = None,
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
    tconv batch.npy -o png/ --denormalize imagenet    pictures again

    A Hugging Face folder (*.index.json and its shards) goes to a folder: shard by shard, or packed by --shard-size,
    with a fresh index and a copy of what else is in it (configuration, tokenizer); other weights stay behind. -o FILE
    merges. A run that was interrupted leaves the shards that are done in a hidden folder; --resume checks and keeps
    them.

    A folder of class folders brings labels (int64), classes and paths along, in torchvision's order; --labels FILE
    takes labels from CSV or JSONL: integers are int64, other numbers float64, text is classes, lists are axes.

    --device has the steps done on a GPU as far as they come out there as on the CPU, and the plan says how far.

    Prints the path written, one line for a file or for a whole folder; all else goes to stderr. Exit 0: done,
    1: refused or failed, 2: the command is wrong, 3: done without the inputs that --on-bad skip left out,
    130: interrupted.
    """
    from tconv import values
    from tconv.cli import asked, console
    from tconv.cli.dry_run import show
    from tconv.pipeline import Sugar
    from tconv.request import Request
    from tconv.writer import ReadOptions, WriteOptions

    if report and (dry_run or print_):
        raise UsageError(
            "--report tells what was lost, and nothing is converted here",
            remedy="leave it out; plan --print json tells what would be done",
        )
    flags = {"float16": half, "bfloat16": bf16, "float32": float_, "float64": double, "int32": int_, "int64": long}
    to = asked.one_dtype([to, *(name for name, on in flags.items() if on)])
    sugar = Sugar(resize, normalize, stats, layout, to, stack, denormalize, quantize, pad)
    if device is not None:
        from tconv.devices.names import check as check_device

        check_device(device)
    asked.check_sugar(sugar, input_layout or "")  # what is wrong with the parameters is wrong before any file is opened
    steps, settings = asked.explicit(step or [], pipeline, set_ or [], sugar)
    request = Request(
        inputs=tuple(inputs),
        output=output,
        format=format_,
        sugar=sugar,
        steps=steps,
        read=ReadOptions(channels or "rgb", alpha or "white", palette, frames, not no_exif, max_pixels, fast),
        own_channels=channels is None and alpha is None,
        write=WriteOptions(quality),
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
        batch_size=batch_size,
        drop_last=drop_last,
        tie=tie,
        on_overflow=on_overflow,
        keep=tuple(keep or ()),
        policy=policy,
        max_error=max_error,
        min_sqnr=min_sqnr,
        report=Path(report) if report else None,
        verify=verify,
        labels=asked.labelling(labels, no_labels),
        on_bad=on_bad,
        workers=workers,
        max_memory=values.size(max_memory),
        force=force,
        resume=resume,
        device=device,
        device_batch=device_batch,
        save_device=save_device,
    )
    if settings:
        request = asked.settled(request, settings, ctx)
    with console.Console(quiet=quiet, verbose=verbose) as terminal:
        return show(request, terminal, print_ or "plan") if dry_run or print_ else _run(request, terminal)


def _run(request: Request, terminal: Console) -> int:
    from tconv.cli.console import progress
    from tconv.job import convert as run

    with progress(terminal) as shown:
        result = run(request, shown, terminal.later, lambda planned: _tell(planned, terminal))
    terminal.flush()
    skipped.tell(result.skipped, terminal)
    sys.stdout.write("".join(f"{path}\n" for path in result.shown))
    return SKIPPED if result.skipped else 0


def _tell(planned: Plan, terminal: Console) -> None:
    """What of the options has no effect, and the plan for who wants to know what is being done."""
    from tconv.cli.dry_run import idle_options
    from tconv.plan_text import lines

    for text in idle_options(planned):
        terminal.later(text)
    terminal.flush()
    if terminal.verbose:
        for line in lines(planned):
            terminal.note(line)


def register(app: typer.Typer) -> None:
    app.command()(convert)
