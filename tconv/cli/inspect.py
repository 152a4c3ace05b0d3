"""``tconv inspect PATH...``: what is in files, from headers alone, and what the values are like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tconv.cli import complete, reading, values
from tconv.errors import UsageError

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.cli.listing import File
    from tconv.errors import TconvError

BY_WORD = ("name", "dtype", "shape")
BY_SIZE = ("bytes", "min", "max", "mean", "nan", "inf", "zeros")
SORTS = (*BY_WORD, *BY_SIZE)


def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    read_values: Annotated[
        bool, typer.Option("--values", help="Read the values too, and tell what they are like.", show_default=False)
    ] = False,
    as_json: reading.Json = False,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="COLUMN",
            help=f"By {', '.join(SORTS)}; numbers from the largest down.",
            show_default=False,
            callback=values.one_of(*SORTS),
            autocompletion=complete.words(*SORTS),
        ),
    ] = None,
    only: reading.Only = None,
    skip: reading.Skip = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No notes on stderr.", show_default=False)] = False,
    debug: reading.Debug = False,  # the root looks for it
) -> int:
    """List what is in files: names, dtypes, shapes, values.

    \b
    tconv inspect ckpt.pt
    tconv inspect model.safetensors --only 'layers.0.*' --sort bytes
    tconv inspect ckpt.pt --values --sort nan         which one has the NaN?
    tconv inspect images/ --json | jq '.files[].tensors[].shape'

    The name of each tensor, its dtype, shape, axes, device tag and bytes; without --values only headers are read. Of
    checkpoints it also tells what requires gradients, and which tensors are the same as another one or a part of it;
    totals count shared bytes once.

    --values adds the smallest and the largest value, the mean, the quantiles 1%, 50% and 99%, how many values are NaN,
    infinite and zero, and a row of bars: how the values are spread from the smallest to the largest. All but the counts
    is of the finite values, and of complex numbers it is the magnitude. Quantiles and bars are exact for dtypes of up
    to 16 bits and for up to 65,536 values; beyond that each value counts as one that is within 0.4% of it, or within
    0.8% of the smallest normal number. Memory does not grow with the tensors, but for what decodes whole (images,
    deflated .npz).

    \b
    --json prints one object:
      files: a list of {path, format, kind, tensors}; kind: weights or data
        tensors: a list of {name, dtype, shape, axes, channels, range, device,
          bytes, requires_grad, shares, values}
          axes, range: null where unknown
          channels: BGR or CMYK, null if they are neither
          shares: null, or {how: same or part, of: the name of another tensor}
          values: null without --values, else {of: values or magnitudes, count,
            nan, inf, zeros, min, max, mean, quantiles: {1%, 50%, 99%}, spread:
            16 counts, exact: whether quantiles and spread are}
            min to spread: null where no value is finite
      totals: {tensors, bytes, dtypes: {name: {tensors, bytes}}}

    Exit 0: done, 1: something could not be read, 2: the command is wrong.
    """
    from tconv.cli import console, listing
    from tconv.errors import raise_all

    if sort in BY_SIZE[1:] and not read_values:
        raise UsageError(f"--sort {sort} needs the values", remedy="add --values")
    with console.Console(quiet=quiet, verbose=False) as terminal:
        opened, problems = reading.read(paths, only or [], skip or [], terminal)
        files = [listing.rows(one) for one in opened]
        if read_values:
            problems += _measure(files, terminal)
    if sort:
        files = listing.arrange(files, sort, descending=sort in BY_SIZE)
    if as_json:
        reading.say_json(listing.as_json(files))
    else:
        for line in listing.lines(files, read_values):
            reading.say(line)
    reading.flush()
    raise_all(problems)
    return 0


def _measure(files: list[File], terminal: Console) -> list[TconvError]:
    """Give each row its summary; an alias has that of the tensor whose bytes it has."""
    from tconv.cli.console import progress
    from tconv.measure.survey import survey

    rows = [row for file in files for row in file.rows]
    own = [row for row in rows if row.spec.alias_of is None]
    with progress(terminal) as shown:
        summaries, problems = survey([row.tensor for row in own], shown)
    for row, summary in zip(own, summaries, strict=True):
        row.summary = summary
    for file in files:
        known = {row.spec.name: row.summary for row in file.rows}
        for row in file.rows:
            row.summary = known[row.spec.alias_of or row.spec.name]
    return problems


def register(app: typer.Typer) -> None:
    app.command()(inspect)
