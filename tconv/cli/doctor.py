"""``tconv doctor INPUT...``: what is odd about images before they are converted, and the option for each oddity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tconv.cli import reading

if TYPE_CHECKING:
    from tconv.diagnose.examine import Diagnosis
    from tconv.diagnose.findings import Finding

REFUSED = 1  # the exit code if something cannot be converted
_NAMED = 5  # ignored files that are told by name


def doctor(
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT", help="Images, folders of images or globs.", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Look at headers only, not at pixels.", show_default=False)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Each file with what is odd about it, too.", show_default=False)
    ] = False,
    as_json: reading.Json = False,
    quiet: reading.Quiet = False,
    debug: reading.Debug = False,  # the root looks for it
) -> int:
    """Tell what is odd about images before converting them.

    \b
    tconv doctor images/
    tconv doctor images/ --quick              from headers alone
    tconv doctor images/ -v | grep 'same bytes'
    tconv doctor images/ --json | jq -r '.findings[] | select(.key ==
        "refused").files[].file'

    A table of what was found: how many files, what a conversion without options makes of them, the option that
    changes that, and an example. Every image is decoded, so that one that is cut off or corrupt is known; that takes
    about as long as converting them.

    \b
    What is looked for:
      not convertible: not whole, not an image, too large, of a kind that is
        refused; these are listed with the reason and what to do
      wrong suffix, EXIF-rotated, damaged EXIF, several frames, alpha, palette,
        1-bit, grey, CMYK, not 8-bit, floats, ICC profile (other than sRGB)
      under 8 pixels (a side), longer than 4:1
      unequal sizes, unequal dtypes: those that are not as most are
      not with --quick: grey in RGB, low values (less than a quarter of the
        range), one value only, same bytes and same pixels (as an earlier file)

    \b
    --json prints one object:
      convertible: true or false; images: how many; bytes; formats: {name: how
        many}; pixels: whether they were looked at
      sizes: null, or {distinct, smallest, median, largest}, the latter three as
        [height, width], by area
      findings: a list of {key, title, does, option, files}; files: a list of
        {file, detail}
      problems: a list of {file, reason, remedy}
      ignored: a list of {file, format}: files in folders with names of no image;
        format: null, or that of the image that they are nevertheless

    Exit 0: all can be converted, 1: some cannot, 2: there is no image, or the command is wrong.
    """
    from tconv.cli import console
    from tconv.diagnose.examine import examine

    with reading.trouble(), console.Console(quiet=quiet, verbose=verbose) as terminal:
        with console.progress(terminal) as shown:
            found = examine(inputs, quick=quick, progress=shown)
        for path in found.others:
            terminal.note(f"{path}: is no image; tconv inspect and tconv check are for it")
        if as_json:
            reading.say_json(_as_json(found, quick))
        elif not quiet:
            for line in _lines(found, verbose):
                reading.say(line)
        reading.flush()
    return REFUSED if found.problems else 0


def _lines(found: Diagnosis, verbose: bool) -> Iterator[str]:
    from tconv.errors import TconvErrors

    yield from _summary(found)
    if found.findings:
        yield ""
        yield from _table(found)
    if found.problems:
        yield ""
        yield "not convertible:"
        texts = map(str, found.problems) if verbose else str(TconvErrors(found.problems)).splitlines()
        yield from (f"  {text}" for text in texts)
    if found.ignored:
        yield ""
        yield from _ignored(found, verbose)
    if verbose:
        yield ""
        yield from _files(found)


def _summary(found: Diagnosis) -> Iterator[str]:
    from tconv.sizes import human

    formats = ", ".join(f"{count:,} {name}" for name, count in found.formats.items())
    yield f"{reading.counted(found.images, 'image')}, {human(found.bytes)}{f': {formats}' if formats else ''}"
    if found.sizes is not None:
        small, middle, large = (f"{h}x{w}" for h, w in (found.sizes.smallest, found.sizes.median, found.sizes.largest))
        sizes = reading.counted(found.sizes.distinct, "size")
        spread = f" from {small} to {large}, the median is {middle}" if found.sizes.distinct > 1 else f": {small}"
        yield f"{sizes} (height x width){spread}"
    if not found.findings:
        yield "nothing odd"


def _table(found: Diagnosis) -> Iterator[str]:
    from tconv.table import table

    rows = [[f.title, f"{len(f.files):,}", f.does, f.option, _example(f)] for f in found.findings]
    return table(["finding", "files", "by default", "otherwise", "for example"], rows, right=[1])


def _example(finding: Finding) -> str:
    path, detail = finding.files[0]
    return _with_detail(str(path), "" if finding.key == "refused" else detail)


def _with_detail(text: str, detail: str) -> str:
    return f"{text} ({detail})" if detail else text


def _ignored(found: Diagnosis, verbose: bool) -> Iterator[str]:
    """Those that are images nevertheless are told one by one."""
    plain = [str(path) for path, title in found.ignored if not title]
    named = plain if verbose else plain[:_NAMED]
    if plain:
        more = f" and {len(plain) - len(named):,} more" if len(plain) > len(named) else ""
        yield f"ignored: {', '.join(named)}{more}"
    images = [(path, title) for path, title in found.ignored if title]
    for path, title in images if verbose else images[:_NAMED]:
        yield f"ignored for its name: {path} is {title} by its content"
    if not verbose and len(images) > _NAMED:
        yield f"… and {len(images) - _NAMED:,} more such files"


def _files(found: Diagnosis) -> Iterator[str]:
    """Each file that something is odd about, but for those that were listed already."""
    from tconv.inputs import natural

    odd: dict[Path, list[str]] = defaultdict(list)
    for finding in (f for f in found.findings if f.key != "refused"):
        for path, detail in finding.files:
            odd[path].append(_with_detail(finding.title, detail))
    for path in sorted(odd, key=natural):
        yield f"{path}: {', '.join(odd[path])}"


def _as_json(found: Diagnosis, quick: bool) -> dict[str, Any]:
    sizes = found.sizes
    return {
        "convertible": not found.problems,
        "images": found.images,
        "bytes": found.bytes,
        "formats": found.formats,
        "pixels": not quick,
        "sizes": sizes
        and {
            "distinct": sizes.distinct,
            "smallest": list(sizes.smallest),
            "median": list(sizes.median),
            "largest": list(sizes.largest),
        },
        "findings": [
            {
                "key": finding.key,
                "title": finding.title,
                "does": finding.does,
                "option": finding.option,
                "files": [{"file": str(path), "detail": detail} for path, detail in finding.files],
            }
            for finding in found.findings
        ],
        "problems": [{"file": p.file, "reason": p.reason, "remedy": p.remedy} for p in found.problems],
        "ignored": [{"file": str(path), "format": title or None} for path, title in found.ignored],
    }


def register(app: typer.Typer) -> None:
    app.command()(doctor)
