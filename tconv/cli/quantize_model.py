"""``tconv quantize-model MODEL --calibrate IMAGES``: a whole model made int8, and what that does to it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tconv.cli import options as o
from tconv.cli import reading, skipped, values
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.models.job import Result

SKIPPED = 3  # the exit code when inputs were left out, as asked
_MODEL, _CHECK = "The model", "The check"


def quantize_model(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="An .onnx or .pt2 file, or the folder of a TensorFlow SavedModel.",
            show_default=False,
            rich_help_panel=_MODEL,
        ),
    ],
    calibrate: Annotated[
        list[str] | None,
        o.option(_MODEL, "Samples: files, folders, globs; repeatable.", "--calibrate", metavar="PATH"),
    ] = None,
    samples: Annotated[
        int | None,
        o.option(_MODEL, "So many to calibrate on (300).", "--samples", metavar="N", callback=values.whole(1, 10**9)),
    ] = None,
    seed: Annotated[
        int | None,
        o.option(
            _MODEL,
            "Other samples for another number (0).",
            "--seed",
            metavar="N",
            callback=values.whole(0, 10**15),
        ),
    ] = None,
    method: Annotated[
        str | None,
        o.choice(_MODEL, "Which range of activations (minmax).", "--method", "minmax", "entropy", "percentile"),
    ] = None,
    percentile: Annotated[
        float | None, o.option(_MODEL, "With --method percentile (99.999).", "--percentile", metavar="P")
    ] = None,
    per_tensor: Annotated[
        bool, o.option(_MODEL, "One scale a weight, not one a channel.", "--per-tensor", metavar="")
    ] = False,
    activations: Annotated[
        str | None, o.choice(_MODEL, "Activations in ONNX (uint8).", "--activations", "uint8", "int8")
    ] = None,
    io: Annotated[
        str | None,
        o.choice(_MODEL, "Input and output of .tflite (float32).", "--io", "float32", "int8", "uint8"),
    ] = None,
    resize: o.Resize = None,
    normalize: o.Normalize = False,
    stats: o.Stats = None,
    layout: o.Layout = None,
    to: o.To = None,
    step: o.StepList = None,
    pipeline: o.PipelineName = None,
    set_: o.Set = None,
    range_: o.RangeText = None,
    input_layout: o.InputLayout = None,
    only: o.Only = None,
    skip: o.Skip = None,
    held_back: Annotated[
        int | None,
        o.option(
            _CHECK,
            "So many others to compare on (100).",
            "--held-back",
            metavar="N",
            callback=values.whole(1, 10**9),
        ),
    ] = None,
    min_agreement: Annotated[
        float | None,
        o.option(_CHECK, "Write nothing if fewer have the same top-1.", "--min-agreement", metavar="SHARE"),
    ] = None,
    min_sqnr: Annotated[
        float | None,
        o.option(_CHECK, "Write nothing if an output's SQNR is lower.", "--min-sqnr", metavar="DB"),
    ] = None,
    output: Annotated[
        str | None,
        o.option(o.OUTPUT, "The file to write (MODEL.int8.onnx, .tflite, .pt2).", "-o", "--output", metavar="FILE"),
    ] = None,
    report: Annotated[
        str | None, o.option(o.OUTPUT, "The same as --json, as a file.", "--report", metavar="FILE.json")
    ] = None,
    as_json: reading.Json = False,
    force: o.Force = False,
    channels: o.Channels = None,
    alpha: o.Alpha = None,
    frames: o.Frames = "first",
    no_exif: o.NoExif = False,
    max_pixels: o.MaxPixels = None,
    on_bad: o.OnBad = "error",
    workers: o.Workers = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,  # the root looks for it
) -> int:
    """Quantize a whole model to int8, by its own framework's quantizer.

    \b
    tconv quantize-model model.onnx --calibrate images/ --pipeline imagenet
    tconv quantize-model model.onnx --calibrate images/ --pipeline imagenet \\
        --method entropy --min-agreement 0.98 -o model.int8.onnx
    tconv quantize-model saved_model/ --calibrate images/ --resize 224x224 \\
        --normalize --io int8 -o model.tflite

    ONNX models are quantized by onnxruntime (static, QDQ), SavedModels by TensorFlow's Lite converter (all operators
    int8), programs of torch.export by torchao (PT2E, for x86). tconv brings them the samples as its pipeline makes
    them, batch by batch, and checks before anything is computed that the model takes just that: shape, layout, dtype.
    Images are samples, and so is every slice of an array along its first axis.

    Then both models are run on samples that were held back: how far the outputs are apart (SQNR in dB, higher is
    nearer), and for how many the largest number is at the same place (top-1). The same seed draws the same samples.
    100 to 500 samples to calibrate on are usual.

    \b
    --json prints, and --report writes, one object:
      model, output: paths; bytes: {before, after}
      outputs: by name {samples, sqnr_db, exact, same_top1, agreement}; sqnr_db
        is null if all are the same (exact) and of integers; the last two unless
        there is one number a class, or integers, which are the same or not
      method, percentile, per_channel, activations, io: as asked, null if not
      steps: what was done to the samples, as text
      seed, of: how samples were drawn, and out of how many
      calibrated_on, compared_on: the samples
      skipped: a list of {path, reason}; tconv: the version

    Prints the path written; the comparison goes to stderr. Exit 0: done, 1: refused or failed, nothing was written,
    2: the command is wrong, 3: done without the samples that --on-bad skip left out, 130: interrupted.
    """
    from tconv import values as said
    from tconv.cli import asked, console
    from tconv.dtypes import dtype
    from tconv.models.job import Asked
    from tconv.models.job import quantize_model as run
    from tconv.models.route import How
    from tconv.models.samples import Wish
    from tconv.pipeline import Sugar
    from tconv.request import Request
    from tconv.writer import ReadOptions

    if not calibrate:
        raise UsageError("there is nothing to calibrate on", remedy="say --calibrate IMAGES, a folder or files")
    if percentile is not None and method != "percentile":
        raise UsageError("--percentile without --method percentile", remedy="add it, or leave the other out")
    if percentile is not None and not 50 < percentile <= 100:
        raise UsageError(f"--percentile is {percentile:g}; it must be above 50 and at most 100")
    if min_sqnr is not None and not math.isfinite(min_sqnr):
        raise UsageError(f"--min-sqnr is {min_sqnr:g}; it is a number of dB")
    if min_agreement is not None and not 0 < min_agreement <= 1:
        raise UsageError(f"--min-agreement is {min_agreement:g}; it is a share, above 0 and at most 1")
    sugar = Sugar(resize, normalize, stats, layout, str(dtype(to)) if to is not None else None)
    asked.check_sugar(sugar, input_layout or "")
    steps, settings = asked.explicit(step or [], pipeline, set_ or [], sugar)
    request = Request(
        inputs=tuple(calibrate),
        output=output,
        sugar=sugar,
        steps=steps,
        read=ReadOptions(channels or "rgb", alpha or "white", frames=frames, exif=not no_exif, max_pixels=max_pixels),
        range=said.interval(range_) if range_ is not None else None,
        input_layout=said.axes(input_layout) if input_layout is not None else None,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        report=Path(report) if report is not None else None,
        on_bad=on_bad,
        workers=workers,
        force=force,
    )
    request = asked.settled(request, settings, ctx)
    wanted = Asked(
        Path(model),
        request,
        Wish(samples or 300, held_back or 100, seed or 0),
        How(method or "minmax", percentile, not per_tensor, activations, io),
        min_agreement,
        min_sqnr,
    )
    with console.Console(quiet=quiet, verbose=False) as terminal:
        with console.progress(terminal) as shown:
            found = run(wanted, shown, terminal.note)
        skipped.tell(found.drawn.skipped, terminal)
        for line in _lines(found):
            terminal.note(line)
        if as_json:
            reading.say_json(found.as_json())
        else:
            sys.stdout.write(f"{found.shown}\n")
        reading.flush()
    return SKIPPED if found.drawn.skipped else 0


def _lines(found: Result) -> Iterator[str]:
    """A row for each output, and what it is of."""
    from tconv.table import table

    rows = []
    for name, output in found.comparison.outputs.items():
        same = "" if output.same is None else f"{output.same:,} of {output.samples:,} ({output.agreement:.1%})"
        rows.append([name, "" if output.sqnr is None else reading.short(output.sqnr, 3), same])
    yield from table(["output", "SQNR dB", "same top-1"], rows, right=[1])
    drawn, (before, after) = found.drawn, found.bytes
    yield (
        f"calibrated on {len(drawn.calibration):,} and compared on {len(drawn.held_back):,} of {drawn.of:,} samples; "
        f"{before:,} bytes became {after:,} ({after / before:.2f})"
    )


def register(app: typer.Typer) -> None:
    app.command("quantize-model")(quantize_model)
