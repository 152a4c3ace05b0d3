"""``tconv stats INPUT...``: mean and std of every channel over a whole data set, for ``--stats``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tconv import values as said
from tconv.cli import options as o
from tconv.cli import reading, skipped, values
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.calibrated import Calibrated
    from tconv.pooled import Statistics

SKIPPED = 3  # the exit code when inputs were left out, as asked


def stats(
    ctx: typer.Context,
    inputs: o.Inputs,
    resize: o.Resize = None,
    step: o.StepList = None,
    pipeline: o.PipelineName = None,
    set_: o.Set = None,
    raw: Annotated[bool, o.flag(o.VALUES, "Values as they are, not 0…1.", "--raw")] = False,
    calibrate: Annotated[
        Literal["minmax", "percentile", "mse", "entropy"] | None,
        o.choice(
            o.VALUES,
            "Ranges and scales instead: minmax, percentile, mse, entropy.",
            "--calibrate",
            "minmax",
            "percentile",
            "mse",
            "entropy",
            metavar="METHOD",
        ),
    ] = None,
    quantize: Annotated[
        str | None,
        o.option(o.VALUES, "With it: to what (int8); uint8, 'int8, scheme=affine' …", "--quantize", metavar="DTYPE"),
    ] = None,
    range_: o.RangeText = None,
    input_layout: o.InputLayout = None,
    only: o.Only = None,
    skip: o.Skip = None,
    fields: o.Fields = None,
    sample: Annotated[
        int | None,
        o.option(
            o.NAMES, "So many files, chosen at random.", "--sample", metavar="N", callback=values.whole(1, 10**15)
        ),
    ] = None,
    seed: Annotated[
        int | None,
        o.option(
            o.NAMES, "Another choice for another number (0).", "--seed", metavar="N", callback=values.whole(0, 10**15)
        ),
    ] = None,
    output: Annotated[
        str | None,
        o.option(o.OUTPUT, "Write it there, for --stats FILE.json.", "-o", "--output", metavar="FILE.json"),
    ] = None,
    as_json: reading.Json = False,
    force: o.Force = False,
    channels: o.Channels = "rgb",
    alpha: o.Alpha = "white",
    frames: o.Frames = "first",
    no_exif: o.NoExif = False,
    max_pixels: o.MaxPixels = None,
    on_bad: o.OnBad = "error",
    workers: o.Workers = None,
    max_memory: o.MaxMemory = "1GB",
    quiet: o.Quiet = False,
    debug: o.Debug = False,  # the root looks for it
) -> int:
    """Mean and std of every channel over a whole data set.

    \b
    tconv stats images/ --resize 224x224 -o stats.json
    tconv images/ --resize 224x224 --normalize --stats stats.json -o batch.npy
    tconv stats images/ --sample 1000         a quick look
    tconv stats batch.npy --input-layout NCHW --range 0,255
    tconv stats images/ --pipeline imagenet --calibrate entropy -o calib.json

    Values are taken to 0…1 by their known range, as --normalize does, so that the result goes with --normalize
    --stats; --raw leaves them as they are, for --stats alone. They are pooled: every value of a channel counts the
    same, so an image counts by its area unless --resize HxW makes all equal. The std is that of the population,
    sqrt(mean((x - mean)²)). Images are read as convert reads them, and channels are in that order: R, G, B.

    --step and --pipeline give other steps; those from normalize on are left out, and axes and stacking make no
    difference. An array is one channel unless --input-layout says which axis the channels are.

    Of integers of up to 16 bits the result is exact and rounded once; of others it is made in float64. It is the same
    to the last bit, however many threads there are. NaN and infinities make a bad file.

    \b
    -o writes, and --json prints, one object:
      mean, std: a number for each channel; all that --stats looks at
      min, max: likewise; count: the values of each channel
      range: in which the values lie that they are of, null if nobody knows;
        --stats refuses values that lie in another
      channels: RGB, BGR, RGBA or Y (grey), null if they have no names
      files: how many; sample: null, or {of: out of how many, seed}
      steps: what was done before, as text
      sources: a list of {dtype, range, tensors}; range: what was taken to 0…1,
        null if values were left as they are
      tconv: the version

    --calibrate finds instead, for int8 or what --quantize says, the scale and the zero point of what comes of all of
    the steps: of all values together (per_tensor) and of each channel. minmax: for all values. percentile: for the
    middle 99.9 percent (--quantize 'int8, percentile=99.99' for another part). mse: so that rounded values are nearest
    to the values. entropy: so that their distribution tells most of that of the values.

    \b
    Then the object is:
      per_tensor: {min, max, low, high, scale, zero_point}; min and max of all
        values, low and high of the range that the scale is for
      per_channel: a list of such, null if there is no axis of channels
      calibrate, percentile, dtype, scheme: how; percentile may be null
      channels, files, sample, steps, tconv: as above

    Exit 0: done, 1: refused or failed, 2: the command is wrong, 3: done without the inputs that --on-bad skip left
    out.
    """
    from tconv.calibrated import calibrate as look_for_ranges
    from tconv.calibrated import save as save_ranges
    from tconv.cli import asked, console, stats_table
    from tconv.pipeline import Sugar
    from tconv.pooled import Sample, Statistics, pool, save, where
    from tconv.request import Request
    from tconv.writer import ReadOptions

    if seed is not None and sample is None:
        raise UsageError("--seed chooses a sample, and none was asked for", remedy="add --sample N")
    if quantize is not None and calibrate is None:
        raise UsageError("--quantize says for what to calibrate", remedy="add --calibrate minmax, say")
    if raw and calibrate is not None:
        raise UsageError("--raw is for mean and std: --calibrate takes what comes of the steps", remedy="leave it out")
    if output is not None and not output.lower().endswith(".json"):
        raise UsageError(f"-o {output}: statistics are JSON", remedy="for example -o stats.json")
    sugar = Sugar(resize)
    asked.check_sugar(sugar, "")
    steps, settings = asked.explicit(step or [], pipeline, set_ or [], sugar)
    request = Request(
        inputs=tuple(inputs),
        sugar=sugar,
        steps=steps,
        read=ReadOptions(channels or "rgb", alpha or "white", frames=frames, exif=not no_exif, max_pixels=max_pixels),
        range=said.interval(range_) if range_ is not None else None,
        input_layout=said.axes(input_layout) if input_layout is not None else None,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        fields=fields,
        on_bad=on_bad,
        workers=workers,
        max_memory=said.size(max_memory),
    )
    request = asked.settled(request, settings, ctx)
    target = Path(output) if output is not None else None
    with console.Console(quiet=quiet, verbose=False) as terminal:
        if target is not None:
            where(target, [Path(word) for word in inputs], force)
        with console.progress(terminal) as shown:
            chosen = Sample(sample, seed or 0) if sample is not None else None
            found: Statistics | Calibrated
            if calibrate is None:
                found = pool(request, shown, sample=chosen, raw=raw)
            else:
                found = look_for_ranges(request, quantize or "int8", calibrate, shown, chosen)
        terminal.notes(found.notes)
        skipped.tell(found.skipped, terminal)
        if target is not None:
            if isinstance(found, Statistics):
                save(found, target, force)
            else:
                save_ranges(found, target, force)
        if as_json:
            reading.say_json(found.as_json())
        elif target is not None:
            sys.stdout.write(f"{target}\n")
        else:
            for line in stats_table.moments(found) if isinstance(found, Statistics) else stats_table.ranges(found):
                reading.say(line)
        reading.flush()
    return SKIPPED if found.skipped else 0


def register(app: typer.Typer) -> None:
    app.command()(stats)
